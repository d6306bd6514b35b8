/* Who has a device's memory: what we track, and what is left when that is taken from what the driver calls
 * used. */
#include "report/model.h"

static uint64_t tracked_on(const struct report *report, int device)
{
    for (size_t i = 0; i < report->space_count; i++)
        if (report->spaces[i]->kind == SPACE_DEVICE && report->spaces[i]->device == device)
            return report->spaces[i]->totals.live_bytes;
    return 0;
}

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

bool report_build_memory_map(struct report *report)
{
    size_t count = ledger_memory_count(report->input->ledger);
    report->memory = arena_alloc(report->arena, (count + 1) * sizeof *report->memory);
    if (!report->memory)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct device_memory *row = &report->memory[report->memory_count++];
        row->sample = ledger_memory(report->input->ledger, i);
        row->tracked_bytes = tracked_on(report, row->sample->device);
        uint64_t total = row->sample->total_bytes, free_bytes = row->sample->free_bytes;
        uint64_t used = total > free_bytes ? total - free_bytes : 0;
        /* Figures of two moments have no difference worth printing. */
        row->untracked_known = total > 0 && used >= row->tracked_bytes &&
                               !allocated_since(report, row->sample->device, row->sample->time_ns);
        row->untracked_bytes = row->untracked_known ? used - row->tracked_bytes : 0;
    }
    return true;
}
