/* Sparse arrays of TILES × TILES tiles. Each tile that is mapped keeps the memory behind it alive. */
#include <string.h>

#include "work.h"

void sparse_start(struct work *work)
{
    for (int i = 0; i < SPARSE; i++)
        memset(work->sparse[i].tiles, 0xff, sizeof work->sparse[i].tiles);
}

/* 512 × 512 texels of 4 bytes are so many tiles of 64 KiB. An array is a block of no bytes. */
static void create_array(struct work *work, struct sparse *sparse)
{
    CUDA_ARRAY3D_DESCRIPTOR of = {.Width = 512,
                                  .Height = 512,
                                  .Format = CU_AD_FORMAT_FLOAT,
                                  .NumChannels = random_below(work, 8) ? 1 : 3,
                                  .Flags = CUDA_ARRAY3D_SPARSE};
    CUDA_ARRAY_SPARSE_PROPERTIES properties = {0};
    if (note(work, "sparse", cuArray3DCreate_v2(&sparse->array, &of), 0) != CUDA_SUCCESS) {
        work->books[ARRAY].failed++;
        sparse->array = NULL;
        return;
    }
    begin_block(work, ARRAY, 0);
    sparse->context = work->depth;
    note(work, "tiles", cuArrayGetSparseProperties(&properties, sparse->array), 0);
    sparse->tile_width = properties.tileExtent.width;
    sparse->tile_height = properties.tileExtent.height;
}

/* A rectangle of tiles. */
struct change {
    unsigned x, y, width, height;
    int memory; /* a handle's index; -1: unmap */
};

static struct change any_change(struct work *work)
{
    struct change change = {.x = random_below(work, TILES), .y = random_below(work, TILES), .memory = -1};
    int memory = (int)random_below(work, HANDLES);
    change.width = 1 + random_below(work, TILES); /* may be too wide */
    change.height = 1 + random_below(work, TILES - change.y);
    if (work->handles[memory].for_tiles && work->handles[memory].handle != 0 &&
        work->handles[memory].references > 0)
        change.memory = memory;
    return change;
}

static CUarrayMapInfo info_of(const struct work *work, const struct sparse *sparse,
                              const struct change *change)
{
    bool maps = change->memory >= 0;
    return (CUarrayMapInfo){.resourceType = CU_RESOURCE_TYPE_ARRAY,
                            .resource.array = sparse->array,
                            .subresource.sparseLevel = {.offsetX = change->x * sparse->tile_width,
                                                        .offsetY = change->y * sparse->tile_height,
                                                        .extentWidth = change->width * sparse->tile_width,
                                                        .extentHeight = change->height * sparse->tile_height,
                                                        .extentDepth = 1},
                            .memOperationType =
                                maps ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP,
                            .memHandle.memHandle = maps ? work->handles[change->memory].handle : 0,
                            .deviceBitMask = 1};
}

static void set_tile(struct work *work, int *tile, int memory)
{
    struct handle *before = *tile < 0 ? NULL : &work->handles[*tile];
    if (memory >= 0)
        work->handles[memory].mappings++;
    *tile = memory;
    if (before == NULL)
        return;
    before->mappings--;
    settle(work, before);
}

static void carry_out(struct work *work, struct sparse *sparse, const struct change *change)
{
    for (unsigned y = change->y; y < change->y + change->height; y++) {
        for (unsigned x = change->x; x < change->x + change->width; x++)
            set_tile(work, &sparse->tiles[y * TILES + x], change->memory);
    }
}

/* Two changes in one call: both or none. */
static void change_tiles(struct work *work, struct sparse *sparse)
{
    struct change changes[] = {any_change(work), any_change(work)};
    CUarrayMapInfo list[] = {info_of(work, sparse, &changes[0]), info_of(work, sparse, &changes[1])};
    unsigned count = 1 + random_below(work, 2);
    if (note(work, "map tiles", cuMemMapArrayAsync(list, count, work->stream), 0) != CUDA_SUCCESS)
        return;
    for (unsigned i = 0; i < count; i++)
        carry_out(work, sparse, &changes[i]);
}

static void end_array(struct work *work, struct sparse *sparse, bool teardown)
{
    end_block(work, ARRAY, 0, teardown);
    sparse->array = NULL;
    for (int i = 0; i < TILES * TILES; i++)
        set_tile(work, &sparse->tiles[i], -1);
}

void change_sparse(struct work *work)
{
    struct sparse *sparse = &work->sparse[random_below(work, SPARSE)];
    if (sparse->array == NULL)
        create_array(work, sparse);
    else if (random_below(work, 10) != 0)
        change_tiles(work, sparse);
    else if (note(work, "end sparse", cuArrayDestroy(sparse->array), 0) == CUDA_SUCCESS)
        end_array(work, sparse, false);
}

void sparse_context_ended(struct work *work, int context)
{
    for (int i = 0; i < SPARSE; i++) {
        if (work->sparse[i].array != NULL && work->sparse[i].context == context)
            end_array(work, &work->sparse[i], true);
    }
}
