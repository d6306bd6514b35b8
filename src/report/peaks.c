/* For each space, and for all devices together: its peak, which sites held it at that moment, and what would
 * have to go for it to be lower. Frameworks' blocks, in memory of the driver's, have peaks of their own. */
#include "report/model.h"

static bool is_whole(const struct ledger_space *space)
{
    return space->kind == SPACE_DEVICE && space->device < 0;
}

bool report_is_in(const struct report_site *site, const struct ledger_space *space)
{
    return site->layer == space->layer && site->key->space == space->kind &&
           (site->key->device == space->device || is_whole(space));
}

static bool held_it(const struct report_site *site, const void *arg, struct holding *holding)
{
    const struct ledger_space *space = arg;
    const struct site_totals *figures = &site->figures;
    holding->bytes = is_whole(space) ? figures->bytes_at_whole_peak : figures->bytes_at_peak;
    holding->blocks = is_whole(space) ? figures->blocks_at_whole_peak : figures->blocks_at_peak;
    return report_is_in(site, space) && holding->blocks > 0;
}

static bool fill_peak(struct report *report, struct peak *peak, const struct ledger_space *space)
{
    peak->space = space;
    return report_collect(report, held_it, peak->space, &peak->holdings, &peak->count) &&
           report_sum_lines(report, peak->holdings, peak->count, false, &peak->lines) &&
           report_find_falls(report, peak);
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
        if (!fill_peak(report, &(*peaks)[(*count)++], space))
            return false;
    }
    return true;
}

static bool add_whole_peak(struct report *report)
{
    const struct ledger_space *whole = ledger_whole(report->input->ledger);
    if (!whole || whole->totals.peak_bytes == 0)
        return true;
    report->whole_peak = arena_alloc(report->arena, sizeof *report->whole_peak);
    return report->whole_peak && fill_peak(report, report->whole_peak, whole);
}

bool report_build_peaks(struct report *report)
{
    return add_peaks(report, LAYER_DRIVER, &report->peaks, &report->peak_count) &&
           add_peaks(report, LAYER_FRAMEWORK, &report->framework_peaks, &report->framework_peak_count) &&
           add_whole_peak(report);
}

const struct peak *report_main_peak(const struct report *report)
{
    static const bool on_device[SPACE_COUNT] = {
        [SPACE_DEVICE] = true, [SPACE_MANAGED] = true, [SPACE_GRAPH] = true};
    const struct peak *best = NULL;
    for (size_t i = 0; i < report->peak_count; i++) {
        const struct peak *peak = &report->peaks[i];
        bool device = on_device[peak->space->kind], best_device = best && on_device[best->space->kind];
        if (!best || device > best_device ||
            (device == best_device && peak->space->totals.peak_bytes > best->space->totals.peak_bytes))
            best = peak;
    }
    return best;
}
