/*
 * The shape of every hook:
 *
 *     HOOK(cuMemFree_v2, (CUdeviceptr address))
 *     {
 *         FORWARD(cuMemFree_v2);                    the real function, or an error code when there is none
 *         …what is recorded before the call…
 *         CUresult rc = REAL(address);              the program's call, with the program's errno
 *         …what is recorded after it…
 *         return call_end(&call, rc);               the real call's result and errno
 *     }
 *
 * Calls nest. A driver may call its own exports, and a runtime calls the driver's. Of driver calls inside
 * each other only the outermost acts. A driver call inside a runtime call acts too, since it knows what is
 * allocated, but what it has to say of an allocation waits until the runtime's call returns, and is recorded
 * there: under the runtime's name and with the stack from the program's own call on. So each is one event,
 * whichever of them the driver goes through.
 *
 * A program can jump out of a call, from a signal handler. That call is over, and none is inside it, when the
 * next one comes from no deeper on the stack, or from the same file as that one.
 *
 * No lock is held across a real call.
 */
#ifndef HOOKS_CALL_H
#define HOOKS_CALL_H

#include <errno.h>
#include <stdbool.h>

#include "cuda/abi.h"
#include "hooks/context.h"
#include "hooks/real.h"
#include "hooks/symbols.h"
#include "preload/recorder.h"

struct call {
    enum hook_id hook;
    uintptr_t frame;    /* the hook's, on the stack */
    const void *caller; /* where it returns to */
    int entry_errno, left_errno;
    bool acts; /* this call is recorded */
};

/* Defines a hook under its internal name, and exports it under the one it hooks. */
#define HOOK_RETURNING(type, name, parameters)                                                               \
    type hook_##name parameters;                                                                             \
    type name parameters __attribute__((alias("hook_" #name), visibility("default")));                       \
    type hook_##name parameters

#define HOOK(name, parameters) HOOK_RETURNING(CUresult, name, parameters)

#define FORWARD(name)                                                                                        \
    struct call call = {.frame = (uintptr_t)__builtin_frame_address(0),                                      \
                        .caller = __builtin_return_address(0)};                                              \
    __typeof__(&hook_##name) real = (__typeof__(&hook_##name))call_begin(&call, HOOK_##name);                \
    if (real == NULL)                                                                                        \
    return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND

#define REAL(...) (errno = call.entry_errno, call_returned(&call, real(__VA_ARGS__)))

static inline CUresult call_returned(struct call *call, CUresult rc)
{
    call->left_errno = errno;
    return rc;
}

/* The real function; NULL when there is none, and then the call must not be ended. */
void *call_begin(struct call *call, enum hook_id hook);
CUresult call_end(struct call *call, CUresult rc);

/* What an API that allocates has to say: the start of a struct allocation. The device is the current one's.
 */
#define BLOCK(family_name, space_name, keys)                                                                 \
    .family = FAMILY_##family_name, .space = SPACE_##space_name, .key_space = KEY_##keys,                    \
    .device = DEVICE_UNKNOWN

/* An out-parameter, which means something only on success. */
#define GRANTED(value) (rc == 0 ? (uint64_t)(value) : 0)

/* After the real call of an API that allocates. On success `allocation` is recorded, on failure what was
 * asked for, with key ignored. Its api, context and, where unknown, device are filled in. */
void call_allocated(struct call *call, CUresult rc, struct allocation *allocation);

/* A free recorded before the real call, taken back by call_freed() when the driver refuses. */
struct freeing {
    bool recorded;
    struct block block;
    /* Of memory of a graph's (graphs.h): what its node was, and the node where it left the table. */
    bool is_node, was_live, was_launched, was_paired;
    struct graph_node *node;
};

/* Number 0 is no address and no handle, and is not recorded. */
void call_free(struct call *call, struct freeing *freeing, enum key_space key_space, uint64_t number);
void call_freed(struct call *call, CUresult rc, const struct freeing *freeing);

/* The runtime's hooks, in the same shape; `real` depends on who calls. */
#define RUNTIME_HOOK(name, parameters) HOOK_RETURNING(cudaError_t, name, parameters)

#define FORWARD_RUNTIME(name)                                                                                \
    struct call call = {.frame = (uintptr_t)__builtin_frame_address(0),                                      \
                        .caller = __builtin_return_address(0)};                                              \
    __typeof__(&hook_##name) real = (__typeof__(&hook_##name))call_begin_runtime(&call, HOOK_##name);        \
    if (real == NULL)                                                                                        \
    return cudaErrorSharedObjectSymbolNotFound

#define REAL_RUNTIME(...) (errno = call.entry_errno, call_returned_runtime(&call, real(__VA_ARGS__)))

static inline cudaError_t call_returned_runtime(struct call *call, cudaError_t rc)
{
    call->left_errno = errno;
    return rc;
}

void *call_begin_runtime(struct call *call, enum hook_id hook);

/*
 * Ends a runtime call that allocates: what the driver's hooks noted is recorded. A runtime whose driver calls
 * we do not see (it found the driver in a way that passes us by) has noted nothing: then `unseen`, filled in
 * as well as the runtime's arguments allow, is recorded instead. NULL where they do not allow it.
 */
cudaError_t call_end_runtime(struct call *call, cudaError_t rc, struct allocation *unseen);
/* The same for one that frees. */
cudaError_t call_end_runtime_free(struct call *call, cudaError_t rc, enum key_space key_space,
                                  uint64_t number);

#endif
