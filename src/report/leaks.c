/* What was still allocated at the end: owned memory of the driver layer, by site and by line. */
#include "report/model.h"

static bool is_alive(const struct report_site *site, const void *arg, struct holding *holding)
{
    (void)arg;
    const struct totals *totals = &site->figures.totals;
    holding->bytes = totals->live_bytes;
    holding->blocks = totals->live_blocks;
    return site->layer == LAYER_DRIVER && site->owned && !site->suppressed && totals->live_blocks > 0;
}

bool report_build_leaks(struct report *report)
{
    struct leaks *leaks = &report->leaks;
    const struct holding *alive;
    if (!report_collect(report, is_alive, NULL, &alive, &leaks->count))
        return false;
    uint32_t *sites = arena_alloc(report->arena, (leaks->count + 1) * sizeof *sites);
    if (!sites)
        return false;
    for (size_t i = 0; i < leaks->count; i++) {
        sites[i] = alive[i].site;
        leaks->live_bytes += alive[i].bytes;
        leaks->live_blocks += alive[i].blocks;
    }
    leaks->sites = sites;
    return report_sum_lines(report, alive, leaks->count, true, &leaks->lines);
}
