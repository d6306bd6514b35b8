/* Tiles of sparse arrays (sparse.h): asked about, mapped, unmapped. */
#include "sparse.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "entry.h"
#include "stream.h"
#include "vmm.h"

#define TILE_BYTES     65536u
#define LEVELS_MAX     32
#define SINGLE_MIPTAIL 0x1 /* CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL */

struct sparse {
    uint64_t count;
    struct allocation *tiles[]; /* NULL: not mapped */
};

struct level {
    uint64_t extent[3], tiles[3], first; /* among the tiles of its layer */
};

/* How an array divides into tiles: those of the levels, then those of the tail, for each layer. */
struct shape {
    unsigned tile[3];
    unsigned tail_level, layers;
    uint64_t tail_first, tail_tiles, tiles_in_layer;
    struct level levels[LEVELS_MAX];
};

/* ---- shapes ---- */

static bool has_layers(const CUDA_ARRAY3D_DESCRIPTOR *of)
{
    return of->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
}

static void add_level(struct shape *shape, struct level *level)
{
    level->first = shape->tail_first;
    uint64_t tiles = 1;
    for (int i = 0; i < 3; i++) {
        level->tiles[i] = (level->extent[i] + shape->tile[i] - 1) / shape->tile[i];
        tiles *= level->tiles[i];
    }
    shape->tail_first += tiles;
}

/* Levels that are smaller than a tile in some dimension are the tail. */
static bool divide(const struct mipmap *mipmap, struct shape *shape)
{
    const CUDA_ARRAY3D_DESCRIPTOR *of = &mipmap->descriptor;
    uint64_t tail_bytes = 0;
    memset(shape, 0, sizeof *shape);
    if (!of->Height || !array_tile(of, shape->tile))
        return false;
    shape->layers = has_layers(of) ? (unsigned)of->Depth : 1;
    shape->tail_level = mipmap->levels;
    for (unsigned i = 0; i < mipmap->levels; i++) {
        struct array array = {0};
        struct level *level = &shape->levels[i];
        array_describe_level(&array, mipmap, i);
        level->extent[0] = array.descriptor.Width;
        level->extent[1] = array.descriptor.Height;
        level->extent[2] = has_layers(of) || !of->Depth ? 1 : array.descriptor.Depth;
        for (int j = 0; j < 3; j++)
            if (level->extent[j] < shape->tile[j] && shape->tail_level > i)
                shape->tail_level = i;
        if (i < shape->tail_level)
            add_level(shape, level);
        else
            tail_bytes += array.bytes / shape->layers;
    }
    shape->tail_tiles = (tail_bytes + TILE_BYTES - 1) / TILE_BYTES;
    shape->tiles_in_layer = shape->tail_first + shape->tail_tiles;
    return true;
}

/* ---- what may be mapped ---- */

/* An array counts as a mipmap of one level. */
struct target {
    struct mipmap as_mipmap;
    struct sparse **sparse;
};

static CUresult find_target(struct target *target, CUresourcetype type, const void *handle)
{
    struct array *array = type == CU_RESOURCE_TYPE_ARRAY ? handle_get(handle, HANDLE_ARRAY) : NULL;
    struct mipmap *mipmap =
        type == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY ? handle_get(handle, HANDLE_MIPMAP) : NULL;
    if (type != CU_RESOURCE_TYPE_ARRAY && type != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    if (!array && !mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    if (array && (array->mipmap || array->parent))
        return CUDA_ERROR_INVALID_VALUE;
    target->as_mipmap = mipmap ? *mipmap : (struct mipmap){.descriptor = array->descriptor, .levels = 1};
    target->sparse = mipmap ? &mipmap->sparse : &array->sparse;
    return CUDA_SUCCESS;
}

static CUresult properties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUresourcetype type, const void *handle)
{
    struct target target;
    struct shape shape;
    CUresult result = find_target(&target, type, handle);
    if (result != CUDA_SUCCESS)
        return result;
    if (!out || !(target.as_mipmap.descriptor.Flags & CUDA_ARRAY3D_SPARSE) ||
        !divide(&target.as_mipmap, &shape))
        return CUDA_ERROR_INVALID_VALUE;
    bool single = type == CU_RESOURCE_TYPE_ARRAY && shape.tail_level == 0;
    *out = (CUDA_ARRAY_SPARSE_PROPERTIES){.tileExtent = {shape.tile[0], shape.tile[1], shape.tile[2]},
                                          .miptailFirstLevel = shape.tail_level,
                                          .miptailSize =
                                              shape.tail_tiles * TILE_BYTES * (single ? shape.layers : 1),
                                          .flags = single ? SINGLE_MIPTAIL : 0};
    if (type == CU_RESOURCE_TYPE_ARRAY)
        out->miptailFirstLevel = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUarray array)
{
    return CALL("cuArrayGetSparseProperties", NEEDS_CONTEXT, properties(out, CU_RESOURCE_TYPE_ARRAY, array));
}

EXPORT CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out,
                                                    CUmipmappedArray mipmap)
{
    return CALL("cuMipmappedArrayGetSparseProperties", NEEDS_CONTEXT,
                properties(out, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, mipmap));
}

/* ---- mapping ---- */

/* The tiles that an entry names: a box of one level in one layer, or a run of the tail. */
struct box {
    uint64_t first;            /* of the level, or the tail, in that layer */
    uint64_t start[3], end[3]; /* in tiles */
    uint64_t row, slice;       /* tiles in one */
};

static bool find_level_box(const CUarrayMapInfo *info, const struct shape *shape, struct box *box)
{
    const __typeof__(info->subresource.sparseLevel) *at = &info->subresource.sparseLevel;
    uint64_t offset[3] = {at->offsetX, at->offsetY, at->offsetZ};
    uint64_t extent[3] = {at->extentWidth, at->extentHeight, at->extentDepth};
    if (at->level >= shape->tail_level || at->layer >= shape->layers)
        return false;
    const struct level *level = &shape->levels[at->level];
    for (int i = 0; i < 3; i++) {
        uint64_t end = offset[i] + extent[i];
        if (!extent[i] || offset[i] % shape->tile[i] || end > level->extent[i] ||
            (end % shape->tile[i] && end != level->extent[i]))
            return false;
        box->start[i] = offset[i] / shape->tile[i];
        box->end[i] = (end + shape->tile[i] - 1) / shape->tile[i];
    }
    box->first = at->layer * shape->tiles_in_layer + level->first;
    box->row = level->tiles[0];
    box->slice = level->tiles[0] * level->tiles[1];
    return true;
}

static bool find_tail_box(const CUarrayMapInfo *info, const struct shape *shape, bool single, struct box *box)
{
    unsigned layer = info->subresource.miptail.layer;
    uint64_t offset = info->subresource.miptail.offset, size = info->subresource.miptail.size;
    uint64_t tail = shape->tail_tiles * TILE_BYTES * (single ? shape->layers : 1);
    if (!size || offset % TILE_BYTES || size % TILE_BYTES || offset > tail || size > tail - offset ||
        layer >= (single ? 1 : shape->layers))
        return false;
    *box = (struct box){.first = layer * shape->tiles_in_layer + shape->tail_first,
                        .start = {offset / TILE_BYTES},
                        .end = {(offset + size) / TILE_BYTES, 1, 1}};
    return true;
}

static uint64_t tiles_in(const struct box *box)
{
    return (box->end[0] - box->start[0]) * (box->end[1] - box->start[1]) * (box->end[2] - box->start[2]);
}

/* What is to be mapped; NULL for an entry that unmaps. */
static CUresult find_memory(const CUarrayMapInfo *info, const struct device *device, bool tiles,
                            struct allocation **memory)
{
    *memory = NULL;
    if (info->flags || info->reserved[0] || info->reserved[1] || info->deviceBitMask != 1u << device->ordinal)
        return CUDA_ERROR_INVALID_VALUE;
    if (info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
        return info->memHandle.memHandle ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (info->memOperationType != CU_MEM_OPERATION_TYPE_MAP ||
        info->memHandleType != CU_MEM_HANDLE_TYPE_GENERIC)
        return CUDA_ERROR_INVALID_VALUE;
    struct allocation *allocation = allocation_get(info->memHandle.memHandle);
    if (!allocation || allocation->multicast || allocation->device != device ||
        (tiles && !(allocation->properties.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL)))
        return CUDA_ERROR_INVALID_VALUE;
    *memory = allocation;
    return CUDA_SUCCESS;
}

struct step {
    struct sparse *sparse;
    struct box box;
    struct allocation *memory;
};

static bool reach_tiles(struct sparse **sparse, uint64_t count)
{
    if (*sparse)
        return true;
    *sparse = calloc(1, sizeof **sparse + count * sizeof(struct allocation *));
    if (*sparse)
        (*sparse)->count = count;
    return *sparse;
}

static CUresult prepare(const CUarrayMapInfo *info, const struct device *device, struct step *step)
{
    struct target target;
    struct shape shape;
    CUresult result = find_target(&target, info->resourceType, info->resource.array);
    if (result != CUDA_SUCCESS)
        return result;
    unsigned flags = target.as_mipmap.descriptor.Flags;
    uint64_t bytes = mipmap_bytes(&target.as_mipmap.descriptor, target.as_mipmap.levels), count = 1;
    bool single = info->resourceType == CU_RESOURCE_TYPE_ARRAY;
    step->box = (struct box){.end = {1, 1, 1}};
    if (!(flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)))
        return CUDA_ERROR_INVALID_VALUE;
    if (!(flags & CUDA_ARRAY3D_DEFERRED_MAPPING)) {
        bool tail = info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
        if (!divide(&target.as_mipmap, &shape) || !(tail ? find_tail_box(info, &shape, single, &step->box)
                                                         : find_level_box(info, &shape, &step->box)))
            return CUDA_ERROR_INVALID_VALUE;
        count = shape.tiles_in_layer * shape.layers;
        bytes = tiles_in(&step->box) * TILE_BYTES;
    }
    result = find_memory(info, device, !(flags & CUDA_ARRAY3D_DEFERRED_MAPPING), &step->memory);
    if (result != CUDA_SUCCESS)
        return result;
    if (step->memory && (info->offset % TILE_BYTES || info->offset > step->memory->size ||
                         bytes > step->memory->size - info->offset))
        return CUDA_ERROR_INVALID_VALUE;
    if (!reach_tiles(target.sparse, count))
        return CUDA_ERROR_OUT_OF_MEMORY;
    step->sparse = *target.sparse;
    return CUDA_SUCCESS;
}

static void set_tile(struct allocation **tile, struct allocation *memory)
{
    struct allocation *before = *tile;
    if (memory)
        memory->mappings++;
    *tile = memory;
    if (before) {
        before->mappings--;
        allocation_settle(before);
    }
}

static void carry_out(const struct step *step)
{
    const struct box *box = &step->box;
    for (uint64_t z = box->start[2]; z < box->end[2]; z++)
        for (uint64_t y = box->start[1]; y < box->end[1]; y++)
            for (uint64_t x = box->start[0]; x < box->end[0]; x++)
                set_tile(&step->sparse->tiles[box->first + z * box->slice + y * box->row + x], step->memory);
}

/* All or nothing. */
static CUresult map_arrays(const CUarrayMapInfo *list, unsigned count, CUstream handle)
{
    struct stream *stream;
    CUresult result = list && count ? stream_for_work(handle, &stream) : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    struct step *steps = calloc(count, sizeof *steps);
    if (!steps)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = prepare(&list[i], stream->context->device, &steps[i]);
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        carry_out(&steps[i]);
    free(steps);
    return result;
}

EXPORT CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    return CALL("cuMemMapArrayAsync", NEEDS_CONTEXT, map_arrays(list, count, stream));
}

EXPORT CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *list, unsigned int count, CUstream stream)
{
    return cuMemMapArrayAsync(list, count, per_thread(stream));
}

void sparse_end(struct sparse *sparse)
{
    for (uint64_t i = 0; sparse && i < sparse->count; i++)
        if (sparse->tiles[i])
            set_tile(&sparse->tiles[i], NULL);
    free(sparse);
}
