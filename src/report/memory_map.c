/*
 * Who has a device's memory: what we track, and of what the driver calls used beyond that, what contexts and
 * code were seen to take, what pools and graphs keep, what rounding costs, what other processes have, and
 * what is left. Figures of two moments have no difference worth telling, so the parts are told of the last
 * sample only where nothing was allocated or freed since.
 *
 * What was measured as a difference can be wrong by what others did meanwhile. Parts never add up to more
 * than there is: the least sure are cut, and it is said.
 */
#include "report/model.h"

/* NVML's figures and the driver's, asked for one after the other. */
#define SAME_MOMENT_NS UINT64_C(1000000000)

static bool allocated_since(const struct report *report, int device, uint64_t time_ns)
{
    for (size_t i = 0; i < report->site_count; i++) {
        const struct report_site *site = &report->sites[i];
        if (site->key->space == SPACE_DEVICE && site->key->device == device && site->layer == LAYER_DRIVER &&
            site->figures.totals.allocs && site->figures.last_time_ns > time_ns)
            return true;
    }
    return false;
}

static uint64_t less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

/* Whole granules for parts of them, and what pools round to inside theirs. */
static uint64_t rounding_on(const struct report *report, int device)
{
    for (size_t i = 0; i < report->fragmentation_count; i++) {
        const struct fragmentation *row = &report->fragmentation[i];
        if (row->device == device)
            return row->unpooled_waste_bytes + row->pool_rounding_bytes;
    }
    return 0;
}

static bool others_known(const struct device_figures *figures)
{
    return figures->processes_ns && figures->own_bytes &&
           figures->processes_ns + SAME_MOMENT_NS >= figures->latest.time_ns;
}

/* Takes a part from what is left, or as much of it as there is. */
static void take(struct device_memory *row, uint64_t *left, uint64_t *part)
{
    row->was_cut |= *part > *left;
    *part = *part < *left ? *part : *left;
    *left -= *part;
}

/* The surest first. */
static void share_out(struct device_memory *row, uint64_t used)
{
    uint64_t left = used - row->tracked_bytes;
    take(row, &left, &row->pool_unused_bytes);
    take(row, &left, &row->graph_bytes);
    if (row->context_known)
        take(row, &left, &row->context_bytes);
    if (row->code_known)
        take(row, &left, &row->code_bytes);
    take(row, &left, &row->rounding_bytes);
    if (row->others_known)
        take(row, &left, &row->others_bytes);
    row->untracked_bytes = left;
}

static void fill(const struct report *report, struct device_memory *row)
{
    const struct device_figures *figures = row->figures;
    const struct memory_sample *sample = row->sample;
    uint64_t used = less(sample->total_bytes, sample->free_bytes);
    row->tracked_bytes = ledger_live_on(report->input->ledger, figures->device);
    row->context_known = figures->contexts.basis != BASIS_UNKNOWN;
    row->context_bytes = figures->contexts.bytes;
    row->code_known = figures->code.basis != BASIS_UNKNOWN;
    row->code_bytes = figures->code.bytes;
    row->is_current = sample->total_bytes > 0 && sample->reason != SAMPLE_START &&
                      used >= row->tracked_bytes && sample->tracked_bytes == row->tracked_bytes &&
                      !allocated_since(report, figures->device, sample->time_ns);
    if (!row->is_current)
        return;
    row->pool_unused_bytes = sample->pool_unused_bytes;
    row->graph_bytes = sample->graph_bytes;
    row->rounding_bytes = rounding_on(report, figures->device);
    row->others_known = others_known(figures);
    row->others_bytes = less(figures->all_bytes, figures->own_bytes);
    share_out(row, used);
}

uint64_t report_rest_of(const struct memory_sample *sample)
{
    uint64_t known = sample->tracked_bytes + sample->context_bytes + sample->code_bytes +
                     sample->pool_unused_bytes + sample->graph_bytes;
    return less(less(sample->total_bytes, sample->free_bytes), known);
}

bool report_build_memory_map(struct report *report)
{
    const struct ledger *ledger = report->input->ledger;
    size_t count = ledger_memory_count(ledger);
    report->memory = arena_alloc(report->arena, (count + 1) * sizeof *report->memory);
    if (!report->memory)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct device_memory *row = &report->memory[report->memory_count++];
        *row =
            (struct device_memory){.figures = ledger_device(ledger, i), .sample = ledger_memory(ledger, i)};
        fill(report, row);
    }
    return true;
}
