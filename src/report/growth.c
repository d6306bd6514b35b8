/*
 * What keeps growing (ledger/growth.h tells how that is decided), the fastest first, and when the device
 * would be full if each went on: sites by themselves, and lines of code, whose sites may grow together though
 * each does so too seldom to be told.
 */
#include "base/sort.h"
#include "report/model.h"

/* Free now: what was free when the driver was last asked, less what was allocated since. */
static bool free_on(const struct report *report, int device, uint64_t *free_bytes)
{
    const struct ledger *ledger = report->input->ledger;
    uint64_t tracked = ledger_live_on(ledger, device);
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
    uint64_t steps = ledger_steps_between(ledger, growth->since_ns, growth->until_ns);
    return steps >= STEPS_MIN ? steps : 0;
}

/* Completes a row whose sites and growth are there. */
static void finish_row(struct report *report, struct growing *row)
{
    row->steps = steps_during(report->input->ledger, &row->growth);
    foresee(report, row);
    for (size_t i = 0; i < row->site_count; i++) {
        uint64_t live = report->sites[row->sites[i]].figures.totals.live_bytes;
        report->sites[row->sites[i]].grows |= live > 0 || row->site_count == 1;
        if (live > report->sites[row->site].figures.totals.live_bytes)
            row->site = row->sites[i];
    }
}

/* All owned sites, so that those of one line, space and device follow each other. */
struct groups {
    size_t count;
    uint32_t *order;   /* index in the report's sites */
    uint32_t *catalog; /* the same by their ids in the catalog */
};

/* Of which group a site is. */
static int compare_groups(const struct report_site *a, const struct report_site *b)
{
    int64_t of_a[] = {a->line, a->layer, a->key->space, a->key->device};
    int64_t of_b[] = {b->line, b->layer, b->key->space, b->key->device};
    for (size_t n = 0; n < sizeof of_a / sizeof *of_a; n++)
        if (of_a[n] != of_b[n])
            return of_a[n] < of_b[n] ? -1 : 1;
    return 0;
}

static int compare_places(const void *left, const void *right, const void *context)
{
    const struct report *report = context;
    uint32_t i = *(const uint32_t *)left, k = *(const uint32_t *)right;
    int order = compare_groups(&report->sites[i], &report->sites[k]);
    return order ? order : (i > k) - (i < k);
}

static bool group_sites(struct report *report, struct groups *groups)
{
    groups->order = arena_alloc(report->arena, (report->site_count + 1) * sizeof *groups->order);
    groups->catalog = arena_alloc(report->arena, (report->site_count + 1) * sizeof *groups->catalog);
    if (!groups->order || !groups->catalog)
        return false;
    for (uint32_t i = 0; i < report->site_count; i++)
        if (report->sites[i].owned)
            groups->order[groups->count++] = i;
    if (!sort_items(groups->order, groups->count, sizeof *groups->order, compare_places, report))
        return false;
    for (size_t i = 0; i < groups->count; i++)
        groups->catalog[i] = report->sites[groups->order[i]].catalog_id;
    return true;
}

static size_t end_of_group(const struct report *report, const struct groups *groups, size_t from)
{
    size_t end = from + 1;
    while (end < groups->count &&
           compare_groups(&report->sites[groups->order[from]], &report->sites[groups->order[end]]) == 0)
        end++;
    return end;
}

/* Sites [from, end) of the groups: a row for each that grows by itself, and for their line one if they grow
 * together, or those rows again. */
static void judge_group(struct report *report, const struct groups *groups, size_t from, size_t end,
                        uint64_t end_ns)
{
    const struct ledger *ledger = report->input->ledger;
    const uint32_t *order = groups->order;
    size_t alone = report->growing_count;
    for (size_t i = from; i < end; i++) {
        struct growing *row = &report->growing[report->growing_count];
        *row = (struct growing){.site = order[i], .sites = &order[i], .site_count = 1};
        if (!ledger_growth(ledger, groups->catalog[i], end_ns, &row->growth))
            continue;
        finish_row(report, row);
        report->growing_count++;
    }
    struct growing *line = &report->growing_lines[report->growing_line_count];
    *line = (struct growing){.site = order[from], .sites = &order[from], .site_count = end - from};
    if (end - from > 1 &&
        ledger_growth_together(ledger, groups->catalog + from, end - from, end_ns, &line->growth)) {
        finish_row(report, line);
        report->growing_line_count++;
        return;
    }
    for (; alone < report->growing_count; alone++)
        report->growing_lines[report->growing_line_count++] = report->growing[alone];
}

bool report_build_growth(struct report *report)
{
    uint64_t end_ns = report->worked_ns;
    struct groups groups = {0};
    if (!group_sites(report, &groups))
        return false;
    report->growing = arena_alloc(report->arena, (groups.count + 1) * sizeof *report->growing);
    report->growing_lines = arena_alloc(report->arena, (groups.count + 1) * sizeof *report->growing_lines);
    if (!report->growing || !report->growing_lines)
        return false;
    for (size_t from = 0, end; from < groups.count; from = end) {
        end = end_of_group(report, &groups, from);
        judge_group(report, &groups, from, end, end_ns);
    }
    return sort_items(report->growing, report->growing_count, sizeof *report->growing, compare_growing,
                      NULL) &&
           sort_items(report->growing_lines, report->growing_line_count, sizeof *report->growing_lines,
                      compare_growing, NULL);
}

const struct growing *report_growing(const struct report *report, uint32_t site)
{
    for (size_t i = 0; i < report->growing_count; i++)
        if (report->growing[i].site == site)
            return &report->growing[i];
    return NULL;
}
