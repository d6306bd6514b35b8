/* Sites whose living bytes keep rising (ledger/growth.h tells how that is decided), the fastest first, and
 * when the device would be full if each went on. */
#include "base/sort.h"
#include "report/model.h"

/* Free now: what was free when the driver was last asked, less what was allocated since. */
static bool free_on(const struct report *report, int device, uint64_t *free_bytes)
{
    const struct ledger *ledger = report->input->ledger;
    uint64_t tracked = 0;
    for (size_t i = 0; i < report->space_count; i++)
        if (report->spaces[i]->kind == SPACE_DEVICE && report->spaces[i]->device == device)
            tracked = report->spaces[i]->totals.live_bytes;
    for (size_t i = 0; i < ledger_memory_count(ledger); i++) {
        const struct memory_sample *sample = ledger_memory(ledger, i);
        if (sample->device != device || sample->total_bytes == 0)
            continue;
        uint64_t left = sample->free_bytes + sample->tracked_bytes;
        *free_bytes = left > tracked ? left - tracked : 0;
        return true;
    }
    return false;
}

static void foresee(const struct report *report, struct growing *row)
{
    const struct site_key *key = report->sites[row->site].key;
    uint64_t free_bytes;
    if (key->space != SPACE_DEVICE || !free_on(report, key->device, &free_bytes))
        return;
    double seconds = (double)free_bytes / row->growth.bytes_per_second;
    row->exhausted_known = seconds < 3e9; /* a hundred years say nothing */
    if (row->exhausted_known)
        row->exhausted_ns = (uint64_t)(seconds * 1e9);
}

static int compare_growing(const void *left, const void *right, const void *context)
{
    (void)context;
    const struct growing *a = left, *b = right;
    if (a->growth.bytes_per_second != b->growth.bytes_per_second)
        return a->growth.bytes_per_second > b->growth.bytes_per_second ? -1 : 1;
    return (a->site > b->site) - (a->site < b->site);
}

/* Fewer say nothing about a rate. */
#define STEPS_MIN 3

static uint64_t steps_during(const struct ledger *ledger, const struct growth *growth)
{
    uint64_t steps = ledger_steps_since(ledger, growth->since_ns);
    return steps >= STEPS_MIN ? steps : 0;
}

bool report_build_growth(struct report *report)
{
    const struct ledger *ledger = report->input->ledger;
    uint64_t end_ns = growth_end(ledger, report->end_ns);
    struct growth growth;
    size_t count = 0;
    for (size_t i = 0; i < report->site_count; i++)
        count += ledger_growth(ledger, report->sites[i].catalog_id, end_ns, &growth);
    report->growing = arena_alloc(report->arena, (count + 1) * sizeof *report->growing);
    if (!report->growing)
        return false;
    for (uint32_t i = 0; i < report->site_count; i++) {
        struct growing *row = &report->growing[report->growing_count];
        if (!report->sites[i].owned ||
            !ledger_growth(ledger, report->sites[i].catalog_id, end_ns, &row->growth))
            continue;
        row->site = i;
        report->sites[i].grows = true;
        row->steps = steps_during(ledger, &row->growth);
        foresee(report, row);
        report->growing_count++;
    }
    return sort_items(report->growing, report->growing_count, sizeof *report->growing, compare_growing, NULL);
}
