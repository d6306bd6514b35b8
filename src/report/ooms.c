/*
 * Out of memory: what was asked, what was free, who held the rest, and what that says. A verdict claims no
 * more than the figures of that moment carry.
 */
#include <string.h>

#include "report/model.h"
#include "report/words.h"

/* What the figures say, and what to try. The sentences of `advice` stand alone. */
enum cause { CAUSE_UNKNOWN, CAUSE_HOST, CAUSE_TOO_LARGE, CAUSE_LIMIT, CAUSE_OTHERS, CAUSE_FULL };

static const char *const advice[] = {
    [CAUSE_UNKNOWN] = "Look at what this process held, and at nvidia-smi for what others hold.",
    [CAUSE_HOST] =
        "Pin less (fewer DataLoader workers, a lower prefetch factor); look at free -h and ulimit -l.",
    [CAUSE_TOO_LARGE] = "Look at the size that was computed: the batch, a shape, an index or an overflow.",
    [CAUSE_LIMIT] = "Look for a limit (memory pool, MPS, MIG). In PyTorch, try expandable_segments:True in "
                    "PYTORCH_CUDA_ALLOC_CONF.",
    [CAUSE_OTHERS] =
        "Look at nvidia-smi for other processes on this device, and at contexts and libraries of this one.",
    [CAUSE_FULL] = "Free what the lines below hold before this one runs, or ask for less: a smaller batch, "
                   "activation checkpointing.",
};

static bool is_on_host(const struct report_site *site)
{
    return !space_infos[site->key->space].per_device;
}

static enum cause find_cause(const struct report_site *site, const struct oom *oom)
{
    uint64_t used = oom->total_bytes > oom->free_bytes ? oom->total_bytes - oom->free_bytes : 0;
    if (is_on_host(site))
        return CAUSE_HOST;
    if (oom->total_bytes == 0)
        return CAUSE_UNKNOWN;
    if (oom->requested_bytes > oom->total_bytes)
        return CAUSE_TOO_LARGE;
    if (oom->free_bytes >= oom->requested_bytes)
        return CAUSE_LIMIT;
    return oom->live_bytes < used / 2 ? CAUSE_OTHERS : CAUSE_FULL;
}

static void say_cause(struct words *words, enum cause cause, const struct oom *oom)
{
    uint64_t used = oom->total_bytes > oom->free_bytes ? oom->total_bytes - oom->free_bytes : 0;
    uint64_t missing = oom->requested_bytes > oom->free_bytes ? oom->requested_bytes - oom->free_bytes : 0;
    switch (cause) {
    case CAUSE_UNKNOWN:
        words_add(words, "Unknown: the driver did not say how much was free. This process held ");
        words_size(words, oom->live_bytes);
        break;
    case CAUSE_HOST:
        words_add(words, "The system refused host memory, not the device. This process held ");
        words_size(words, oom->live_bytes);
        words_add(words, " of this kind");
        break;
    case CAUSE_TOO_LARGE:
        words_add(words, "More than the whole device has (");
        words_size(words, oom->total_bytes);
        words_add(words, "): it could never succeed");
        break;
    case CAUSE_LIMIT:
        words_add(words, "Not full: ");
        words_size(words, oom->free_bytes);
        words_add(words,
                  " were free, enough for it. Either no single free range was that large (fragmentation), or "
                  "a limit was reached");
        break;
    case CAUSE_OTHERS:
        words_add(words, "Mostly not this process's doing: of ");
        words_size(words, used);
        words_add(words, " in use its recorded allocations are ");
        words_size(words, oom->live_bytes);
        words_add(words, "; other processes, contexts or untracked memory hold ");
        words_size(words, used - oom->live_bytes);
        break;
    case CAUSE_FULL:
        words_add(words, "Really full: ");
        words_size(words, missing);
        words_add(words, " were missing. Of ");
        words_size(words, used);
        words_add(words, " in use, ");
        words_size(words, oom->live_bytes < used ? oom->live_bytes : used);
        words_add(words, " are this process's allocations");
        break;
    }
    words_add(words, ".");
}

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
        enum cause cause = find_cause(&report->sites[row.site], oom);
        struct words words = {0};
        say_cause(&words, cause, oom);
        row.verdict = words_keep(&words, report->arena);
        row.advice = advice[cause];
        row.went_on = last > oom->time_ns;
        if (!row.verdict || !copy_holdings(report, oom, &row) ||
            !report_sum_lines(report, row.holdings, row.count, false, &row.lines))
            return false;
        report->ooms[report->oom_count++] = row;
    }
    return true;
}
