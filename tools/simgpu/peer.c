/* One device's access to another's memory. Addresses are unified, so only the bookkeeping is to be simulated.
 */
#include "entry.h"

static CUresult can_access(int *can, CUdevice ordinal, CUdevice peer)
{
    if (!device_get(ordinal) || !device_get(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!can)
        return CUDA_ERROR_INVALID_VALUE;
    *can = ordinal != peer;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    return CALL("cuDeviceCanAccessPeer", NEEDS_INIT, can_access(can, device, peer));
}

enum { PERFORMANCE_RANK = 1, ACCESS = 2, NATIVE_ATOMICS = 3, ARRAY_ACCESS = 4, SOME_ATOMICS = 5 };

static CUresult peer_attribute(int *value, int attribute, CUdevice ordinal, CUdevice peer)
{
    if (!device_get(ordinal) || !device_get(peer) || ordinal == peer)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || attribute < PERFORMANCE_RANK || attribute > SOME_ATOMICS)
        return CUDA_ERROR_INVALID_VALUE;
    *value = attribute != SOME_ATOMICS && attribute != PERFORMANCE_RANK;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice device, CUdevice peer)
{
    return CALL("cuDeviceGetP2PAttribute", NEEDS_INIT, peer_attribute(value, attribute, device, peer));
}

static CUresult enable(CUcontext handle, unsigned flags)
{
    struct context *context = context_current();
    const struct context *peer = context_get(handle);
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!peer || peer == context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (peer->device == context->device)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    unsigned bit = 1u << peer->device->ordinal;
    if (context->peers & bit)
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    context->peers |= bit;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    return CALL("cuCtxEnablePeerAccess", NEEDS_CONTEXT, enable(peer, flags));
}

static CUresult disable(CUcontext handle)
{
    struct context *context = context_current();
    const struct context *peer = context_get(handle);
    if (!peer)
        return CUDA_ERROR_INVALID_CONTEXT;
    unsigned bit = 1u << peer->device->ordinal;
    if (!(context->peers & bit))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    context->peers &= ~bit;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    return CALL("cuCtxDisablePeerAccess", NEEDS_CONTEXT, disable(peer));
}
