/*
 * Fragmentation on the upper two floors: what memory pools hold unused, and how the segments of frameworks'
 * allocators are filled, now and at each device's fullest moment.
 */
#include "report/frameworks.h"

static const struct layout_limits limits_now = {.segments = 1024, .pinners = 16};
static const struct layout_limits limits_peak = {.segments = 64, .pinners = 16};

static bool add_pools(struct report *report, struct fragmentation *row)
{
    const struct ledger *ledger = report->input->ledger;
    size_t known = ledger_pool_count(ledger);
    row->pools = arena_alloc(report->arena, (known + 1) * sizeof *row->pools);
    for (size_t i = 0; row->pools && i < known; i++)
        if (ledger_pool(ledger, i)->device == row->device)
            row->pools[row->pool_count++] = ledger_pool(ledger, i);
    return row->pools != NULL;
}

bool report_build_frameworks(struct report *report)
{
    const struct ledger *ledger = report->input->ledger;
    for (size_t i = 0; i < report->fragmentation_count; i++) {
        struct fragmentation *row = &report->fragmentation[i];
        if (!add_pools(report, row) ||
            !ledger_layouts(ledger, row->device, LAYOUT_NOW, &limits_now, report->arena, &row->layouts,
                            &row->layout_count) ||
            !ledger_layouts(ledger, row->device, LAYOUT_FULLEST, &limits_peak, report->arena,
                            &row->peak_layouts, &row->peak_layout_count))
            return false;
    }
    return true;
}

const struct layout *report_layout_of(const struct layout *layouts, size_t count, uint32_t allocator)
{
    for (size_t i = 0; i < count; i++)
        if (layouts[i].allocator == allocator)
            return &layouts[i];
    return NULL;
}

uint64_t report_pool_keeps(const struct pool_sample *pool)
{
    uint64_t unused = pool->reserved_bytes - pool->used_bytes;
    return unused < pool->threshold_bytes ? unused : pool->threshold_bytes;
}
