/* The primary context of each device: made when it is first retained, kept for the life of the process. */
#include "entry.h"

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

CUresult primary_release(struct device *device)
{
    if (!device->primary_references)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->primary_references == 0 && device->primary->alive)
        context_stop(device->primary);
    return CUDA_SUCCESS;
}

static CUresult release(CUdevice ordinal)
{
    struct device *device = device_get(ordinal);
    return device ? primary_release(device) : CUDA_ERROR_INVALID_DEVICE;
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
