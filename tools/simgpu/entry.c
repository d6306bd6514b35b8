/*
 * Beginning and end of every call, the configuration, and failures on demand.
 *
 * SIMGPU_DEVICES (1), SIMGPU_MEMORY (8G) and SIMGPU_CONTEXT (256M) per device, SIMGPU_SHARED (a file through
 * which processes share the devices' memory, see physical.c), SIMGPU_STRICT (questions
 * about memory end a capture, too), SIMGPU_PIDS (what NVML adds to the numbers of
 * processes, as seen from outside a container), SIMGPU_ADDRESSES (the most address space that is set aside at
 * a time, for emulators that do so page by page), CUDA_MODULE_LOADING, SIMGPU_VERBOSE, and SIMGPU_FAIL, a
 * list of NAME:N[:CODE] separated by commas: the Nth call of NAME (from 1; 0 means every one) does nothing
 * and returns CODE, CUDA_ERROR_OUT_OF_MEMORY by default.
 */
#include "entry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"

#define MAX_FAILURES    16
#define NAME_MAX_LENGTH 63

struct failure {
    char name[NAME_MAX_LENGTH + 1];
    unsigned long nth, seen;
    CUresult code;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t configured = PTHREAD_ONCE_INIT;
static atomic_bool initialised;
static struct later {
    CUhostFn function;
    void *data;
    struct later *next;
} * later; /* what to call once the lock is free */
static struct slab later_slab = {.size = sizeof(struct later)};
static bool forked; /* a child of a process that had initialised the driver */
static struct failure failures[MAX_FAILURES];
static atomic_int failure_count;
static bool verbose, strict;
static uint64_t memory_bytes = 8ull << 30, context_bytes = 256ull << 20, window_bytes = UINT64_MAX;
static int devices_wanted = 1, pids_beyond;

/* A number with an optional K, M, G or T; `otherwise` when it is none. */
static uint64_t size_setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    char *end;
    if (!text || !*text)
        return otherwise;
    double value = strtod(text, &end);
    static const char letters[] = "KMGT";
    const char *letter = *end ? strchr(letters, *end & ~0x20) : NULL;
    if (letter)
        value *= (double)(1ull << (10 * (letter - letters + 1)));
    return end == text || value < 0 || value > 1e15 ? otherwise : (uint64_t)value;
}

static void read_failure(const char *text, size_t length)
{
    const char *colon = memchr(text, ':', length);
    int at = atomic_load(&failure_count);
    if (!colon || colon - text > NAME_MAX_LENGTH || at == MAX_FAILURES)
        return;
    struct failure *failure = &failures[at];
    memcpy(failure->name, text, (size_t)(colon - text));
    char *end;
    failure->nth = strtoul(colon + 1, &end, 10);
    failure->code = *end == ':' ? (CUresult)strtol(end + 1, NULL, 10) : CUDA_ERROR_OUT_OF_MEMORY;
    atomic_store(&failure_count, at + 1);
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void child_of_fork(void)
{
    forked = atomic_load(&initialised);
    atomic_store(&initialised, false);
    pthread_mutex_unlock(&lock);
}

static void configure(void)
{
    memory_bytes = size_setting("SIMGPU_MEMORY", memory_bytes);
    context_bytes = size_setting("SIMGPU_CONTEXT", context_bytes);
    window_bytes = size_setting("SIMGPU_ADDRESSES", window_bytes);
    devices_wanted = (int)size_setting("SIMGPU_DEVICES", 1);
    if (devices_wanted > MAX_DEVICES)
        devices_wanted = MAX_DEVICES;
    pids_beyond = (int)size_setting("SIMGPU_PIDS", 0);
    strict = size_setting("SIMGPU_STRICT", 0) != 0;
    const char *text = getenv("SIMGPU_VERBOSE");
    verbose = text && *text && strcmp(text, "0") != 0;
    for (text = getenv("SIMGPU_FAIL"); text && *text;) {
        size_t length = strcspn(text, ",");
        read_failure(text, length);
        text += length + (text[length] == ',');
    }
    pthread_atfork(before_fork, after_fork, child_of_fork);
}

uint64_t simgpu_memory_bytes(void)
{
    return memory_bytes;
}

uint64_t simgpu_context_bytes(void)
{
    return context_bytes;
}

uint64_t simgpu_window_bytes(void)
{
    return window_bytes;
}

unsigned needs_when_asked(void)
{
    return strict ? NEEDS_NO_CAPTURE : NEEDS_NOTHING;
}

int simgpu_pids(void)
{
    return pids_beyond;
}

int simgpu_device_count(void)
{
    return devices_wanted;
}

bool simgpu_verbose(void)
{
    return verbose;
}

/* Under the lock: counts are exact with threads too. */
static CUresult asked_failure(const char *name)
{
    for (int i = 0, count = atomic_load(&failure_count); i < count; i++) {
        struct failure *failure = &failures[i];
        if (strcmp(failure->name, name) == 0 && (++failure->seen == failure->nth || failure->nth == 0))
            return failure->code;
    }
    return CUDA_SUCCESS;
}

CUresult entry_begin(const char *name, unsigned needs)
{
    pthread_once(&configured, configure);
    if (needs && !atomic_load_explicit(&initialised, memory_order_acquire))
        return CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_lock(&lock);
    CUresult result =
        atomic_load_explicit(&failure_count, memory_order_relaxed) ? asked_failure(name) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && (needs & NEEDS_CONTEXT))
        result = context_state();
    if (result == CUDA_SUCCESS && (needs & NEEDS_NO_CAPTURE))
        result = capture_forbids();
    if (result != CUDA_SUCCESS)
        pthread_mutex_unlock(&lock);
    return result;
}

void entry_call_later(CUhostFn function, void *data)
{
    struct later *call = slab_take(&later_slab);
    struct later **last = &later;
    if (!call)
        return;
    *call = (struct later){function, data, NULL};
    while (*last)
        last = &(*last)->next;
    *last = call;
}

/* Takes the next of the calls that this entry put off; they were all put off under one hold of the lock. */
static bool next_call(struct later **calls, struct later *call)
{
    if (!*calls)
        return false;
    *call = **calls;
    pthread_mutex_lock(&lock);
    slab_give(&later_slab, *calls);
    pthread_mutex_unlock(&lock);
    *calls = call->next;
    return true;
}

CUresult entry_end(CUresult result)
{
    struct later *calls = later, call;
    later = NULL;
    pthread_mutex_unlock(&lock);
    while (next_call(&calls, &call))
        call.function(call.data);
    return result;
}

CUresult driver_initialise(void)
{
    if (forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (atomic_load(&initialised))
        return CUDA_SUCCESS;
    CUresult result = devices_make();
    if (result == CUDA_SUCCESS)
        atomic_store_explicit(&initialised, true, memory_order_release);
    return result;
}
