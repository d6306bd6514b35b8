/* What a pool does with memory: reserving, handing out, keeping, giving back. */
#include "pool.h"

#include <string.h>

#include "memory.h"

struct region {
    struct extent *extent; /* of the source's granules */
    struct extent *first;  /* of the pool's: whole again when nothing of the region is in use */
    struct region *next;
};

static struct slab region_slab = {.size = sizeof(struct region)};
static struct pool *pools;

static void region_release(struct pool *pool, struct region **link)
{
    struct region *region = *link;
    uint64_t granules = region->extent->size;
    *link = region->next;
    heap_remove(&pool->window.granules, region->first);
    heap_give(&pool->source->granules, region->extent);
    physical_give(pool->source->device, granules);
    pool->reserved -= granules * GRANULE;
    slab_give(&region_slab, region);
}

void pool_trim(struct pool *pool, uint64_t keep)
{
    for (struct region **link = &pool->regions; *link;) {
        uint64_t bytes = (*link)->extent->size * GRANULE;
        if (extent_is_whole_region((*link)->first) && pool->reserved >= keep + bytes)
            region_release(pool, link);
        else
            link = &(*link)->next;
    }
}

void pools_synchronize(void)
{
    for (struct pool *pool = pools; pool; pool = pool->next)
        if (pool->reserved > pool->threshold)
            pool_trim(pool, pool->threshold);
}

static bool reserve(struct pool *pool, uint64_t granules)
{
    struct region *region = slab_take(&region_slab);
    if (!region)
        return false;
    if (physical_take(pool->source->device, granules)) {
        region->extent = heap_take(&pool->source->granules, granules);
        if (region->extent)
            region->first = heap_add(&pool->window.granules, region->extent->start, granules);
        if (region->first) {
            region->next = pool->regions;
            pool->regions = region;
            pool->reserved += granules * GRANULE;
            if (pool->reserved > pool->reserved_high)
                pool->reserved_high = pool->reserved;
            return true;
        }
        if (region->extent)
            heap_give(&pool->source->granules, region->extent);
        physical_give(pool->source->device, granules);
    }
    slab_give(&region_slab, region);
    return false;
}

static bool grow(struct window *window, uint64_t granules)
{
    struct pool *pool = (struct pool *)((char *)window - offsetof(struct pool, window));
    uint64_t bytes = granules * GRANULE, most = pool->properties.maxSize;
    if (most && pool->reserved + bytes > most)
        pool_trim(pool, 0); /* what is free is too small or scattered */
    if (most && pool->reserved + bytes > most)
        return false;
    if (reserve(pool, granules))
        return true;
    pool_trim(pool, 0);
    return reserve(pool, granules);
}

struct pool *pool_new(const CUmemPoolProps *properties, struct window *source, struct device *device)
{
    struct pool *pool = source ? handle_new(HANDLE_POOL, sizeof *pool, NULL) : NULL;
    if (!pool)
        return NULL;
    pool->properties = *properties;
    pool->device = device;
    pool->source = source;
    pool->window.base = source->base;
    pool->window.size = source->size;
    pool->window.fd = source->fd;
    pool->window.touched = source->touched;
    pool->window.grow = grow;
    pool->small.window = &pool->window;
    pool->peers = device ? 1u << device->ordinal : 0;
    for (int i = 0; i < 3; i++)
        pool->reuse[i] = 1;
    pool->next = pools;
    pool->before = &pools;
    if (pool->next)
        pool->next->before = &pool->next;
    pools = pool;
    return pool;
}

static void pool_end(struct pool *pool)
{
    pool_trim(pool, 0);
    *pool->before = pool->next;
    if (pool->next)
        pool->next->before = pool->before;
    if (pool->own_source)
        window_end(pool->source);
    handle_end(pool, sizeof *pool);
}

void pool_destroy(struct pool *pool)
{
    pool->destroyed = true;
    for (int i = 0; i < device_count; i++)
        if (devices[i].current_pool == pool)
            devices[i].current_pool = NULL;
    if (!pool->blocks)
        pool_end(pool);
}

struct pool *pool_default(struct device *device)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal}};
    if (!device->default_pool)
        device->default_pool = pool_new(&properties, device->window, device);
    return device->default_pool;
}

struct block *pool_take(struct pool *pool, uint64_t bytes)
{
    struct block *block = block_new(&pool->small, bytes, BLOCK_POOL);
    if (!block)
        return NULL;
    block->pool = pool;
    block->device = pool->device;
    if (!pool->device || pool->properties.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED)
        span_touch(block->span, block->address, bytes); /* the program may write there itself */
    pool->blocks++;
    pool->used += round_up(bytes, UNIT);
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    return block;
}

CUresult pool_free_block(struct block *block)
{
    struct pool *pool = block->pool;
    pool->used -= round_up(block->size, UNIT);
    pool->blocks--;
    block_end(block);
    if (pool->destroyed && !pool->blocks)
        pool_end(pool);
    return CUDA_SUCCESS;
}
