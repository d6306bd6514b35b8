/* Device memory the plain way: cuMemAlloc, pitched, managed, and cuMemFree, which ends most kinds. */
#include "entry.h"
#include "memory.h"

#define PITCH_ALIGNMENT 512

static CUresult finish(struct block *block, struct context *context, CUdeviceptr *out)
{
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    block->device = context->device;
    block_own(block, context);
    *out = block->address;
    return CUDA_SUCCESS;
}

/* The device's granule size limits nothing here: a size of 0 or an absurd one is refused. */
static CUresult plain_allocate(uint64_t bytes, CUdeviceptr *out)
{
    struct context *context = context_current();
    if (!out || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return finish(block_new(&context->device_memory, bytes, BLOCK_PLAIN), context, out);
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    return CALL("cuMemAlloc", NEEDS_MEMORY_CALL, plain_allocate(bytes, address));
}

static CUresult allocate_low(CUdeviceptr_v1 *out, unsigned bytes)
{
    struct context *context = context_current();
    if (!out || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    context->low_memory.window = low_window(context->device);
    CUdeviceptr address;
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    if (context->low_memory.window)
        result = finish(block_new(&context->low_memory, bytes, BLOCK_PLAIN), context, &address);
    if (result == CUDA_SUCCESS)
        *out = (CUdeviceptr_v1)address;
    return result;
}

EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *address, unsigned int bytes)
{
    return CALL("cuMemAlloc", NEEDS_MEMORY_CALL, allocate_low(address, bytes));
}

/* Pitch and bytes of rows of `width`; false when that is no size. */
static bool pitched_size(uint64_t width, uint64_t height, unsigned element, uint64_t *pitch, uint64_t *bytes)
{
    if (!width || !height || (element != 4 && element != 8 && element != 16) || width > UINT64_MAX / 2)
        return false;
    *pitch = round_up(width, PITCH_ALIGNMENT);
    return !__builtin_mul_overflow(*pitch, height, bytes);
}

static CUresult allocate_pitch(CUdeviceptr *out, size_t *out_pitch, size_t width, size_t height,
                               unsigned element)
{
    uint64_t pitch, bytes;
    if (!out || !out_pitch || !pitched_size(width, height, element, &pitch, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = plain_allocate(bytes, out);
    if (result == CUDA_SUCCESS)
        *out_pitch = pitch;
    return result;
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                                   unsigned int element)
{
    return CALL("cuMemAllocPitch", NEEDS_MEMORY_CALL, allocate_pitch(address, pitch, width, height, element));
}

static CUresult allocate_pitch_low(CUdeviceptr_v1 *out, unsigned *out_pitch, unsigned width, unsigned height,
                                   unsigned element)
{
    uint64_t pitch, bytes;
    if (!out || !out_pitch || !pitched_size(width, height, element, &pitch, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = bytes > UINT32_MAX ? CUDA_ERROR_OUT_OF_MEMORY : allocate_low(out, (unsigned)bytes);
    if (result == CUDA_SUCCESS)
        *out_pitch = (unsigned)pitch;
    return result;
}

EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1 *address, unsigned int *pitch, unsigned int width,
                                unsigned int height, unsigned int element)
{
    return CALL("cuMemAllocPitch", NEEDS_MEMORY_CALL,
                allocate_pitch_low(address, pitch, width, height, element));
}

static CUresult allocate_managed(CUdeviceptr *out, size_t bytes, unsigned flags)
{
    struct context *context = context_current();
    if (!out || !bytes || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    if (!context->managed_memory.window)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct block *block = block_new(&context->managed_memory, bytes, BLOCK_MANAGED);
    if (block) {
        block->flags = flags;
        span_touch(block->span, block->address, bytes); /* the program may write there at any time */
    }
    return finish(block, context, out);
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    return CALL("cuMemAllocManaged", NEEDS_MEMORY_CALL, allocate_managed(address, bytes, flags));
}

CUresult plain_free(CUdeviceptr address)
{
    if (!address)
        return CUDA_SUCCESS;
    struct block *block = block_starting(address);
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    switch (block->kind) {
    case BLOCK_PLAIN:
    case BLOCK_MANAGED:
    case BLOCK_EXTERNAL:
    case BLOCK_POOL_IMPORT:
        block_end(block);
        return CUDA_SUCCESS;
    case BLOCK_POOL:
        return pool_free_block(block);
    case BLOCK_GRAPH:
        return graph_free_block(block);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address)
{
    return CALL("cuMemFree", NEEDS_MEMORY_CALL, plain_free(address));
}

EXPORT CUresult cuMemFree(CUdeviceptr_v1 address)
{
    return cuMemFree_v2(address);
}
