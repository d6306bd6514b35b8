/* What can be asked of a ledger (ledger.h). */
#include "ledger/internal.h"

const struct ledger_counters *ledger_counters(const struct ledger *ledger)
{
    return &ledger->counters;
}

/* One that has not changed since the space's peak holds what it held then. */
static struct share_at_peak share_at_peak(const struct share_at_peak *noted, const struct space_record *space,
                                          const struct site_record *site)
{
    if (noted->epoch == space->epoch)
        return *noted;
    return (struct share_at_peak){.bytes = site->totals.live_bytes, .blocks = site->totals.live_blocks};
}

struct site_totals ledger_site(const struct ledger *ledger, uint32_t id)
{
    const struct site_record *site = list_at(&ledger->sites, id);
    if (site == NULL || site->space == NULL)
        return (struct site_totals){0};
    struct share_at_peak at_peak = share_at_peak(&site->at_peak, site->space, site);
    struct share_at_peak at_whole = {0};
    if (site->space->in_whole)
        at_whole = share_at_peak(&site->at_whole_peak, &ledger->whole, site);
    return (struct site_totals){
        .totals = site->totals,
        .failed = site->failed,
        .first_time_ns = site->first_time_ns,
        .last_time_ns = site->last_time_ns,
        .bytes_at_peak = at_peak.bytes,
        .blocks_at_peak = at_peak.blocks,
        .bytes_at_whole_peak = at_whole.bytes,
        .blocks_at_whole_peak = at_whole.blocks,
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

const struct ledger_space *ledger_whole(const struct ledger *ledger)
{
    return ledger->whole.in_whole ? &ledger->whole.is : NULL;
}

size_t ledger_site_limit(const struct ledger *ledger)
{
    return ledger->sites.count;
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
    return ledger->devices.count;
}

const struct device_figures *ledger_device(const struct ledger *ledger, size_t index)
{
    return index < UINT32_MAX ? list_at(&ledger->devices, (uint32_t)index) : NULL;
}

const struct memory_sample *ledger_memory(const struct ledger *ledger, size_t index)
{
    const struct device_figures *figures = ledger_device(ledger, index);
    return figures == NULL ? NULL : &figures->latest;
}

const struct device_figures *ledger_figures_of(const struct ledger *ledger, int device)
{
    for (uint32_t i = 0; i < ledger->devices.count; i++) {
        const struct device_figures *figures = list_at(&ledger->devices, i);
        if (figures->device == device)
            return figures;
    }
    return NULL;
}

size_t ledger_pool_count(const struct ledger *ledger)
{
    return ledger->pools.count;
}

const struct pool_sample *ledger_pool(const struct ledger *ledger, size_t index)
{
    return index < UINT32_MAX ? list_at(&ledger->pools, (uint32_t)index) : NULL;
}
