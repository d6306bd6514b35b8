/* Out of memory: what was asked, who held what, and what became of it. Why it was refused is judged in
 * oom_verdict.c. */
#include "report/model.h"

#define AS_NAME(symbol, name) [OOM_##symbol] = (name),
const char *const oom_cause_names[OOM_CAUSE_COUNT] = {OOM_CAUSES(AS_NAME)};
const char *const oom_outcome_names[OOM_OUTCOME_COUNT] = {OOM_OUTCOMES(AS_NAME)};
#undef AS_NAME

static bool copy_holdings(struct report *report, const struct oom *oom, struct out_of_memory *row)
{
    struct holding *holdings = arena_alloc(report->arena, ((size_t)oom->share_count + 1) * sizeof *holdings);
    if (!holdings)
        return false;
    for (uint32_t i = 0; oom->shares && i < oom->share_count; i++) {
        uint32_t site = report->site_of_catalog[oom->shares[i].site];
        if (site != REPORT_NONE)
            holdings[row->count++] = (struct holding){site, oom->shares[i].bytes, oom->shares[i].blocks};
    }
    row->holdings = holdings;
    return true;
}

static uint64_t last_allocation(const struct report *report)
{
    uint64_t last = 0;
    for (size_t i = 0; i < report->site_count; i++)
        if (report->sites[i].figures.totals.allocs && report->sites[i].figures.last_time_ns > last)
            last = report->sites[i].figures.last_time_ns;
    return last;
}

static enum oom_outcome outcome(const struct oom *oom, uint64_t last)
{
    if (oom->granted_ns)
        return OOM_GRANTED;
    return last > oom->time_ns ? OOM_WENT_ON : OOM_ENDED;
}

bool report_build_ooms(struct report *report)
{
    size_t count = ledger_oom_count(report->input->ledger);
    uint64_t last = last_allocation(report);
    report->ooms = arena_alloc(report->arena, (count + 1) * sizeof *report->ooms);
    if (!report->ooms)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct oom *oom = ledger_oom(report->input->ledger, i);
        struct out_of_memory row = {.oom = oom, .site = report->site_of_catalog[oom->site]};
        if (row.site == REPORT_NONE)
            continue;
        row.outcome = outcome(oom, last);
        if (!copy_holdings(report, oom, &row) ||
            !report_sum_lines(report, row.holdings, row.count, false, &row.lines) ||
            !report_judge_oom(report, &row, report->oom_count ? &report->ooms[report->oom_count - 1] : NULL))
            return false;
        report->ooms[report->oom_count++] = row;
    }
    return true;
}
