/* For each space: its peak and which sites held it at that moment. Frameworks' blocks, in memory of the
 * driver's, have peaks of their own. */
#include "report/model.h"

static bool held_it(const struct report_site *site, const void *arg, struct holding *holding)
{
    const struct ledger_space *space = arg;
    holding->bytes = site->figures.bytes_at_peak;
    holding->blocks = site->figures.blocks_at_peak;
    return site->layer == space->layer && site->key->space == space->kind &&
           site->key->device == space->device && site->figures.blocks_at_peak > 0;
}

static bool add_peaks(struct report *report, enum layer layer, struct peak **peaks, size_t *count)
{
    size_t spaces = ledger_space_count(report->input->ledger);
    *peaks = arena_alloc(report->arena, (spaces + 1) * sizeof **peaks);
    if (!*peaks)
        return false;
    for (size_t i = 0; i < spaces; i++) {
        const struct ledger_space *space = ledger_space(report->input->ledger, i);
        if (space->layer != layer || space->totals.peak_bytes == 0)
            continue;
        struct peak *peak = &(*peaks)[(*count)++];
        peak->space = space;
        if (!report_collect(report, held_it, peak->space, &peak->holdings, &peak->count) ||
            !report_sum_lines(report, peak->holdings, peak->count, false, &peak->lines))
            return false;
    }
    return true;
}

bool report_build_peaks(struct report *report)
{
    return add_peaks(report, LAYER_DRIVER, &report->peaks, &report->peak_count) &&
           add_peaks(report, LAYER_FRAMEWORK, &report->framework_peaks, &report->framework_peak_count);
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
