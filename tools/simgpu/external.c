/*
 * Memory and semaphores of other APIs, imported by a file descriptor. Buffers and mipmaps mapped onto such
 * memory stand on their own: they end by cuMemFree and cuMipmappedArrayDestroy, whatever becomes of the
 * import.
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "entry.h"
#include "stream.h"

struct external {
    struct handle handle;
    CUexternalMemoryHandleType type;
    int fd; /* ours from the import on */
    uint64_t size;
};

static CUresult import_memory(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *source)
{
    struct stat file;
    if (!out || !source || !source->size || source->flags & ~(unsigned)CUDA_EXTERNAL_MEMORY_DEDICATED)
        return CUDA_ERROR_INVALID_VALUE;
    if (source->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD &&
        source->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (fstat(source->handle.fd, &file) || (uint64_t)file.st_size < source->size)
        return CUDA_ERROR_INVALID_VALUE;
    struct external *external = handle_new(HANDLE_EXTERNAL_MEMORY, sizeof *external, context_current());
    if (!external)
        return CUDA_ERROR_OUT_OF_MEMORY;
    external->type = source->type;
    external->fd = source->handle.fd;
    external->size = source->size;
    *out = (CUexternalMemory)external;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuImportExternalMemory(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *source)
{
    return CALL("cuImportExternalMemory", NEEDS_CONTEXT, import_memory(out, source));
}

void external_end(struct external *external)
{
    close(external->fd);
    handle_end(external, sizeof *external);
}

static CUresult destroy_memory(CUexternalMemory handle)
{
    struct external *external = handle_get(handle, HANDLE_EXTERNAL_MEMORY);
    if (!external)
        return CUDA_ERROR_INVALID_HANDLE;
    external_end(external);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
    return CALL("cuDestroyExternalMemory", NEEDS_CONTEXT, destroy_memory(memory));
}

/* ---- mapping ---- */

static void mapping_end(struct block *block)
{
    munmap((void *)block->span->start, block->span->size);
}

/* A block on [offset, offset + size) of the imported memory; NULL when it cannot be mapped. */
static struct block *map_piece(const struct external *external, uint64_t offset, uint64_t size,
                               enum block_kind kind)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), skip = offset % page,
             whole = round_up(skip + size, GRANULE);
    char *room = mmap(NULL, whole + GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return NULL;
    char *start = (char *)round_up((uint64_t)room, GRANULE);
    if (start > room)
        munmap(room, (size_t)(start - room));
    munmap(start + whole, (size_t)(room + GRANULE - start));
    void *piece = mmap(start, skip + size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, external->fd,
                       (off_t)(offset - skip));
    struct span *span = piece == MAP_FAILED ? NULL : span_known((uint64_t)start, whole);
    struct block *block = span ? block_on(span, span->start + skip, size, kind) : NULL;
    if (!block) {
        if (span)
            span_forget(span);
        munmap(start, whole);
        return NULL;
    }
    span->block = block;
    block->on_end = mapping_end;
    block->device = context_current()->device;
    block_own(block, context_current());
    return block;
}

static CUresult map_buffer(CUdeviceptr *out, CUexternalMemory handle,
                           const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *buffer)
{
    const struct external *external = handle_get(handle, HANDLE_EXTERNAL_MEMORY);
    if (!external)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || !buffer || buffer->flags || !buffer->size || buffer->offset > external->size ||
        buffer->size > external->size - buffer->offset)
        return CUDA_ERROR_INVALID_VALUE;
    const struct block *block = map_piece(external, buffer->offset, buffer->size, BLOCK_EXTERNAL);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = block->address;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *out, CUexternalMemory memory,
                                                const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *buffer)
{
    return CALL("cuExternalMemoryGetMappedBuffer", NEEDS_CONTEXT, map_buffer(out, memory, buffer));
}

static CUresult map_mipmap(CUmipmappedArray *out, CUexternalMemory handle,
                           const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *mapping)
{
    const struct external *external = handle_get(handle, HANDLE_EXTERNAL_MEMORY);
    if (!external)
        return CUDA_ERROR_INVALID_HANDLE;
    if (external->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!out || !mapping || !array_is_valid(&mapping->arrayDesc))
        return CUDA_ERROR_INVALID_VALUE;
    unsigned levels = mipmap_levels(&mapping->arrayDesc, mapping->numLevels);
    uint64_t bytes = mipmap_bytes(&mapping->arrayDesc, levels);
    if (mapping->offset > external->size || bytes > external->size - mapping->offset)
        return CUDA_ERROR_INVALID_VALUE;
    struct block *block = map_piece(external, mapping->offset, bytes, BLOCK_ARRAY);
    struct mipmap *mipmap = block ? mipmap_on(block, &mapping->arrayDesc, levels) : NULL;
    if (!mipmap && block)
        block_end(block);
    if (!mipmap)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = (CUmipmappedArray)mipmap;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuExternalMemoryGetMappedMipmappedArray(
    CUmipmappedArray *out, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *mapping)
{
    return CALL("cuExternalMemoryGetMappedMipmappedArray", NEEDS_CONTEXT, map_mipmap(out, memory, mapping));
}

/* ---- semaphores: always signalled ---- */

struct semaphore_source { /* CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC begins so */
    unsigned type;
    union {
        int fd;
        const void *pointer;
    } handle;
};

static CUresult import_semaphore(CUexternalSemaphore *out, const struct semaphore_source *source)
{
    if (!out || !source)
        return CUDA_ERROR_INVALID_VALUE;
    *out = handle_new(HANDLE_EXTERNAL_SEMAPHORE, sizeof(struct handle), NULL);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuImportExternalSemaphore(CUexternalSemaphore *out, const void *source)
{
    return CALL("cuImportExternalSemaphore", NEEDS_CONTEXT, import_semaphore(out, source));
}

static CUresult destroy_semaphore(CUexternalSemaphore handle)
{
    void *semaphore = handle_get(handle, HANDLE_EXTERNAL_SEMAPHORE);
    if (!semaphore)
        return CUDA_ERROR_INVALID_HANDLE;
    handle_end(semaphore, sizeof(struct handle));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDestroyExternalSemaphore(CUexternalSemaphore semaphore)
{
    return CALL("cuDestroyExternalSemaphore", NEEDS_CONTEXT, destroy_semaphore(semaphore));
}

static CUresult use_semaphores(const CUexternalSemaphore *semaphores, const void *parameters, unsigned count,
                               CUstream handle)
{
    struct stream *stream;
    if (!semaphores || !parameters || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if (!handle_get(semaphores[i], HANDLE_EXTERNAL_SEMAPHORE))
            return CUDA_ERROR_INVALID_HANDLE;
    return stream_for_work(handle, &stream);
}

#define SEMAPHORES(name)                                                                                     \
    EXPORT CUresult name(const CUexternalSemaphore *semaphores, const void *parameters, unsigned int count,  \
                         CUstream stream)                                                                    \
    {                                                                                                        \
        return CALL(#name, NEEDS_CONTEXT, use_semaphores(semaphores, parameters, count, stream));            \
    }                                                                                                        \
    EXPORT CUresult name##_ptsz(const CUexternalSemaphore *semaphores, const void *parameters,               \
                                unsigned int count, CUstream stream)                                         \
    {                                                                                                        \
        return name(semaphores, parameters, count, per_thread(stream));                                      \
    }
SEMAPHORES(cuSignalExternalSemaphoresAsync)
SEMAPHORES(cuWaitExternalSemaphoresAsync)
