/* The picture that a ledger takes of an out-of-memory moment, and what became of the request (ledger.h). */
#include "base/sort.h"
#include "ledger/internal.h"

/* Of each out-of-memory moment's layouts. */
#define OOM_SEGMENTS 8
#define OOM_PINNERS  8

/* What NVML said so long ago is taken for now's. */
#define PROCESSES_GOOD_NS UINT64_C(2000000000)

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

/* NVML was asked just before, if at all. */
static void note_who_else(struct oom *oom, const struct device_figures *figures)
{
    if (figures == NULL)
        return;
    oom->context_bytes = figures->contexts.bytes;
    if (figures->processes_ns != 0 && figures->own_bytes != 0 &&
        figures->processes_ns + PROCESSES_GOOD_NS >= oom->time_ns) {
        oom->own_bytes = figures->own_bytes;
        oom->all_bytes = figures->all_bytes;
    }
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
    const struct totals *totals = &asked->space->is.totals;
    *oom = (struct oom){.time_ns = event->time_ns,
                        .site = event->site,
                        .error = event->error,
                        .requested_bytes = event->size,
                        .free_bytes = ledger_believed(event->free_bytes),
                        .total_bytes = ledger_believed(event->total_bytes),
                        .live_bytes = totals->live_bytes,
                        .ended_bytes = ledger_less(totals->allocated_bytes, totals->live_bytes),
                        .share_count = filled,
                        .shares = shares};
    int device = asked->space->is.device;
    if (device >= 0) {
        static const struct layout_limits limits = {.segments = OOM_SEGMENTS, .pinners = OOM_PINNERS};
        oom->driver_bytes = ledger_live_on(ledger, device);
        note_who_else(oom, ledger_figures_of(ledger, device));
        oom->pool_unused_bytes = ledger_unused_in_pools(ledger, device);
        ledger_layouts(ledger, device, LAYOUT_NOW, &limits, ledger->arena, &oom->layouts, &oom->layout_count);
    }
    ledger->unanswered++;
    return true;
}

void ledger_answer_ooms(struct ledger *ledger, const struct site_record *site, uint64_t bytes,
                        uint64_t time_ns)
{
    const struct totals *totals = &site->space->is.totals;
    for (uint32_t i = 0; i < ledger->ooms.count; i++) {
        struct oom *oom = list_at(&ledger->ooms, i);
        const struct site_record *asked = list_at(&ledger->sites, oom->site);
        if (oom->granted_ns != 0 || asked->space != site->space || bytes < oom->requested_bytes)
            continue;
        /* 0: not granted. Threads' events may come a little out of order. */
        oom->granted_ns = time_ns > oom->time_ns ? time_ns : oom->time_ns > 0 ? oom->time_ns : 1;
        oom->freed_bytes =
            ledger_less(ledger_less(totals->allocated_bytes, totals->live_bytes), oom->ended_bytes);
        ledger->unanswered--;
    }
}
