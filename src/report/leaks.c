/*
 * What was still allocated at the end: owned memory of the driver layer, by site and by line. At exit all
 * that a framework caches is live, so lines are in the order of how much they are worth a look, and what
 * frameworks' allocators had handed out is listed beside it.
 */
#include "report/model.h"

bool report_is_leak(const struct report_site *site)
{
    return site->layer == LAYER_DRIVER && site->owned && site->figures.totals.live_blocks > 0;
}

static bool fill(const struct report_site *site, struct holding *holding)
{
    holding->bytes = site->figures.totals.live_bytes;
    holding->blocks = site->figures.totals.live_blocks;
    return true;
}

static bool is_alive(const struct report_site *site, const void *arg, struct holding *holding)
{
    (void)arg;
    return report_is_leak(site) && !site->suppressed && fill(site, holding);
}

static bool is_alive_in_framework(const struct report_site *site, const void *arg, struct holding *holding)
{
    (void)arg;
    return site->layer == LAYER_FRAMEWORK && site->figures.totals.live_blocks > 0 && fill(site, holding);
}

static bool list_frameworks(struct report *report)
{
    struct leaks *leaks = &report->leaks;
    const struct holding *alive;
    size_t count;
    if (!report_collect(report, is_alive_in_framework, NULL, &alive, &count))
        return false;
    for (size_t i = 0; i < count; i++) {
        leaks->framework_bytes += alive[i].bytes;
        leaks->framework_blocks += alive[i].blocks;
    }
    return report_sum_lines(report, alive, count, true, &leaks->framework_lines);
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
    return report_sum_lines(report, alive, leaks->count, true, &leaks->lines) && list_frameworks(report);
}
