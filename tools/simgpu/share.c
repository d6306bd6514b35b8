/*
 * Memory shared between processes by a file descriptor: allocations and pools made for it lie in files of
 * their own. What the bytes are is written behind them, for whoever imports the descriptor.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "entry.h"
#include "pool.h"
#include "vmm.h"

#define LABEL_BYTES 4096 /* behind the memory */
#define LABEL_MAGIC 0x53484152474d4953ull

enum label_kind { LABEL_ALLOCATION, LABEL_POOL };

struct label {
    uint64_t magic;
    enum label_kind kind;
    uint64_t size;
    CUmemAllocationProp allocation;
    CUmemPoolProps pool;
};

/* ---- files ---- */

static bool write_label(int fd, const struct label *label)
{
    return ftruncate(fd, (off_t)(label->size + LABEL_BYTES)) == 0 &&
           pwrite(fd, label, sizeof *label, (off_t)label->size) == (ssize_t)sizeof *label;
}

static bool read_label(int fd, enum label_kind kind, struct label *label)
{
    struct stat file;
    if (fstat(fd, &file) || file.st_size < LABEL_BYTES)
        return false;
    off_t at = file.st_size - LABEL_BYTES;
    return pread(fd, label, sizeof *label, at) == (ssize_t)sizeof *label && label->magic == LABEL_MAGIC &&
           label->kind == kind && label->size == (uint64_t)at;
}

static CUresult duplicate(int *out, int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *out = copy;
    return CUDA_SUCCESS;
}

/* ---- allocations ---- */

static bool map_bytes(struct allocation *allocation)
{
    void *bytes =
        mmap(NULL, allocation->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, allocation->fd, 0);
    if (bytes == MAP_FAILED)
        return false;
    allocation->bytes = bytes;
    return true;
}

CUresult share_create(struct allocation *allocation)
{
    uint64_t granules = allocation->size / GRANULE;
    if (!physical_take(allocation->device, granules))
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct label label = {LABEL_MAGIC, LABEL_ALLOCATION, allocation->size, allocation->properties, {0}};
    allocation->fd = syscall(SYS_memfd_create, "simgpu-allocation", MFD_CLOEXEC);
    if (allocation->fd >= 0 && write_label(allocation->fd, &label) && map_bytes(allocation))
        return CUDA_SUCCESS;
    if (allocation->fd >= 0)
        close(allocation->fd);
    physical_give(allocation->device, granules);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult export_allocation(void *out, CUmemGenericAllocationHandle handle,
                                  CUmemAllocationHandleType type, unsigned long long flags)
{
    const struct allocation *allocation = allocation_get(handle);
    if (!out || !allocation || flags || !(allocation->properties.requestedHandleTypes & type))
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || allocation->fd < 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    return duplicate(out, allocation->fd);
}

EXPORT CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                             CUmemAllocationHandleType type, unsigned long long flags)
{
    return CALL("cuMemExportToShareableHandle", NEEDS_INIT, export_allocation(out, handle, type, flags));
}

/* The memory stays its exporter's: nothing is taken from the device here. */
static CUresult import_allocation(CUmemGenericAllocationHandle *out, void *os_handle,
                                  CUmemAllocationHandleType type)
{
    struct label label;
    int fd = (int)(intptr_t)os_handle;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!out || !read_label(fd, LABEL_ALLOCATION, &label))
        return CUDA_ERROR_INVALID_VALUE;
    struct allocation *allocation = allocation_new(label.size, &label.allocation);
    if (!allocation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    allocation->imported = true;
    allocation->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (allocation->fd < 0 || !map_bytes(allocation)) {
        if (allocation->fd >= 0)
            close(allocation->fd);
        handle_end(allocation, sizeof *allocation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = (CUmemGenericAllocationHandle)allocation;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os_handle,
                                               CUmemAllocationHandleType type)
{
    return CALL("cuMemImportFromShareableHandle", NEEDS_INIT, import_allocation(handle, os_handle, type));
}

/* ---- pools ---- */

static CUresult export_pool(void *out, CUmemoryPool handle, CUmemAllocationHandleType type,
                            unsigned long long flags)
{
    const struct pool *pool = handle_get(handle, HANDLE_POOL);
    if (!out || !pool || flags || !pool->own_source || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    struct label label = {LABEL_MAGIC, LABEL_POOL, pool->source->size, {0}, pool->properties};
    if (!write_label(pool->source->fd, &label))
        return CUDA_ERROR_OPERATING_SYSTEM;
    return duplicate(out, pool->source->fd);
}

EXPORT CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool, CUmemAllocationHandleType type,
                                                 unsigned long long flags)
{
    return CALL("cuMemPoolExportToShareableHandle", NEEDS_INIT, export_pool(out, pool, type, flags));
}

static CUresult import_pool(CUmemoryPool *out, void *os_handle, CUmemAllocationHandleType type,
                            unsigned long long flags)
{
    struct label label;
    int fd = (int)(intptr_t)os_handle;
    if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !read_label(fd, LABEL_POOL, &label))
        return CUDA_ERROR_INVALID_VALUE;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    struct window *window = own >= 0 ? window_of_fd(own, label.size) : NULL;
    struct pool *pool = window ? pool_new(&label.pool, window, device_get(label.pool.location.id)) : NULL;
    if (!pool) {
        if (window)
            window_end(window);
        else if (own >= 0)
            close(own);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pool->imported = pool->own_source = true;
    *out = (CUmemoryPool)pool;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *os_handle,
                                                   CUmemAllocationHandleType type, unsigned long long flags)
{
    return CALL("cuMemPoolImportFromShareableHandle", NEEDS_INIT, import_pool(pool, os_handle, type, flags));
}

/* ---- pointers of pools ---- */

struct pointer_data { /* in CUmemPoolPtrExportData */
    uint64_t magic, offset, size;
};

static CUresult export_pointer(CUmemPoolPtrExportData *out, CUdeviceptr address)
{
    const struct block *block = block_starting(address);
    if (!out || !block || block->kind != BLOCK_POOL || !block->pool->own_source || block->pool->imported)
        return CUDA_ERROR_INVALID_VALUE;
    struct pointer_data data = {LABEL_MAGIC, address - block->pool->source->base, block->size};
    span_touch(block->span, block->address, block->size); /* others may write there */
    memset(out, 0, sizeof *out);
    memcpy(out, &data, sizeof data);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr address)
{
    return CALL("cuMemPoolExportPointer", NEEDS_INIT, export_pointer(out, address));
}

/* The span of a granule in which imported blocks begin, shared by all that do. */
static struct span *span_of_imports(uint64_t address)
{
    uint64_t start = address / GRANULE * GRANULE;
    struct span *span = span_at(start);
    if (span || !(span = span_known(start, GRANULE)))
        return span;
    span->slots = slots_new();
    if (span->slots)
        return span;
    span_forget(span);
    return NULL;
}

static void imported_pointer_end(struct block *block)
{
    struct span *span = block->span;
    struct pool *pool = block->pool;
    if (span->slots) {
        span->slots[block->address / UNIT % GRANULE_UNITS] = NULL;
        if (--span->imports == 0) {
            slots_give(span->slots);
            span_forget(span);
        }
        block->span = NULL;
    }
    pool->blocks--;
    if (pool->destroyed && !pool->blocks)
        pool_destroy(pool);
}

static CUresult import_pointer(CUdeviceptr *out, CUmemoryPool handle, const CUmemPoolPtrExportData *shared)
{
    struct pool *pool = handle_get(handle, HANDLE_POOL);
    struct pointer_data data;
    if (!out || !shared || !pool || !pool->imported || pool->destroyed)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&data, shared, sizeof data);
    if (data.magic != LABEL_MAGIC || data.offset > pool->source->size ||
        data.size > pool->source->size - data.offset)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t address = pool->source->base + data.offset;
    bool whole = data.size > GRANULE / 2;
    if (block_at(address))
        return CUDA_ERROR_INVALID_VALUE; /* imported already */
    struct span *span = whole ? span_known(address, round_up(data.size, GRANULE)) : span_of_imports(address);
    struct block *block = span ? block_on(span, address, data.size, BLOCK_POOL_IMPORT) : NULL;
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (whole) {
        span->block = block;
    } else {
        span->slots[address / UNIT % GRANULE_UNITS] = block;
        span->imports++;
    }
    block->pool = pool;
    block->device = pool->device;
    block->on_end = imported_pointer_end;
    pool->blocks++;
    *out = address;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
    return CALL("cuMemPoolImportPointer", NEEDS_INIT, import_pointer(out, pool, data));
}
