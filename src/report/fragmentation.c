/*
 * Fragmentation on the driver's floor: it maps device memory in granules of 2 MiB, and a granule stays taken
 * as long as one byte in it lives. What the living blocks' granules hold beyond the blocks is lost to
 * everyone but this process's own small allocations.
 */
#include "base/sort.h"
#include "report/model.h"

#define GRANULE (UINT64_C(2) << 20)

/* Granules [first, last] that one block touches. */
struct extent {
    uint64_t first, last;
    uint64_t bytes;
    int device;
    bool is_pooled;
};

struct gathering {
    const struct report *report;
    struct extent *extents; /* NULL: only count */
    size_t count;
};

static bool see_block(const struct block *block, void *arg)
{
    struct gathering *gathering = arg;
    const struct report *report = gathering->report;
    uint32_t known = catalog_site_count(report->input->catalog);
    uint32_t index = block->site < known ? report->site_of_catalog[block->site] : REPORT_NONE;
    if (index == REPORT_NONE || block->size == 0)
        return true;
    const struct report_site *site = &report->sites[index];
    if (site->layer != LAYER_DRIVER || !site->owned || site->key->space != SPACE_DEVICE ||
        block_key_space(block->key) != KEY_ADDRESS)
        return true;
    if (gathering->extents) {
        uint64_t address = block_key_number(block->key), end;
        if (__builtin_add_overflow(address, block->size - 1, &end))
            end = UINT64_MAX;
        gathering->extents[gathering->count] =
            (struct extent){address / GRANULE, end / GRANULE, block->size, site->key->device,
                            site->key->family == FAMILY_POOL};
    }
    gathering->count++;
    return true;
}

static int compare_extents(const void *left, const void *right, const void *context)
{
    (void)context;
    const struct extent *a = left, *b = right;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

struct footprint {
    uint64_t granules, bytes; /* that the blocks touch, and that they have */
};

/* Of one device's extents, in order of `first`; with or without those in pools, whose granules are their own.
 */
static struct footprint measure(int device, bool with_pools, const struct extent *extents, size_t count)
{
    struct footprint footprint = {0, 0};
    uint64_t next = 0; /* the first granule not counted yet */
    for (size_t i = 0; i < count; i++) {
        if (extents[i].device != device || (extents[i].is_pooled && !with_pools))
            continue;
        footprint.bytes += extents[i].bytes;
        uint64_t first = extents[i].first > next ? extents[i].first : next;
        if (extents[i].last < first)
            continue;
        footprint.granules += extents[i].last - first + 1;
        next = extents[i].last + 1;
    }
    return footprint;
}

static uint64_t less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

static uint64_t used_in_pools(const struct report *report, int device)
{
    uint64_t used = 0;
    for (size_t i = 0; i < ledger_pool_count(report->input->ledger); i++) {
        const struct pool_sample *pool = ledger_pool(report->input->ledger, i);
        used += pool->device == device ? pool->used_bytes : 0;
    }
    return used;
}

/* Blocks without an address (handles, arrays) are counted as they are: nobody outside the driver knows their
 * granules. */
static void fill(const struct report *report, struct fragmentation *row, const struct extent *extents,
                 size_t count)
{
    struct footprint all = measure(row->device, true, extents, count);
    struct footprint unpooled = measure(row->device, false, extents, count);
    row->footprint_bytes = all.granules * row->granule_bytes + less(row->live_bytes, all.bytes);
    row->waste_bytes = less(row->footprint_bytes, row->live_bytes);
    row->unpooled_waste_bytes = less(unpooled.granules * row->granule_bytes, unpooled.bytes);
    row->pool_rounding_bytes = less(used_in_pools(report, row->device), all.bytes - unpooled.bytes);
}

static bool add_rows(struct report *report, const struct extent *extents, size_t count)
{
    report->fragmentation =
        arena_alloc(report->arena, (report->space_count + 1) * sizeof *report->fragmentation);
    if (!report->fragmentation)
        return false;
    for (size_t i = 0; i < report->space_count; i++) {
        const struct ledger_space *space = report->spaces[i];
        if (space->kind != SPACE_DEVICE)
            continue;
        struct fragmentation *row = &report->fragmentation[report->fragmentation_count++];
        row->device = space->device;
        row->granule_bytes = GRANULE;
        row->live_bytes = space->totals.live_bytes;
        fill(report, row, extents, count);
    }
    return true;
}

bool report_build_fragmentation(struct report *report)
{
    struct gathering gathering = {.report = report};
    ledger_each_block(report->input->ledger, see_block, &gathering);
    size_t bytes = (gathering.count + 1) * sizeof *gathering.extents;
    gathering.extents = pages_alloc(bytes);
    gathering.count = 0;
    if (!gathering.extents)
        return false;
    ledger_each_block(report->input->ledger, see_block, &gathering);
    bool done =
        sort_items(gathering.extents, gathering.count, sizeof *gathering.extents, compare_extents, NULL) &&
        add_rows(report, gathering.extents, gathering.count);
    pages_free(gathering.extents, bytes);
    return done;
}
