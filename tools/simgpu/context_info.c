/* What a context says of itself, and its settings. */
#include "entry.h"
#include "pool.h"

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
    if (limit >= CONTEXT_LIMITS)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = context_current()->limits[limit];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetLimit(size_t *value, unsigned int limit)
{
    return CALL("cuCtxGetLimit", NEEDS_CONTEXT, get_limit(value, limit));
}

/* Every thread that can be resident has its stack in device memory; the default's is the context's own. */
static CUresult resize_stacks(struct context *context, size_t bytes)
{
    size_t beyond = bytes > DEFAULT_STACK ? bytes - DEFAULT_STACK : 0;
    uint64_t wanted = round_up(beyond * RESIDENT_THREADS, GRANULE) / GRANULE, had = context->stack_granules;
    if (wanted > had && !physical_take(context->device, wanted - had))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (wanted < had)
        physical_give(context->device, had - wanted);
    context->stack_granules = wanted;
    return CUDA_SUCCESS;
}

static CUresult set_limit(unsigned limit, size_t value)
{
    if (limit >= CONTEXT_LIMITS)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    CUresult result = limit == CU_LIMIT_STACK_SIZE ? resize_stacks(context_current(), value) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        return result;
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

/* Settings of caches and shared memory: accepted, and without effect. */
static CUresult get_setting(unsigned *setting)
{
    if (!setting)
        return CUDA_ERROR_INVALID_VALUE;
    *setting = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCacheConfig(unsigned int *setting)
{
    return CALL("cuCtxGetCacheConfig", NEEDS_CONTEXT, get_setting(setting));
}

EXPORT CUresult cuCtxSetCacheConfig(unsigned int setting)
{
    return CALL("cuCtxSetCacheConfig", NEEDS_CONTEXT, setting > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

EXPORT CUresult cuCtxGetSharedMemConfig(unsigned int *setting)
{
    return CALL("cuCtxGetSharedMemConfig", NEEDS_CONTEXT, get_setting(setting));
}

EXPORT CUresult cuCtxSetSharedMemConfig(unsigned int setting)
{
    return CALL("cuCtxSetSharedMemConfig", NEEDS_CONTEXT,
                setting > 2 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

EXPORT CUresult cuCtxResetPersistingL2Cache(void)
{
    return CALL("cuCtxResetPersistingL2Cache", NEEDS_CONTEXT, CUDA_SUCCESS);
}

/* Profiling from the program: nothing to do, and no error. */
EXPORT CUresult cuProfilerStart(void)
{
    return CALL("cuProfilerStart", NEEDS_CONTEXT, CUDA_SUCCESS);
}

EXPORT CUresult cuProfilerStop(void)
{
    return CALL("cuProfilerStop", NEEDS_CONTEXT, CUDA_SUCCESS);
}
