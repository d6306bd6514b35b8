/*
 * Contexts: made and ended, a stack of them for each thread, and the primary one of each device. A context
 * that was ended stays readable while it stands on a thread's stack, so that the thread can be told so.
 */
#include "entry.h"

#include <stdlib.h>

#include "pool.h"

#define STACK_DEPTH 64

/* By CUlimit: stack, printf, heap, sync depth, pending launches, L2 fetch granularity, persisting L2, shared
 * memory. */
static const uint64_t default_limits[] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0, 0};
#define LIMIT_COUNT (sizeof default_limits / sizeof *default_limits)

struct stack {
    struct context *contexts[STACK_DEPTH];
    int depth;
};

static __thread struct stack stack;
static unsigned long long last_id;

struct context *context_current(void)
{
    return stack.depth ? stack.contexts[stack.depth - 1] : NULL;
}

struct context *context_get(CUcontext handle)
{
    struct context *context = handle_get(handle, HANDLE_CONTEXT);
    return context && context->alive ? context : NULL;
}

/* ---- life ---- */

static CUresult context_start(struct context *context)
{
    struct device *device = context->device;
    if (!physical_take(device, (simgpu_context_bytes() + GRANULE - 1) / GRANULE))
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->alive = true;
    context->id = ++last_id;
    context->peers = 0;
    context->references = 1;
    for (size_t i = 0; i < LIMIT_COUNT; i++)
        context->limits[i] = default_limits[i];
    context->device_memory.window = device->window;
    context->managed_memory.window = managed_window();
    context->pinned_memory.window = host_window();
    return CUDA_SUCCESS;
}

/* Ends everything in the context; its structure stays. */
static void context_stop(struct context *context)
{
    while (context->handles)
        handle_teardown(context->handles);
    while (context->blocks)
        block_end(context->blocks);
    physical_give(context->device, (simgpu_context_bytes() + GRANULE - 1) / GRANULE);
    context->alive = false;
}

static void context_drop(struct context *context)
{
    if (context->alive || context->stacked || context == context->device->primary)
        return;
    free(context->legacy);
    handle_end(context, sizeof *context);
}

CUresult context_new(struct context **out, struct device *device, unsigned flags)
{
    struct context *context = handle_new(HANDLE_CONTEXT, sizeof *context, NULL);
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    context->device = device;
    context->flags = flags;
    context->api_version = 3020;
    CUresult result = context_start(context);
    if (result == CUDA_SUCCESS)
        *out = context;
    else
        handle_end(context, sizeof *context);
    return result;
}

/* ---- the thread's stack ---- */

static CUresult push(struct context *context)
{
    if (stack.depth == STACK_DEPTH)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack.contexts[stack.depth++] = context;
    context->stacked++;
    return CUDA_SUCCESS;
}

static struct context *pop(void)
{
    struct context *context = stack.contexts[--stack.depth];
    context->stacked--;
    return context;
}

static CUresult pop_current(CUcontext *out)
{
    if (!stack.depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct context *context = pop();
    if (out)
        *out = (CUcontext)context;
    context_drop(context);
    return CUDA_SUCCESS;
}

static CUresult push_current(CUcontext handle)
{
    struct context *context = context_get(handle);
    return context ? push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult set_current(CUcontext handle)
{
    struct context *context = context_get(handle);
    if (handle && !context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stack.depth)
        context_drop(pop());
    return context ? push(context) : CUDA_SUCCESS;
}

static CUresult get_current(CUcontext *out)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUcontext)context_current();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    return CALL("cuCtxPushCurrent", NEEDS_INIT, push_current(context));
}

EXPORT CUresult cuCtxPushCurrent(CUcontext context)
{
    return cuCtxPushCurrent_v2(context);
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    return CALL("cuCtxPopCurrent", NEEDS_INIT, pop_current(context));
}

EXPORT CUresult cuCtxPopCurrent(CUcontext *context)
{
    return cuCtxPopCurrent_v2(context);
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    return CALL("cuCtxSetCurrent", NEEDS_INIT, set_current(context));
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    return CALL("cuCtxGetCurrent", NEEDS_INIT, get_current(context));
}

/* ---- created contexts ---- */

static CUresult create(CUcontext *out, unsigned flags, CUdevice ordinal)
{
    struct device *device = device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!out || flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    struct context *context;
    CUresult result = context_new(&context, device, flags);
    if (result != CUDA_SUCCESS)
        return result;
    *out = (CUcontext)context;
    return push(context);
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice device)
{
    return CALL("cuCtxCreate", NEEDS_INIT, create(out, flags, device));
}

EXPORT CUresult cuCtxCreate(CUcontext *out, unsigned int flags, CUdevice device)
{
    return cuCtxCreate_v2(out, flags, device);
}

EXPORT CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *affinities, int count, unsigned int flags,
                               CUdevice device)
{
    if (count && !affinities)
        return CUDA_ERROR_INVALID_VALUE;
    return CALL("cuCtxCreate", NEEDS_INIT, create(out, flags, device));
}

EXPORT CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags, CUdevice device)
{
    if (params && params->cigParams && params->numExecAffinityParams)
        return CUDA_ERROR_INVALID_VALUE; /* the two exclude each other */
    return CALL("cuCtxCreate", NEEDS_INIT, create(out, flags, device));
}

static CUresult destroy(CUcontext handle)
{
    struct context *context = context_get(handle);
    if (!context || context == context->device->primary || context->green_parent)
        return handle ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
    if (context_current() == context)
        pop();
    context_stop(context);
    context_drop(context);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context)
{
    return CALL("cuCtxDestroy", NEEDS_INIT, destroy(context));
}

EXPORT CUresult cuCtxDestroy(CUcontext context)
{
    return cuCtxDestroy_v2(context);
}

static CUresult attach(CUcontext *out, unsigned flags)
{
    struct context *context = context_current();
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    context->references++;
    *out = (CUcontext)context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxAttach(CUcontext *context, unsigned int flags)
{
    return CALL("cuCtxAttach", NEEDS_CONTEXT, attach(context, flags));
}

static CUresult detach(CUcontext handle)
{
    struct context *context = context_get(handle);
    if (!context || context != context_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    return --context->references ? CUDA_SUCCESS : destroy(handle);
}

EXPORT CUresult cuCtxDetach(CUcontext context)
{
    return CALL("cuCtxDetach", NEEDS_INIT, detach(context));
}

/* ---- primary contexts ---- */

CUresult primary_retain(struct device *device, struct context **out)
{
    struct context *primary = device->primary;
    CUresult result = CUDA_SUCCESS;
    if (!primary) {
        result = context_new(&primary, device, device->primary_flags);
        if (result == CUDA_SUCCESS)
            device->primary = primary;
    } else if (!primary->alive) {
        primary->flags = device->primary_flags;
        result = context_start(primary);
    }
    if (result != CUDA_SUCCESS)
        return result;
    device->primary_references++;
    *out = primary;
    return CUDA_SUCCESS;
}

static CUresult retain(CUcontext *out, CUdevice ordinal)
{
    struct device *device = device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    struct context *context;
    CUresult result = out ? primary_retain(device, &context) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *out = (CUcontext)context;
    return result;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    return CALL("cuDevicePrimaryCtxRetain", NEEDS_INIT, retain(context, device));
}

static CUresult release(CUdevice ordinal)
{
    struct device *device = device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!device->primary_references)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->primary_references == 0 && device->primary->alive)
        context_stop(device->primary);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return CALL("cuDevicePrimaryCtxRelease", NEEDS_INIT, release(device));
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return cuDevicePrimaryCtxRelease_v2(device);
}

static CUresult reset(CUdevice ordinal)
{
    struct device *device = device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (device->primary && device->primary->alive)
        context_stop(device->primary);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    return CALL("cuDevicePrimaryCtxReset", NEEDS_INIT, reset(device));
}

EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    return cuDevicePrimaryCtxReset_v2(device);
}

static CUresult set_primary_flags(CUdevice ordinal, unsigned flags)
{
    struct device *device = device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    device->primary_flags = flags;
    if (device->primary)
        device->primary->flags = flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
    return CALL("cuDevicePrimaryCtxSetFlags", NEEDS_INIT, set_primary_flags(device, flags));
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

static CUresult primary_state(CUdevice ordinal, unsigned *flags, int *active)
{
    const struct device *device = device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags)
        *flags = device->primary_flags;
    if (active)
        *active = device->primary && device->primary->alive;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    return CALL("cuDevicePrimaryCtxGetState", NEEDS_INIT, primary_state(device, flags, active));
}

/* ---- what a context says of itself ---- */

static CUresult context_device(CUdevice *out, CUcontext handle)
{
    const struct context *context = handle ? context_get(handle) : context_current();
    if (!context || !context->alive)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = context->device->ordinal;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    return CALL("cuCtxGetDevice", NEEDS_CONTEXT, context_device(device, NULL));
}

EXPORT CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
    return CALL("cuCtxGetDevice", NEEDS_INIT, context_device(device, context));
}

static CUresult synchronize(CUcontext handle)
{
    if (handle && !context_get(handle))
        return CUDA_ERROR_INVALID_CONTEXT;
    pools_synchronize();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void)
{
    return CALL("cuCtxSynchronize", NEEDS_MEMORY_CALL, synchronize(NULL));
}

EXPORT CUresult cuCtxSynchronize_v2(CUcontext context)
{
    return CALL("cuCtxSynchronize", context ? NEEDS_INIT : NEEDS_MEMORY_CALL, synchronize(context));
}

static CUresult api_version(CUcontext handle, unsigned *version)
{
    const struct context *context = handle ? context_get(handle) : context_current();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = context->api_version;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
    return CALL("cuCtxGetApiVersion", NEEDS_INIT, api_version(context, version));
}

static CUresult context_id(CUcontext handle, unsigned long long *id)
{
    const struct context *context = handle ? context_get(handle) : context_current();
    if (!context || !context->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
    return CALL("cuCtxGetId", NEEDS_INIT, context_id(context, id));
}

static CUresult get_flags(unsigned *flags)
{
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = context_current()->flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetFlags(unsigned int *flags)
{
    return CALL("cuCtxGetFlags", NEEDS_CONTEXT, get_flags(flags));
}

static CUresult set_flags(unsigned flags)
{
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    context_current()->flags = flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetFlags(unsigned int flags)
{
    return CALL("cuCtxSetFlags", NEEDS_CONTEXT, set_flags(flags));
}

static CUresult get_limit(size_t *value, unsigned limit)
{
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (limit >= LIMIT_COUNT)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = context_current()->limits[limit];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetLimit(size_t *value, unsigned int limit)
{
    return CALL("cuCtxGetLimit", NEEDS_CONTEXT, get_limit(value, limit));
}

static CUresult set_limit(unsigned limit, size_t value)
{
    if (limit >= LIMIT_COUNT)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    context_current()->limits[limit] = value;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetLimit(unsigned int limit, size_t value)
{
    return CALL("cuCtxSetLimit", NEEDS_CONTEXT, set_limit(limit, value));
}

static CUresult priority_range(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    return CALL("cuCtxGetStreamPriorityRange", NEEDS_CONTEXT, priority_range(least, greatest));
}
