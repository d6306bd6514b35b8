/*
 * Host memory the driver knows: page-locked memory it allocates, and the program's own memory registered with
 * it. Registered ranges stand in an array sorted by address; there are few of them.
 */
#include "entry.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HOST_FLAGS (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define REGISTER_FLAGS                                                                                       \
    (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |              \
     CU_MEMHOSTREGISTER_READ_ONLY)

static struct {
    struct block **blocks;
    size_t count, room;
} registered;

/* The first registered range that ends after an address. */
static size_t registered_after(uint64_t address)
{
    size_t low = 0, high = registered.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (registered.blocks[middle]->address + registered.blocks[middle]->size > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct block *registered_at(uint64_t address)
{
    size_t at = registered_after(address);
    struct block *block = at < registered.count ? registered.blocks[at] : NULL;
    return block && block->address <= address ? block : NULL;
}

static void registered_forget(struct block *block)
{
    size_t at = registered_after(block->address);
    registered.count--;
    memmove(&registered.blocks[at], &registered.blocks[at + 1],
            (registered.count - at) * sizeof(struct block *));
}

/* ---- page-locked ---- */

static uint64_t host_memory_bytes(void)
{
    static uint64_t bytes;
    if (!bytes)
        bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return bytes;
}

static CUresult allocate_host(void **out, size_t bytes, unsigned flags)
{
    struct context *context = context_current();
    if (!out || !bytes || flags & ~(unsigned)HOST_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context->pinned_memory.window || bytes > host_memory_bytes())
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct block *block = block_new(&context->pinned_memory, bytes, BLOCK_PINNED);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    block->device = context->device;
    block->flags = flags;
    block_own(block, context);
    span_touch(block->span, block->address, bytes);
    *out = (void *)block->address;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocHost_v2(void **out, size_t bytes)
{
    return CALL("cuMemAllocHost", NEEDS_MEMORY_CALL, allocate_host(out, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
}

EXPORT CUresult cuMemAllocHost(void **out, unsigned int bytes)
{
    return cuMemAllocHost_v2(out, bytes);
}

EXPORT CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned int flags)
{
    return CALL("cuMemHostAlloc", NEEDS_MEMORY_CALL, allocate_host(out, bytes, flags));
}

static struct block *pinned_starting(const void *address)
{
    struct block *block = block_starting((uint64_t)address);
    return block && block->kind == BLOCK_PINNED ? block : NULL;
}

static CUresult free_host(void *address)
{
    struct block *block = pinned_starting(address);
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    block_end(block);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFreeHost(void *address)
{
    return CALL("cuMemFreeHost", NEEDS_MEMORY_CALL, free_host(address));
}

static CUresult device_pointer(CUdeviceptr *out, const void *address, unsigned flags)
{
    const struct block *block = block_at((uint64_t)address);
    if (!out || flags || !block || (block->kind != BLOCK_PINNED && block->kind != BLOCK_REGISTERED))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)address;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *address, unsigned int flags)
{
    return CALL("cuMemHostGetDevicePointer", NEEDS_CONTEXT, device_pointer(out, address, flags));
}

EXPORT CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1 *out, void *address, unsigned int flags)
{
    CUdeviceptr wide = 0;
    CUresult result =
        CALL("cuMemHostGetDevicePointer", NEEDS_CONTEXT, device_pointer(out ? &wide : NULL, address, flags));
    if (result == CUDA_SUCCESS && wide > UINT32_MAX)
        result = CUDA_ERROR_INVALID_VALUE; /* has no 32-bit address */
    if (result == CUDA_SUCCESS)
        *out = (CUdeviceptr_v1)wide;
    return result;
}

static CUresult get_flags(unsigned *flags, const void *address)
{
    const struct block *block = block_at((uint64_t)address);
    if (!flags || !block || block->kind != BLOCK_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = block->flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostGetFlags(unsigned int *flags, void *address)
{
    return CALL("cuMemHostGetFlags", NEEDS_CONTEXT, get_flags(flags, address));
}

/* ---- registered ---- */

/* Whether every page of the range is mapped in this process. */
static bool range_is_mapped(uint64_t address, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = address / page * page;
    unsigned char seen[1024];
    for (uint64_t at = start; at < address + bytes; at += sizeof seen * page) {
        uint64_t length = address + bytes - at;
        if (length > sizeof seen * page)
            length = sizeof seen * page;
        if (mincore((void *)at, length, seen))
            return false;
    }
    return true;
}

static bool registered_grow(void)
{
    if (registered.count < registered.room)
        return true;
    size_t room = registered.room ? registered.room * 2 : 64;
    struct block **blocks = realloc(registered.blocks, room * sizeof *blocks);
    if (!blocks)
        return false;
    registered.blocks = blocks;
    registered.room = room;
    return true;
}

static CUresult register_host(void *address, size_t bytes, unsigned flags)
{
    struct context *context = context_current();
    uint64_t start = (uint64_t)address, end;
    if (!address || !bytes || flags & ~(unsigned)REGISTER_FLAGS || __builtin_add_overflow(start, bytes, &end))
        return CUDA_ERROR_INVALID_VALUE;
    size_t at = registered_after(start);
    if (at < registered.count && registered.blocks[at]->address < end)
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    const struct block *there = block_at(start);
    if (there)
        return there->kind == BLOCK_PINNED ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                           : CUDA_ERROR_INVALID_VALUE;
    if (!range_is_mapped(start, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    struct block *block = registered_grow() ? block_on(NULL, start, bytes, BLOCK_REGISTERED) : NULL;
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    block->flags = flags;
    block->device = context->device;
    block->on_end = registered_forget;
    block_own(block, context);
    memmove(&registered.blocks[at + 1], &registered.blocks[at],
            (registered.count - at) * sizeof(struct block *));
    registered.blocks[at] = block;
    registered.count++;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags)
{
    return CALL("cuMemHostRegister", NEEDS_MEMORY_CALL, register_host(address, bytes, flags));
}

EXPORT CUresult cuMemHostRegister(void *address, size_t bytes, unsigned int flags)
{
    return cuMemHostRegister_v2(address, bytes, flags);
}

static CUresult unregister_host(void *address)
{
    struct block *block = registered_at((uint64_t)address);
    if (!block || block->address != (uint64_t)address)
        return address ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : CUDA_ERROR_INVALID_VALUE;
    block_end(block);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostUnregister(void *address)
{
    return CALL("cuMemHostUnregister", NEEDS_MEMORY_CALL, unregister_host(address));
}
