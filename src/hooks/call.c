/* Nesting, and what is recorded when (call.h). */
#include "hooks/call.h"

#include "hooks/context.h"
#include "hooks/graphs.h"
#include "hooks/loaded.h"
#include "hooks/pool_samples.h"

#define PENDING_MAX 8
#define INNER_MAX   32 /* a power of 2 */

/* An allocation noted inside a runtime call. */
struct pending {
    struct allocation allocation;
    CUresult rc;
};

struct thread_calls {
    unsigned driver_depth, runtime_depth;
    uintptr_t outermost; /* the frame of that call, */
    const void *caller;  /* its caller, */
    /* and who was seen to call from inside such a call, by the caller's address */
    struct seen_inside {
        const void *caller, *outer;
    } inner[INNER_MAX];
    enum hook_id runtime;  /* the outermost runtime call we are in, */
    bool recording;        /* and whether it is recorded */
    unsigned driver_calls; /* that acted inside it */
    unsigned pending_count, pending_done;
    struct pending pending[PENDING_MAX];
};

static __thread struct thread_calls calls __attribute__((tls_model("initial-exec")));

static void flush(const char *api, bool failures);

static bool is_in(struct loaded_range range, const void *address)
{
    return (uintptr_t)address >= range.start && (uintptr_t)address < range.end;
}

/* A driver and a runtime call hooked functions from inside, the file that called them does not. */
static bool is_inner_caller(const void *caller)
{
    struct seen_inside *seen = &calls.inner[((uintptr_t)caller >> 2) % INNER_MAX];
    if (seen->caller == caller && seen->outer == calls.caller)
        return true;
    if (is_in(loaded_range_of(calls.caller, NULL), caller) && !loaded_in_driver(caller) &&
        !loaded_in_runtime(caller))
        return false;
    *seen = (struct seen_inside){caller, calls.caller};
    return true;
}

/* A call inside another one lies below it on the stack. One that does not, or that the same code made, is
 * inside none: the program has jumped out of the other one, which does not end any more. What that had been
 * granted stays granted. */
static void forget_abandoned(const struct call *call)
{
    if (calls.driver_depth + calls.runtime_depth == 0 ||
        (call->frame < calls.outermost && is_inner_caller(call->caller)))
        return;
    if (calls.runtime_depth > 0 && calls.recording)
        flush(hook_symbols[calls.runtime].bare, false);
    calls.driver_depth = calls.runtime_depth = 0;
    /* Below it on the stack a signal handler may be calling, and the other one go on. */
    bool jumped = call->frame >= calls.outermost && hook_abandon();
    if (call->frame < calls.outermost)
        hook_leave();
    device_window_abandon(jumped);
}

/* Before a depth is raised. */
static bool is_outermost(const struct call *call)
{
    forget_abandoned(call);
    if (calls.driver_depth + calls.runtime_depth > 0)
        return false;
    calls.outermost = call->frame;
    calls.caller = call->caller;
    return true;
}

/* A depth is 0 already for a call that was taken for abandoned, because another one was made on another stack
 * meanwhile. */
static void leave(unsigned *depth)
{
    if (*depth > 0 && --*depth == 0 && calls.driver_depth + calls.runtime_depth == 0)
        hook_leave();
}

void *call_begin(struct call *call, enum hook_id hook)
{
    call->entry_errno = errno;
    void *real = real_driver(hook);
    if (real == NULL) {
        errno = call->entry_errno;
        return NULL;
    }
    call->hook = hook;
    call->acts = false;
    bool outermost = is_outermost(call);
    if (calls.driver_depth++ == 0) {
        call->acts = outermost ? hook_enter() : calls.recording;
        calls.driver_calls += calls.runtime_depth > 0;
    }
    return real;
}

CUresult call_end(struct call *call, CUresult rc)
{
    if (calls.driver_depth == 1 && call->acts)
        pool_samples_catch_up();
    leave(&calls.driver_depth);
    errno = call->left_errno;
    return rc;
}

/* The driver tells what is free on the current context's device, which need not be the one that was asked. */
static void record_no_memory(const struct allocation *allocation, int error)
{
    size_t free_bytes = 0, total_bytes = 0;
    if (allocation->device < 0 || allocation->device == place_current_device())
        place_memory_info(&free_bytes, &total_bytes);
    pool_samples_take();
    device_refusing(allocation->device);
    record_out_of_memory(allocation, error, free_bytes, total_bytes);
    device_refused(allocation->device);
}

/* No driver or no device that can be used: the driver's number or the runtime's. Programs try and go on
 * without. */
static bool is_for_want_of_a_gpu(int rc)
{
    static const int errors[] = {CUDA_ERROR_NOT_INITIALIZED,
                                 CUDA_ERROR_STUB_LIBRARY,
                                 cudaErrorInsufficientDriver,
                                 CUDA_ERROR_DEVICE_UNAVAILABLE,
                                 CUDA_ERROR_NO_DEVICE,
                                 CUDA_ERROR_SYSTEM_NOT_READY,
                                 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
                                 CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (rc == errors[i])
            return true;
    }
    return false;
}

static void record_result(const struct allocation *allocation, int rc)
{
    if (rc == CUDA_ERROR_OUT_OF_MEMORY) {
        record_no_memory(allocation, rc);
    } else if (rc != CUDA_SUCCESS) {
        if (recorder_has_begun() || !is_for_want_of_a_gpu(rc))
            record_failure(allocation, rc);
    } else {
        if (record_allocation(allocation))
            device_sample(allocation->device, SAMPLE_ALLOCATION);
    }
}

/* Records what is pending under the name of the runtime call that we are in. Each is off the list before it
 * is recorded, which a signal may interrupt for good: none is recorded twice. */
static void flush(const char *api, bool failures)
{
    while (calls.pending_done < calls.pending_count) {
        struct pending pending = calls.pending[calls.pending_done++];
        pending.allocation.api = api;
        if (pending.rc == CUDA_SUCCESS || failures)
            record_result(&pending.allocation, (int)pending.rc);
    }
    calls.pending_count = calls.pending_done = 0;
}

void call_allocated(struct call *call, CUresult rc, struct allocation *allocation)
{
    if (!call->acts)
        return;
    allocation->api = hook_symbols[call->hook].bare;
    place_fill(allocation);
    if (rc == CUDA_SUCCESS && allocation->key_space == KEY_ADDRESS)
        graph_forget_address(allocation->key);
    if (calls.runtime_depth == 0) {
        record_result(allocation, (int)rc);
        return;
    }
    if (calls.pending_count == PENDING_MAX)
        flush(hook_symbols[calls.runtime].bare, false);
    calls.pending[calls.pending_count++] = (struct pending){*allocation, rc};
}

void call_free(struct call *call, struct freeing *freeing, enum key_space key_space, uint64_t number)
{
    freeing->recorded = false;
    if (!call->acts || number == 0)
        return;
    /* It may free what the same runtime call has just allocated. */
    if (calls.pending_count > 0)
        flush(hook_symbols[calls.runtime].bare, false);
    freeing->recorded = record_free(key_space, number, &freeing->block);
}

void call_freed(struct call *call, CUresult rc, const struct freeing *freeing)
{
    if (call->acts && rc != CUDA_SUCCESS && freeing->recorded)
        record_unfree(&freeing->block);
}

void *call_begin_runtime(struct call *call, enum hook_id hook)
{
    call->entry_errno = errno;
    void *real = real_of_caller(hook, call->caller);
    if (real == NULL) {
        errno = call->entry_errno;
        return NULL;
    }
    call->hook = hook;
    call->acts = false;
    /* The driver never calls the runtime, but a callback of the program's that it runs may. */
    bool outermost = is_outermost(call);
    calls.runtime_depth++;
    if (outermost) {
        call->acts = calls.recording = hook_enter();
        calls.driver_calls = 0;
        calls.pending_count = 0;
        calls.runtime = hook;
    }
    return real;
}

static cudaError_t end_runtime(struct call *call, cudaError_t rc)
{
    leave(&calls.runtime_depth);
    errno = call->left_errno;
    return rc;
}

cudaError_t call_end_runtime(struct call *call, cudaError_t rc, struct allocation *unseen)
{
    if (call->acts) {
        bool noted = calls.pending_count > 0;
        bool blind = !noted && (rc != cudaSuccess || calls.driver_calls == 0);
        flush(hook_symbols[call->hook].bare, rc != cudaSuccess);
        if (blind && unseen != NULL && (rc != cudaSuccess || unseen->key != 0)) {
            unseen->api = hook_symbols[call->hook].bare;
            place_fill(unseen);
            record_result(unseen, (int)rc);
        }
    }
    return end_runtime(call, rc);
}

cudaError_t call_end_runtime_free(struct call *call, cudaError_t rc, enum key_space key_space,
                                  uint64_t number)
{
    struct block block;
    if (call->acts) {
        flush(hook_symbols[call->hook].bare, false);
        if (rc == cudaSuccess && calls.driver_calls == 0 && number != 0)
            record_free(key_space, number, &block);
    }
    return end_runtime(call, rc);
}
