/* Copies and fills, done at once. Every byte of both sides is checked to be memory before anything moves. */
#include "copy.h"

#include <string.h>

#include "array.h"
#include "graph.h"
#include "memory.h"
#include "stream.h"

/* One side of a copy: rows of bytes. */
struct side {
    uint64_t start; /* of the first row */
    uint64_t pitch, slice;
    bool checked; /* memory of the driver's; otherwise the program's own pointer */
};

void *memory_at(uint64_t address, uint64_t *bytes_left)
{
    struct span *span = span_at(address);
    if (span && span->reservation)
        return vmm_memory_at(address, bytes_left);
    struct block *block = block_at(address);
    if (!block)
        return NULL;
    *bytes_left = block->address + block->size - address;
    return (void *)address;
}

static bool is_memory(uint64_t address, uint64_t bytes)
{
    while (bytes) {
        uint64_t left;
        if (!memory_at(address, &left))
            return false;
        if (left >= bytes)
            return true;
        address += left;
        bytes -= left;
    }
    return true;
}

static bool side_is_memory(const struct side *side, const CUDA_MEMCPY3D *copy)
{
    if (!side->checked)
        return true;
    for (size_t z = 0; z < copy->Depth; z++)
        for (size_t y = 0; y < copy->Height; y++)
            if (!is_memory(side->start + z * side->slice + y * side->pitch, copy->WidthInBytes))
                return false;
    return true;
}

/* The pages behind a piece may hold RAM from now on. */
static void touch(uint64_t address, uint64_t bytes)
{
    struct span *span = span_at(address);
    if (span && !span->reservation)
        span_touch(span, address, bytes);
}

static void copy_row(const struct side *to, uint64_t to_at, const struct side *from, uint64_t from_at,
                     uint64_t bytes)
{
    while (bytes) {
        uint64_t to_left = bytes, from_left = bytes;
        char *target = to->checked ? memory_at(to_at, &to_left) : (char *)to_at;
        const char *source = from->checked ? memory_at(from_at, &from_left) : (const char *)from_at;
        uint64_t piece = bytes;
        if (piece > to_left)
            piece = to_left;
        if (piece > from_left)
            piece = from_left;
        touch(to_at, piece);
        touch(from_at, piece);
        memmove(target, source, piece);
        to_at += piece;
        from_at += piece;
        bytes -= piece;
    }
}

static CUresult side_of(struct side *side, CUmemorytype type, uint64_t host, uint64_t device, CUarray array,
                        size_t x, size_t y, size_t z, size_t pitch, size_t height, const CUDA_MEMCPY3D *copy)
{
    size_t rows = copy->Height > 1 || copy->Depth > 1;
    if (type == CU_MEMORYTYPE_ARRAY)
        return array_side(array, x, y, z, copy, &side->start, &side->pitch, &side->slice, &side->checked);
    if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED)
        return CUDA_ERROR_INVALID_VALUE;
    if (rows && pitch && pitch < x + copy->WidthInBytes)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t base = type == CU_MEMORYTYPE_HOST ? host : device;
    side->pitch = pitch ? pitch : x + copy->WidthInBytes;
    side->slice = side->pitch * (height ? height : copy->Height);
    side->start = base + x + y * side->pitch + z * side->slice;
    side->checked = type == CU_MEMORYTYPE_DEVICE || (type == CU_MEMORYTYPE_UNIFIED && span_at(base));
    return base ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_run(const CUDA_MEMCPY3D *copy)
{
    if (!copy->WidthInBytes || !copy->Height || !copy->Depth)
        return CUDA_SUCCESS;
    struct side to, from;
    CUresult result =
        side_of(&from, copy->srcMemoryType, (uint64_t)copy->srcHost, copy->srcDevice, copy->srcArray,
                copy->srcXInBytes, copy->srcY, copy->srcZ, copy->srcPitch, copy->srcHeight, copy);
    if (result == CUDA_SUCCESS)
        result = side_of(&to, copy->dstMemoryType, (uint64_t)copy->dstHost, copy->dstDevice, copy->dstArray,
                         copy->dstXInBytes, copy->dstY, copy->dstZ, copy->dstPitch, copy->dstHeight, copy);
    if (result != CUDA_SUCCESS)
        return result;
    if (!side_is_memory(&from, copy) || !side_is_memory(&to, copy))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t z = 0; z < copy->Depth; z++)
        for (size_t y = 0; y < copy->Height; y++)
            copy_row(&to, to.start + z * to.slice + y * to.pitch, &from,
                     from.start + z * from.slice + y * from.pitch, copy->WidthInBytes);
    return CUDA_SUCCESS;
}

static void fill_piece(char *at, uint64_t bytes, const struct fill *fill)
{
    if (fill->element == 1)
        memset(at, (int)(fill->value & 0xff), bytes);
    else if (fill->element == 2)
        for (uint64_t i = 0; i < bytes; i += 2)
            *(uint16_t *)(at + i) = (uint16_t)fill->value;
    else
        for (uint64_t i = 0; i < bytes; i += 4)
            *(uint32_t *)(at + i) = fill->value;
}

CUresult fill_run(const struct fill *fill)
{
    uint64_t row = fill->width * fill->element;
    if (!fill->width || !fill->height)
        return CUDA_SUCCESS;
    if (fill->address % fill->element ||
        (fill->height > 1 && (fill->pitch < row || fill->pitch % fill->element)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t y = 0; y < fill->height; y++)
        if (!is_memory(fill->address + y * fill->pitch, row))
            return CUDA_ERROR_INVALID_VALUE;
    for (size_t y = 0; y < fill->height; y++) {
        uint64_t at = fill->address + y * fill->pitch;
        for (uint64_t left = row, piece = 0; left; left -= piece, at += piece) {
            char *target = memory_at(at, &piece);
            if (piece > left)
                piece = left;
            touch(at, piece);
            fill_piece(target, piece, fill);
        }
    }
    return CUDA_SUCCESS;
}

CUresult copy_submit(const CUDA_MEMCPY3D *copy, CUstream handle)
{
    struct stream *stream;
    CUresult result = stream_for_work(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    return stream->capture ? graph_capture_copy(stream, copy) : copy_run(copy);
}

CUresult fill_submit(const struct fill *fill, CUstream handle)
{
    struct stream *stream;
    CUresult result = stream_for_work(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    return stream->capture ? graph_capture_fill(stream, fill) : fill_run(fill);
}
