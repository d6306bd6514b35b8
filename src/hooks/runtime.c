/*
 * The CUDA runtime's own names, for programs that use it as a shared library: an allocation is then known by
 * the name that the program called, and its stack begins there. What is allocated, the driver's hooks
 * underneath see and say.
 *
 * Nothing here calls the runtime: its last error is the program's.
 */
#include "hooks/call.h"

RUNTIME_HOOK(cudaMalloc, (void **address, size_t bytes))
{
    FORWARD_RUNTIME(cudaMalloc);
    cudaError_t rc = REAL_RUNTIME(address, bytes);
    return call_end_runtime(
        &call, rc,
        &(struct allocation){BLOCK(PLAIN, DEVICE, ADDRESS), .key = GRANTED(*address), .size = bytes});
}

RUNTIME_HOOK(cudaMallocManaged, (void **address, size_t bytes, unsigned int flags))
{
    FORWARD_RUNTIME(cudaMallocManaged);
    cudaError_t rc = REAL_RUNTIME(address, bytes, flags);
    return call_end_runtime(
        &call, rc,
        &(struct allocation){BLOCK(MANAGED, MANAGED, ADDRESS), .key = GRANTED(*address), .size = bytes});
}

RUNTIME_HOOK(cudaMallocHost, (void **address, size_t bytes))
{
    FORWARD_RUNTIME(cudaMallocHost);
    cudaError_t rc = REAL_RUNTIME(address, bytes);
    return call_end_runtime(
        &call, rc,
        &(struct allocation){BLOCK(PINNED, PINNED, ADDRESS), .key = GRANTED(*address), .size = bytes});
}

RUNTIME_HOOK(cudaHostAlloc, (void **address, size_t bytes, unsigned int flags))
{
    FORWARD_RUNTIME(cudaHostAlloc);
    cudaError_t rc = REAL_RUNTIME(address, bytes, flags);
    return call_end_runtime(
        &call, rc,
        &(struct allocation){BLOCK(PINNED, PINNED, ADDRESS), .key = GRANTED(*address), .size = bytes});
}

RUNTIME_HOOK(cudaHostRegister, (void *address, size_t bytes, unsigned int flags))
{
    FORWARD_RUNTIME(cudaHostRegister);
    cudaError_t rc = REAL_RUNTIME(address, bytes, flags);
    return call_end_runtime(&call, rc,
                            &(struct allocation){BLOCK(REGISTERED, REGISTERED, REGISTERED),
                                                 .key = (uintptr_t)address, .size = bytes});
}

RUNTIME_HOOK(cudaMallocPitch, (void **address, size_t *pitch, size_t width, size_t height))
{
    FORWARD_RUNTIME(cudaMallocPitch);
    cudaError_t rc = REAL_RUNTIME(address, pitch, width, height);
    uint64_t row = rc == cudaSuccess ? *pitch : width;
    return call_end_runtime(&call, rc,
                            &(struct allocation){BLOCK(PITCHED, DEVICE, ADDRESS), .key = GRANTED(*address),
                                                 .size = row * height});
}

RUNTIME_HOOK(cudaMalloc3D, (struct cudaPitchedPtr * pitched, struct cudaExtent extent))
{
    FORWARD_RUNTIME(cudaMalloc3D);
    cudaError_t rc = REAL_RUNTIME(pitched, extent);
    uint64_t row = rc == cudaSuccess ? pitched->pitch : extent.width;
    return call_end_runtime(&call, rc,
                            &(struct allocation){BLOCK(PITCHED, DEVICE, ADDRESS),
                                                 .key = GRANTED(pitched->ptr),
                                                 .size = row * extent.height * extent.depth});
}

/* Stream-ordered memory that is captured is a graph's: only the driver's hooks can tell, so nothing stands in
 * for them. */
RUNTIME_HOOK(cudaMallocAsync, (void **address, size_t bytes, cudaStream_t stream))
{
    FORWARD_RUNTIME(cudaMallocAsync);
    cudaError_t rc = REAL_RUNTIME(address, bytes, stream);
    return call_end_runtime(
        &call, rc,
        &(struct allocation){BLOCK(POOL, DEVICE, ADDRESS), .key = GRANTED(*address), .size = bytes});
}

RUNTIME_HOOK(cudaMallocAsync_ptsz, (void **address, size_t bytes, cudaStream_t stream))
{
    FORWARD_RUNTIME(cudaMallocAsync_ptsz);
    cudaError_t rc = REAL_RUNTIME(address, bytes, stream);
    return call_end_runtime(
        &call, rc,
        &(struct allocation){BLOCK(POOL, DEVICE, ADDRESS), .key = GRANTED(*address), .size = bytes});
}

RUNTIME_HOOK(cudaMallocFromPoolAsync, (void **address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream))
{
    FORWARD_RUNTIME(cudaMallocFromPoolAsync);
    cudaError_t rc = REAL_RUNTIME(address, bytes, pool, stream);
    return call_end_runtime(
        &call, rc,
        &(struct allocation){BLOCK(POOL, DEVICE, ADDRESS), .key = GRANTED(*address), .size = bytes});
}

RUNTIME_HOOK(cudaMallocFromPoolAsync_ptsz,
             (void **address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream))
{
    FORWARD_RUNTIME(cudaMallocFromPoolAsync_ptsz);
    cudaError_t rc = REAL_RUNTIME(address, bytes, pool, stream);
    return call_end_runtime(
        &call, rc,
        &(struct allocation){BLOCK(POOL, DEVICE, ADDRESS), .key = GRANTED(*address), .size = bytes});
}

RUNTIME_HOOK(cudaFree, (void *address))
{
    FORWARD_RUNTIME(cudaFree);
    cudaError_t rc = REAL_RUNTIME(address);
    return call_end_runtime_free(&call, rc, KEY_ADDRESS, (uintptr_t)address);
}

RUNTIME_HOOK(cudaFreeAsync, (void *address, cudaStream_t stream))
{
    FORWARD_RUNTIME(cudaFreeAsync);
    cudaError_t rc = REAL_RUNTIME(address, stream);
    return call_end_runtime_free(&call, rc, KEY_ADDRESS, (uintptr_t)address);
}

RUNTIME_HOOK(cudaFreeAsync_ptsz, (void *address, cudaStream_t stream))
{
    FORWARD_RUNTIME(cudaFreeAsync_ptsz);
    cudaError_t rc = REAL_RUNTIME(address, stream);
    return call_end_runtime_free(&call, rc, KEY_ADDRESS, (uintptr_t)address);
}

RUNTIME_HOOK(cudaFreeHost, (void *address))
{
    FORWARD_RUNTIME(cudaFreeHost);
    cudaError_t rc = REAL_RUNTIME(address);
    return call_end_runtime_free(&call, rc, KEY_ADDRESS, (uintptr_t)address);
}

RUNTIME_HOOK(cudaHostUnregister, (void *address))
{
    FORWARD_RUNTIME(cudaHostUnregister);
    cudaError_t rc = REAL_RUNTIME(address);
    return call_end_runtime_free(&call, rc, KEY_REGISTERED, (uintptr_t)address);
}
