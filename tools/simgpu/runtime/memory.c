/* Linear memory: device, managed, page-locked, registered, stream-ordered; between processes. */
#include "runtime.h"

#define DEVICE_POINTER(pointer) ((CUdeviceptr)(pointer))
#define ELEMENT                 4 /* bytes; what the runtime tells cuMemAllocPitch */

/* A size of 0 is no error in the runtime: it gives a null pointer. */
static cudaError_t allocate(void **out, size_t bytes)
{
    CUdeviceptr address = 0;
    if (!out)
        return cudaErrorInvalidValue;
    CUresult result = bytes ? driver.cuMemAlloc(&address, bytes) : CUDA_SUCCESS;
    *out = (void *)address;
    return (cudaError_t)result;
}

EXPORT cudaError_t cudaMalloc(void **out, size_t bytes)
{
    return RUN(allocate(out, bytes));
}

static cudaError_t allocate_pitch(void **out, size_t *pitch, size_t width, size_t height)
{
    CUdeviceptr address = 0;
    if (!out || !pitch)
        return cudaErrorInvalidValue;
    CUresult result = CUDA_SUCCESS;
    if (width && height)
        result = driver.cuMemAllocPitch(&address, pitch, width, height, ELEMENT);
    else
        *pitch = 0;
    *out = (void *)address;
    return (cudaError_t)result;
}

EXPORT cudaError_t cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height)
{
    return RUN(allocate_pitch(out, pitch, width, height));
}

static cudaError_t allocate_3d(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
    size_t rows;
    if (!out || __builtin_mul_overflow(extent.height, extent.depth, &rows))
        return cudaErrorInvalidValue;
    out->xsize = extent.width;
    out->ysize = extent.height;
    return allocate_pitch(&out->ptr, &out->pitch, extent.width, rows);
}

EXPORT cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
    return RUN(allocate_3d(out, extent));
}

static cudaError_t allocate_managed(void **out, size_t bytes, unsigned flags)
{
    CUdeviceptr address = 0;
    if (!out)
        return cudaErrorInvalidValue;
    CUresult result = driver.cuMemAllocManaged(&address, bytes, flags);
    *out = (void *)address;
    return (cudaError_t)result;
}

EXPORT cudaError_t cudaMallocManaged(void **out, size_t bytes, unsigned int flags)
{
    return RUN(allocate_managed(out, bytes, flags));
}

EXPORT cudaError_t cudaFree(void *pointer)
{
    return RUN(pointer ? driver.cuMemFree(DEVICE_POINTER(pointer)) : CUDA_SUCCESS);
}

/* ---- on a stream ---- */

STREAMED(cudaMallocAsync, (void **out, size_t bytes, cudaStream_t stream),
         driver.cuMemAllocAsync((CUdeviceptr *)out, bytes, stream),
         driver.cuMemAllocAsync_ptsz((CUdeviceptr *)out, bytes, stream))
STREAMED(cudaMallocFromPoolAsync, (void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
         driver.cuMemAllocFromPoolAsync((CUdeviceptr *)out, bytes, pool, stream),
         driver.cuMemAllocFromPoolAsync_ptsz((CUdeviceptr *)out, bytes, pool, stream))
STREAMED(cudaFreeAsync, (void *pointer, cudaStream_t stream),
         driver.cuMemFreeAsync(DEVICE_POINTER(pointer), stream),
         driver.cuMemFreeAsync_ptsz(DEVICE_POINTER(pointer), stream))

/* ---- page-locked and registered ---- */

static cudaError_t allocate_host(void **out, size_t bytes, unsigned flags)
{
    if (!out)
        return cudaErrorInvalidValue;
    *out = NULL;
    return bytes ? (cudaError_t)driver.cuMemHostAlloc(out, bytes, flags) : cudaSuccess;
}

EXPORT cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    return RUN(allocate_host(out, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
}

EXPORT cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned int flags)
{
    return RUN(allocate_host(out, bytes, flags | CU_MEMHOSTALLOC_PORTABLE));
}

EXPORT cudaError_t cudaFreeHost(void *pointer)
{
    return RUN(pointer ? driver.cuMemFreeHost(pointer) : CUDA_SUCCESS);
}

EXPORT cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags)
{
    return RUN(driver.cuMemHostRegister(pointer, bytes, flags));
}

EXPORT cudaError_t cudaHostUnregister(void *pointer)
{
    return RUN(driver.cuMemHostUnregister(pointer));
}

EXPORT cudaError_t cudaHostGetDevicePointer(void **out, void *pointer, unsigned int flags)
{
    return RUN(driver.cuMemHostGetDevicePointer((CUdeviceptr *)out, pointer, flags));
}

EXPORT cudaError_t cudaHostGetFlags(unsigned int *flags, void *pointer)
{
    return RUN(driver.cuMemHostGetFlags(flags, pointer));
}

/* ---- questions ---- */

EXPORT cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    return RUN(driver.cuMemGetInfo(free_bytes, total_bytes));
}

/* What CUDA 12 and earlier know of it; later versions only added reserved room. */
struct attributes {
    cudaMemoryType type;
    int device;
    void *device_pointer;
    void *host_pointer;
};

static cudaError_t pointer_attributes(struct attributes *out, const void *pointer)
{
    unsigned type = 0, managed = 0;
    int device = -2;
    CUdeviceptr device_pointer = 0;
    void *host_pointer = NULL;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                        CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                        CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *values[] = {&type, &managed, &device, &device_pointer, &host_pointer};
    if (!out)
        return cudaErrorInvalidValue;
    CUresult result = driver.cuPointerGetAttributes(5, attributes, values, DEVICE_POINTER(pointer));
    if (result != CUDA_SUCCESS)
        return (cudaError_t)result;
    out->type = managed                      ? cudaMemoryTypeManaged
                : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                : type                       ? cudaMemoryTypeDevice
                                             : cudaMemoryTypeUnregistered;
    out->device = device;
    out->device_pointer = (void *)device_pointer;
    out->host_pointer = type ? host_pointer : (void *)pointer;
    return cudaSuccess;
}

EXPORT cudaError_t cudaPointerGetAttributes(struct attributes *out, const void *pointer)
{
    return RUN(pointer_attributes(out, pointer));
}

/* ---- between processes and other APIs ---- */

EXPORT cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer)
{
    return RUN(driver.cuIpcGetMemHandle(handle, DEVICE_POINTER(pointer)));
}

EXPORT cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle, unsigned int flags)
{
    return RUN(driver.cuIpcOpenMemHandle((CUdeviceptr *)out, handle, flags));
}

EXPORT cudaError_t cudaIpcCloseMemHandle(void *pointer)
{
    return RUN(driver.cuIpcCloseMemHandle(DEVICE_POINTER(pointer)));
}

EXPORT cudaError_t cudaImportExternalMemory(cudaExternalMemory_t *out,
                                            const cudaExternalMemoryHandleDesc *handle)
{
    return RUN(driver.cuImportExternalMemory(out, handle));
}

EXPORT cudaError_t cudaExternalMemoryGetMappedBuffer(void **out, cudaExternalMemory_t memory,
                                                     const cudaExternalMemoryBufferDesc *buffer)
{
    return RUN(driver.cuExternalMemoryGetMappedBuffer((CUdeviceptr *)out, memory, buffer));
}

EXPORT cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t memory)
{
    return RUN(driver.cuDestroyExternalMemory(memory));
}
