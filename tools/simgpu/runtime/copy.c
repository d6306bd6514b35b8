/* Copies and fills. Addresses are unified, so the direction a caller names only has to be one. */
#include "runtime.h"

#include <stdbool.h>

#define ADDRESS(pointer) ((CUdeviceptr)(pointer))

static bool is_kind(cudaMemcpyKind kind)
{
    return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

/* Where the caller names a direction, the function that holds both sides to it. */
static cudaError_t copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    if (!is_kind(kind))
        return cudaErrorInvalidMemcpyDirection;
    if (kind == cudaMemcpyHostToDevice)
        return (cudaError_t)driver.cuMemcpyHtoD(ADDRESS(to), from, bytes);
    if (kind == cudaMemcpyDeviceToHost)
        return (cudaError_t)driver.cuMemcpyDtoH(to, ADDRESS(from), bytes);
    if (kind == cudaMemcpyDeviceToDevice)
        return (cudaError_t)driver.cuMemcpyDtoD(ADDRESS(to), ADDRESS(from), bytes);
    return (cudaError_t)driver.cuMemcpy(ADDRESS(to), ADDRESS(from), bytes);
}

EXPORT cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    return RUN(copy(to, from, bytes, kind));
}

EXPORT cudaError_t cudaMemcpy_ptds(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    return RUN(copy(to, from, bytes, kind));
}

#define CHECKED(kind, expression)                                                                            \
    (is_kind(kind) ? (cudaError_t)(expression) : cudaErrorInvalidMemcpyDirection)

STREAMED(cudaMemcpyAsync,
         (void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
         CHECKED(kind, driver.cuMemcpyAsync(ADDRESS(to), ADDRESS(from), bytes, stream)),
         CHECKED(kind, driver.cuMemcpyAsync_ptsz(ADDRESS(to), ADDRESS(from), bytes, stream)))

static CUDA_MEMCPY2D rectangle(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                               size_t height)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = ADDRESS(from),
                           .srcPitch = from_pitch,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = ADDRESS(to),
                           .dstPitch = to_pitch,
                           .WidthInBytes = width,
                           .Height = height};
}

EXPORT cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                                size_t height, cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D area = rectangle(to, to_pitch, from, from_pitch, width, height);
    return RUN(CHECKED(kind, driver.cuMemcpy2D(&area)));
}

EXPORT cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    CUDA_MEMCPY2D area = rectangle(to, to_pitch, from, from_pitch, width, height);
    return RUN(CHECKED(kind, driver.cuMemcpy2DAsync(&area, stream)));
}

EXPORT cudaError_t cudaMemcpy2DAsync_ptsz(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                          size_t width, size_t height, cudaMemcpyKind kind,
                                          cudaStream_t stream)
{
    CUDA_MEMCPY2D area = rectangle(to, to_pitch, from, from_pitch, width, height);
    return RUN(CHECKED(kind, driver.cuMemcpy2DAsync_ptsz(&area, stream)));
}

EXPORT cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                       size_t width, size_t height, cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D area = rectangle(NULL, 0, from, pitch, width, height);
    area.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    area.dstArray = (CUarray)to;
    area.dstXInBytes = x;
    area.dstY = y;
    return RUN(CHECKED(kind, driver.cuMemcpy2D(&area)));
}

EXPORT cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                                         size_t width, size_t height, cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D area = rectangle(to, pitch, NULL, 0, width, height);
    area.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    area.srcArray = (CUarray)from;
    area.srcXInBytes = x;
    area.srcY = y;
    return RUN(CHECKED(kind, driver.cuMemcpy2D(&area)));
}

/* Linear memory only: with arrays, positions count elements, whose size the runtime would have to ask for. */
static cudaError_t volume(CUDA_MEMCPY3D *out, const struct cudaMemcpy3DParms *copy_3d)
{
    if (!copy_3d || copy_3d->srcArray || copy_3d->dstArray)
        return copy_3d ? cudaErrorNotSupported : cudaErrorInvalidValue;
    *out = (CUDA_MEMCPY3D){.srcXInBytes = copy_3d->srcPos.x,
                           .srcY = copy_3d->srcPos.y,
                           .srcZ = copy_3d->srcPos.z,
                           .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = ADDRESS(copy_3d->srcPtr.ptr),
                           .srcPitch = copy_3d->srcPtr.pitch,
                           .srcHeight = copy_3d->srcPtr.ysize,
                           .dstXInBytes = copy_3d->dstPos.x,
                           .dstY = copy_3d->dstPos.y,
                           .dstZ = copy_3d->dstPos.z,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = ADDRESS(copy_3d->dstPtr.ptr),
                           .dstPitch = copy_3d->dstPtr.pitch,
                           .dstHeight = copy_3d->dstPtr.ysize,
                           .WidthInBytes = copy_3d->extent.width,
                           .Height = copy_3d->extent.height,
                           .Depth = copy_3d->extent.depth};
    return is_kind(copy_3d->kind) ? cudaSuccess : cudaErrorInvalidMemcpyDirection;
}

EXPORT cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *copy_3d)
{
    CUDA_MEMCPY3D own;
    cudaError_t error = volume(&own, copy_3d);
    return RUN(error != cudaSuccess ? error : (cudaError_t)driver.cuMemcpy3D(&own));
}

EXPORT cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *copy_3d, cudaStream_t stream)
{
    CUDA_MEMCPY3D own;
    cudaError_t error = volume(&own, copy_3d);
    return RUN(error != cudaSuccess ? error : (cudaError_t)driver.cuMemcpy3DAsync(&own, stream));
}

EXPORT cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    (void)to_device, (void)from_device; /* addresses are unified */
    return RUN(driver.cuMemcpy(ADDRESS(to), ADDRESS(from), bytes));
}

EXPORT cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                       size_t bytes, cudaStream_t stream)
{
    (void)to_device, (void)from_device;
    return RUN(driver.cuMemcpyAsync(ADDRESS(to), ADDRESS(from), bytes, stream));
}

EXPORT cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    return RUN(driver.cuMemsetD8(ADDRESS(to), (unsigned char)value, bytes));
}

EXPORT cudaError_t cudaMemset_ptds(void *to, int value, size_t bytes)
{
    return RUN(driver.cuMemsetD8(ADDRESS(to), (unsigned char)value, bytes));
}

STREAMED(cudaMemsetAsync, (void *to, int value, size_t bytes, cudaStream_t stream),
         driver.cuMemsetD8Async(ADDRESS(to), (unsigned char)value, bytes, stream),
         driver.cuMemsetD8Async_ptsz(ADDRESS(to), (unsigned char)value, bytes, stream))

EXPORT cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
    return RUN(driver.cuMemsetD2D8(ADDRESS(to), pitch, (unsigned char)value, width, height));
}

STREAMED(cudaMemset2DAsync,
         (void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
         driver.cuMemsetD2D8Async(ADDRESS(to), pitch, (unsigned char)value, width, height, stream),
         driver.cuMemsetD2D8Async_ptsz(ADDRESS(to), pitch, (unsigned char)value, width, height, stream))

EXPORT cudaError_t cudaMemset3D(struct cudaPitchedPtr to, int value, struct cudaExtent extent)
{
    return RUN(driver.cuMemsetD2D8(ADDRESS(to.ptr), to.pitch, (unsigned char)value, extent.width,
                                   extent.height * extent.depth));
}
