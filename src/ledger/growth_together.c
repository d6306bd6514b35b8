/*
 * Growth of several sites as if they were one (growth.h): their histories are added up, stretch by stretch.
 *
 * The sum of what each site held at least in a stretch of time is at most what all of them held at least in
 * it. So a block that one site gives back while another takes one looks, for that stretch, as if less had
 * been kept: growth may be missed by that, and none is made up.
 */
#include "ledger/growth.h"

#include <string.h>

#include "ledger/internal.h"

/* Where more than a tenth of the blocks were given back, sums come out more even than chance makes each of
 * the sites: then more is asked. */
#define FREED_PART       10
#define FREED_CONFIDENCE 0.6

static bool has_lived(const struct site_record *site, uint64_t end_ns)
{
    return site != NULL && site->space != NULL && site->totals.allocs > 0 && site->first_time_ns < end_ns;
}

static void read_history(const struct site_record *site, uint64_t end_ns, struct history *history)
{
    if (site->history != NULL)
        history_copy(history, site->history);
    else
        histories_first(site, history);
    history_note(history, end_ns, site->totals.live_bytes, site->totals.live_bytes);
}

/* When the last stretch begins that is not over at the end: an ending program gives things back. */
static uint64_t last_whole(const struct history *history, uint64_t end_ns)
{
    uint64_t age = end_ns > history->origin_ns ? end_ns - history->origin_ns : 0;
    return history->origin_ns + (age >> history->width_log2 << history->width_log2);
}

/* The least that was alive from `from` to `to`; nothing was before the first allocation. */
static uint64_t least_between(const struct history *history, uint64_t from, uint64_t to)
{
    if (from < history->origin_ns)
        return 0;
    uint64_t first = (from - history->origin_ns) >> history->width_log2;
    uint64_t last = (to - 1 - history->origin_ns) >> history->width_log2, least = UINT64_MAX;
    for (uint64_t i = first; i <= last && i <= history->last; i++)
        least = history->floors[i] < least ? history->floors[i] : least;
    return least == UINT64_MAX ? 0 : least;
}

/* The time that all histories tell of, and the stretches that they are added up in. */
static bool lay_out(const struct ledger *ledger, const uint32_t *sites, size_t count, uint64_t *end_ns,
                    struct history *sum)
{
    uint64_t begin = UINT64_MAX, end = *end_ns;
    for (size_t i = 0; i < count; i++) {
        const struct site_record *site = list_at(&ledger->sites, sites[i]);
        struct history history;
        if (!has_lived(site, *end_ns))
            continue;
        read_history(site, *end_ns, &history);
        begin = history.origin_ns < begin ? history.origin_ns : begin;
        /* A young history's stretches are short; its last one, or what there is of it, says nothing yet. */
        uint64_t last = last_whole(&history, *end_ns);
        end = last < end && last > history.origin_ns ? last : end;
    }
    if (begin >= end)
        return false;
    *sum = (struct history){.origin_ns = begin, .width_log2 = HISTORY_WIDTH_LOG2};
    while ((end - begin) >> sum->width_log2 >= HISTORY_CELLS)
        sum->width_log2++;
    sum->last = (uint32_t)((end - begin) >> sum->width_log2);
    *end_ns = end;
    return true;
}

bool ledger_growth_together(const struct ledger *ledger, const uint32_t *sites, size_t count, uint64_t end_ns,
                            struct growth *growth)
{
    struct history sum;
    uint64_t told_until = end_ns, live = 0, allocs = 0, frees = 0;
    if (!lay_out(ledger, sites, count, &told_until, &sum))
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct site_record *site = list_at(&ledger->sites, sites[i]);
        struct history history;
        if (!has_lived(site, end_ns))
            continue;
        read_history(site, end_ns, &history);
        live += site->totals.live_bytes;
        allocs += site->totals.allocs;
        frees += site->totals.frees;
        for (uint32_t cell = 0; cell < sum.last; cell++) {
            uint64_t from = sum.origin_ns + ((uint64_t)cell << sum.width_log2);
            sum.floors[cell] += least_between(&history, from, from + (UINT64_C(1) << sum.width_log2));
        }
    }
    sum.floors[sum.last] = live;
    return growth_judge(&sum, live, told_until, growth) &&
           (frees * FREED_PART < allocs || growth->confidence >= FREED_CONFIDENCE);
}
