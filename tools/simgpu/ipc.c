/*
 * Device memory of another process. Its memory is a file there; a handle says which process, which descriptor
 * and where in the file, and the importer maps that piece through /proc.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture.h"
#include "entry.h"

#define HANDLE_MAGIC 0x4350494d4953ull

struct wire { /* in CUipcMemHandle and CUipcEventHandle */
    uint64_t magic;
    int pid, fd, device;
    unsigned event_flags;
    uint64_t offset, size;
    unsigned long long id; /* of the block: another one at its address is another handle */
};

struct import {
    struct wire wire;
    struct context *context;
    struct block *block;
    struct import *next, **before;
};

static struct slab import_slab = {.size = sizeof(struct import)};
static struct import *imports;

static CUresult get_handle(CUipcMemHandle *out, CUdeviceptr address)
{
    const struct block *block = block_starting(address);
    if (!out || !block || block->kind != BLOCK_PLAIN || block->span->window->fd < 0)
        return CUDA_ERROR_INVALID_VALUE;
    const struct window *window = block->span->window;
    struct wire wire = {.magic = HANDLE_MAGIC,
                        .pid = getpid(),
                        .fd = window->fd,
                        .device = block->device->ordinal,
                        .offset = address - window->base,
                        .size = block->size,
                        .id = block->id};
    span_touch(block->span, block->address, block->size); /* the other process may write there */
    memset(out, 0, sizeof *out);
    memcpy(out, &wire, sizeof wire);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr address)
{
    return CALL("cuIpcGetMemHandle", NEEDS_CONTEXT, get_handle(out, address));
}

/* ---- opening ---- */

static void import_end(struct block *block)
{
    struct import *import = block->owner;
    *import->before = import->next;
    if (import->next)
        import->next->before = import->before;
    munmap((void *)block->span->start, block->span->size);
    slab_give(&import_slab, import);
}

/* The granules that the piece lies in, mapped at a granule; NULL when the other process or its file is gone.
 */
static void *map_piece(const struct wire *wire, uint64_t start, uint64_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", wire->pid, wire->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    char *room = mmap(NULL, size + GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *piece = MAP_FAILED;
    if (fd >= 0 && room != MAP_FAILED) {
        char *at = (char *)round_up((uint64_t)room, GRANULE);
        piece =
            mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, (off_t)start);
        if (piece != MAP_FAILED) {
            if (at > room)
                munmap(room, (size_t)(at - room));
            munmap(at + size, (size_t)(room + GRANULE - at));
        }
    }
    if (room != MAP_FAILED && piece == MAP_FAILED)
        munmap(room, size + GRANULE);
    if (fd >= 0)
        close(fd);
    return piece == MAP_FAILED ? NULL : piece;
}

static CUresult import_new(struct import **out, const struct wire *wire)
{
    uint64_t start = wire->offset / GRANULE * GRANULE,
             size = round_up(wire->offset + wire->size, GRANULE) - start;
    void *piece = map_piece(wire, start, size);
    if (!piece)
        return CUDA_ERROR_MAP_FAILED;
    struct span *span = span_known((uint64_t)piece, size);
    struct block *block =
        span ? block_on(span, span->start + (wire->offset - start), wire->size, BLOCK_IPC) : NULL;
    struct import *import = block ? slab_take(&import_slab) : NULL;
    if (!import) {
        if (block)
            block_end(block);
        if (span)
            span_forget(span);
        munmap(piece, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *import = (struct import){*wire, context_current(), block, imports, &imports};
    if (imports)
        imports->before = &import->next;
    imports = import;
    span->block = block;
    block->owner = import;
    block->on_end = import_end;
    block->device = device_get(wire->device) ? device_get(wire->device) : context_current()->device;
    block_own(block, context_current());
    *out = import;
    return CUDA_SUCCESS;
}

static CUresult open_handle(CUdeviceptr *out, const CUipcMemHandle *handle, unsigned flags)
{
    struct wire wire;
    struct import *import;
    memcpy(&wire, handle, sizeof wire);
    if (!out || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (wire.magic != HANDLE_MAGIC)
        return CUDA_ERROR_INVALID_HANDLE;
    if (wire.pid == getpid())
        return CUDA_ERROR_INVALID_CONTEXT; /* memory of one's own is not opened */
    for (import = imports; import; import = import->next)
        if (import->context == context_current() && memcmp(&import->wire, &wire, sizeof wire) == 0)
            break;
    CUresult result = import ? CUDA_SUCCESS : import_new(&import, &wire);
    if (result != CUDA_SUCCESS)
        return result;
    import->block->references++;
    *out = import->block->address;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
    return CALL("cuIpcOpenMemHandle", NEEDS_CONTEXT, open_handle(out, &handle, flags));
}

EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags)
{
    return cuIpcOpenMemHandle_v2(out, handle, flags);
}

static CUresult close_handle(CUdeviceptr address)
{
    struct block *block = block_at(address); /* its start is not that of its granules */
    if (!block || block->kind != BLOCK_IPC || block->address != address)
        return CUDA_ERROR_INVALID_VALUE;
    if (--block->references == 0)
        block_end(block);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    return CALL("cuIpcCloseMemHandle", NEEDS_CONTEXT, close_handle(address));
}

/* ---- events: they have always happened, whoever asks ---- */

static CUresult get_event_handle(CUipcEventHandle *out, CUevent handle)
{
    const struct event *event = handle_get(handle, HANDLE_EVENT);
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || !(event->flags & CU_EVENT_INTERPROCESS))
        return CUDA_ERROR_INVALID_VALUE;
    struct wire wire = {.magic = ~HANDLE_MAGIC, .pid = getpid(), .event_flags = event->flags};
    memset(out, 0, sizeof *out);
    memcpy(out, &wire, sizeof wire);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent event)
{
    return CALL("cuIpcGetEventHandle", NEEDS_CONTEXT, get_event_handle(out, event));
}

static CUresult open_event(CUevent *out, const CUipcEventHandle *handle)
{
    struct wire wire;
    memcpy(&wire, handle, sizeof wire);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (wire.magic != ~HANDLE_MAGIC)
        return CUDA_ERROR_INVALID_HANDLE;
    struct event *event = handle_new(HANDLE_EVENT, sizeof *event, context_current());
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->flags = wire.event_flags;
    event->recorded = true;
    *out = (CUevent)event;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle)
{
    return CALL("cuIpcOpenEventHandle", NEEDS_CONTEXT, open_event(out, &handle));
}
