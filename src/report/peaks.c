/* For each space of the driver layer: its peak and which sites held it at that moment. */
#include "report/model.h"

static bool held_it(const struct report_site *site, const void *arg, struct holding *holding)
{
    const struct ledger_space *space = arg;
    holding->bytes = site->figures.bytes_at_peak;
    holding->blocks = site->figures.blocks_at_peak;
    return site->layer == space->layer && site->key->space == space->kind &&
           site->key->device == space->device && site->figures.blocks_at_peak > 0;
}

bool report_build_peaks(struct report *report)
{
    report->peaks = arena_alloc(report->arena, (report->space_count + 1) * sizeof *report->peaks);
    if (!report->peaks)
        return false;
    for (size_t i = 0; i < report->space_count; i++) {
        if (report->spaces[i]->totals.peak_bytes == 0)
            continue;
        struct peak *peak = &report->peaks[report->peak_count++];
        peak->space = report->spaces[i];
        if (!report_collect(report, held_it, peak->space, &peak->holdings, &peak->count) ||
            !report_sum_lines(report, peak->holdings, peak->count, false, &peak->lines))
            return false;
    }
    return true;
}

const struct peak *report_main_peak(const struct report *report)
{
    const struct peak *best = NULL;
    for (size_t i = 0; i < report->peak_count; i++) {
        const struct peak *peak = &report->peaks[i];
        bool device = peak->space->kind == SPACE_DEVICE,
             best_device = best && best->space->kind == SPACE_DEVICE;
        if (!best || device > best_device ||
            (device == best_device && peak->space->totals.peak_bytes > best->space->totals.peak_bytes))
            best = peak;
    }
    return best;
}
