/* What can be asked of a ledger (ledger.h), and the picture it takes of an out-of-memory moment. */
#include <string.h>

#include "base/sort.h"
#include "ledger/internal.h"

/* Of each out-of-memory moment's layouts. */
#define OOM_SEGMENTS 8
#define OOM_PINNERS  8

const struct ledger_counters *ledger_counters(const struct ledger *ledger)
{
    return &ledger->counters;
}

struct site_totals ledger_site(const struct ledger *ledger, uint32_t id)
{
    const struct site_record *site = list_at(&ledger->sites, id);
    if (site == NULL || site->space == NULL)
        return (struct site_totals){0};
    /* Unchanged since the space's peak: it holds what it held then. */
    bool noted = site->epoch == site->space->epoch;
    return (struct site_totals){
        .totals = site->totals,
        .failed = site->failed,
        .first_time_ns = site->first_time_ns,
        .last_time_ns = site->last_time_ns,
        .bytes_at_peak = noted ? site->bytes_at_peak : site->totals.live_bytes,
        .blocks_at_peak = noted ? site->blocks_at_peak : site->totals.live_blocks,
    };
}

size_t ledger_space_count(const struct ledger *ledger)
{
    return ledger->spaces.count;
}

const struct ledger_space *ledger_space(const struct ledger *ledger, size_t index)
{
    const struct space_record *space = index < UINT32_MAX ? list_at(&ledger->spaces, (uint32_t)index) : NULL;
    return space == NULL ? NULL : &space->is;
}

size_t ledger_oom_count(const struct ledger *ledger)
{
    return ledger->ooms.count;
}

const struct oom *ledger_oom(const struct ledger *ledger, size_t index)
{
    return index < UINT32_MAX ? list_at(&ledger->ooms, (uint32_t)index) : NULL;
}

size_t ledger_memory_count(const struct ledger *ledger)
{
    return ledger->memory.count;
}

const struct memory_sample *ledger_memory(const struct ledger *ledger, size_t index)
{
    return index < UINT32_MAX ? list_at(&ledger->memory, (uint32_t)index) : NULL;
}

size_t ledger_pool_count(const struct ledger *ledger)
{
    return ledger->pools.count;
}

const struct pool_sample *ledger_pool(const struct ledger *ledger, size_t index)
{
    return index < UINT32_MAX ? list_at(&ledger->pools, (uint32_t)index) : NULL;
}

static uint64_t unused_in_pools(const struct ledger *ledger, int device)
{
    uint64_t unused = 0;
    for (uint32_t i = 0; i < ledger->pools.count; i++) {
        const struct pool_sample *pool = list_at(&ledger->pools, i);
        if (pool->device == device)
            unused += pool->reserved_bytes - pool->used_bytes;
    }
    return unused;
}

static uint32_t count_holders(const struct ledger *ledger, const struct space_record *space)
{
    uint32_t holders = 0;
    for (uint32_t i = 0; i < ledger->sites.count; i++) {
        const struct site_record *site = list_at(&ledger->sites, i);
        holders += site->space == space && site->totals.live_blocks > 0;
    }
    return holders;
}

/* Most bytes first; of equal ones the site seen first. */
static int compare_shares(const void *left, const void *right, const void *unused)
{
    const struct share *one = left, *other = right;
    (void)unused;
    return (one->bytes < other->bytes) - (one->bytes > other->bytes);
}

bool ledger_add_oom(struct ledger *ledger, const struct event *event, const struct site_record *asked)
{
    if (ledger->ooms.count >= LEDGER_OOMS_MAX)
        return true;
    uint32_t holders = count_holders(ledger, asked->space);
    struct share *shares = arena_alloc(ledger->arena, holders * sizeof *shares);
    struct oom *oom = list_reach(&ledger->ooms, ledger->ooms.count);
    if (oom == NULL)
        return false;
    uint32_t filled = 0;
    for (uint32_t i = 0; i < ledger->sites.count && shares != NULL; i++) {
        const struct site_record *site = list_at(&ledger->sites, i);
        if (site->space != asked->space || site->totals.live_blocks == 0)
            continue;
        shares[filled++] =
            (struct share){.site = i, .bytes = site->totals.live_bytes, .blocks = site->totals.live_blocks};
    }
    if (!sort_items(shares, filled, sizeof *shares, compare_shares, NULL))
        filled = 0; /* no list rather than one in a false order */
    *oom = (struct oom){.time_ns = event->time_ns,
                        .site = event->site,
                        .error = event->error,
                        .requested_bytes = event->size,
                        .free_bytes = event->free_bytes,
                        .total_bytes = event->total_bytes,
                        .live_bytes = asked->space->is.totals.live_bytes,
                        .share_count = filled,
                        .shares = shares};
    if (asked->space->is.kind == SPACE_DEVICE) {
        static const struct layout_limits limits = {.segments = OOM_SEGMENTS, .pinners = OOM_PINNERS};
        int device = asked->space->is.device;
        oom->pool_unused_bytes = unused_in_pools(ledger, device);
        ledger_layouts(ledger, device, LAYOUT_NOW, &limits, ledger->arena, &oom->layouts, &oom->layout_count);
    }
    return true;
}
