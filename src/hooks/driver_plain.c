/* Plain, pitched and managed device memory, and cuMemFree, which frees these and more. */
#include "hooks/call.h"
#include "hooks/graphs.h"

HOOK(cuMemAlloc, (CUdeviceptr_v1 * address, unsigned int bytes))
{
    FORWARD(cuMemAlloc);
    CUresult rc = REAL(address, bytes);
    call_allocated(
        &call, rc,
        &(struct allocation){BLOCK(PLAIN, DEVICE, ADDRESS), .key = GRANTED(*address), .size = bytes});
    return call_end(&call, rc);
}

HOOK(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))
{
    FORWARD(cuMemAlloc_v2);
    CUresult rc = REAL(address, bytes);
    call_allocated(
        &call, rc,
        &(struct allocation){BLOCK(PLAIN, DEVICE, ADDRESS), .key = GRANTED(*address), .size = bytes});
    return call_end(&call, rc);
}

/* What was granted is pitch × height; of a refusal only the width is known. */
HOOK(cuMemAllocPitch, (CUdeviceptr_v1 * address, unsigned int *pitch, unsigned int width, unsigned int height,
                       unsigned int element))
{
    FORWARD(cuMemAllocPitch);
    CUresult rc = REAL(address, pitch, width, height, element);
    uint64_t row = rc == CUDA_SUCCESS ? *pitch : width;
    call_allocated(&call, rc,
                   &(struct allocation){BLOCK(PITCHED, DEVICE, ADDRESS), .key = GRANTED(*address),
                                        .size = row * height});
    return call_end(&call, rc);
}

HOOK(cuMemAllocPitch_v2,
     (CUdeviceptr * address, size_t *pitch, size_t width, size_t height, unsigned int element))
{
    FORWARD(cuMemAllocPitch_v2);
    CUresult rc = REAL(address, pitch, width, height, element);
    uint64_t row = rc == CUDA_SUCCESS ? *pitch : width;
    call_allocated(&call, rc,
                   &(struct allocation){BLOCK(PITCHED, DEVICE, ADDRESS), .key = GRANTED(*address),
                                        .size = row * height});
    return call_end(&call, rc);
}

HOOK(cuMemAllocManaged, (CUdeviceptr * address, size_t bytes, unsigned int flags))
{
    FORWARD(cuMemAllocManaged);
    CUresult rc = REAL(address, bytes, flags);
    call_allocated(
        &call, rc,
        &(struct allocation){BLOCK(MANAGED, MANAGED, ADDRESS), .key = GRANTED(*address), .size = bytes});
    return call_end(&call, rc);
}

HOOK(cuMemFree, (CUdeviceptr_v1 address))
{
    struct freeing freeing;
    FORWARD(cuMemFree);
    call_free_address(&call, &freeing, address);
    CUresult rc = REAL(address);
    call_freed_address(&call, rc, &freeing, address);
    return call_end(&call, rc);
}

HOOK(cuMemFree_v2, (CUdeviceptr address))
{
    struct freeing freeing;
    FORWARD(cuMemFree_v2);
    call_free_address(&call, &freeing, address);
    CUresult rc = REAL(address);
    call_freed_address(&call, rc, &freeing, address);
    return call_end(&call, rc);
}
