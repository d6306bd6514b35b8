/* What the driver says of devices and of memory pools, as the ledger keeps it (ledger.h). */
#include "ledger/internal.h"

#define POOL_SAMPLES_MAX 256

uint64_t ledger_live_on(const struct ledger *ledger, int device)
{
    for (uint32_t i = 0; i < ledger->spaces.count; i++) {
        const struct space_record *space = list_at(&ledger->spaces, i);
        if (space->is.layer == LAYER_DRIVER && space->is.kind == SPACE_DEVICE && space->is.device == device)
            return space->is.totals.live_bytes;
    }
    return 0;
}

struct device_figures *ledger_reach_device(struct ledger *ledger, int device)
{
    for (uint32_t i = 0; i < ledger->devices.count; i++) {
        struct device_figures *known = list_at(&ledger->devices, i);
        if (known->device == device)
            return known;
    }
    struct device_figures *figures = ledger->devices.count < LEDGER_DEVICES_MAX
                                         ? list_reach(&ledger->devices, ledger->devices.count)
                                         : NULL;
    if (figures != NULL)
        figures->device = figures->first.device = figures->latest.device = figures->fullest.device = device;
    return figures;
}

uint64_t ledger_unused_in_pools(const struct ledger *ledger, int device)
{
    uint64_t unused = 0;
    for (uint32_t i = 0; i < ledger->pools.count; i++) {
        const struct pool_sample *pool = list_at(&ledger->pools, i);
        if (pool->device == device)
            unused += pool->reserved_bytes - pool->used_bytes;
    }
    return unused;
}

/* Of a sample from before this process had anything, what it has by now is no part. */
static void add_sample(const struct ledger *ledger, struct device_figures *figures, const struct event *event,
                       enum sample_reason reason, uint64_t graph_bytes)
{
    struct memory_sample sample = {.device = figures->device,
                                   .reason = reason,
                                   .time_ns = event->time_ns,
                                   .free_bytes = ledger_believed(event->free_bytes),
                                   .total_bytes = ledger_believed(event->total_bytes)};
    if (reason == SAMPLE_START) {
        sample.time_ns = 0;
    } else {
        sample.tracked_bytes = ledger_live_on(ledger, figures->device);
        sample.context_bytes = figures->contexts.bytes;
        sample.code_bytes = figures->code.bytes;
        sample.pool_unused_bytes = ledger_unused_in_pools(ledger, figures->device);
        sample.graph_bytes = ledger_believed(graph_bytes);
    }
    figures->latest = figures->last[reason] = sample;
    if (figures->first.total_bytes == 0)
        figures->first = sample;
    if (figures->fullest.total_bytes == 0 || sample.tracked_bytes > figures->fullest.tracked_bytes)
        figures->fullest = sample;
}

static struct held held_of(const struct event *event)
{
    return (struct held){.count = event->count,
                         .bytes = ledger_believed(event->size),
                         .basis = event->detail < BASIS_COUNT ? (enum basis)event->detail : BASIS_UNKNOWN};
}

static void apply_to_device(const struct ledger *ledger, struct device_figures *figures,
                            const struct event *event)
{
    switch (event->type) {
    case EVENT_CONTEXTS:
        figures->contexts = held_of(event);
        break;
    case EVENT_CODE:
        figures->code = held_of(event);
        break;
    case EVENT_PROCESSES:
        figures->processes_ns = event->time_ns > 0 ? event->time_ns : 1;
        figures->own_bytes = ledger_believed(event->size);
        figures->all_bytes = ledger_believed(event->total_bytes);
        break;
    case EVENT_OOM: /* the driver told what was free, but nothing of graphs */
        add_sample(ledger, figures, event, SAMPLE_OOM, figures->latest.graph_bytes);
        break;
    default:
        add_sample(ledger, figures, event,
                   event->detail < SAMPLE_REASON_COUNT ? (enum sample_reason)event->detail
                                                       : SAMPLE_ALLOCATION,
                   event->size);
        break;
    }
}

bool ledger_apply_figures(struct ledger *ledger, const struct event *event, int device)
{
    struct device_figures *figures = ledger_reach_device(ledger, device);
    if (figures != NULL)
        apply_to_device(ledger, figures, event);
    return figures != NULL;
}

bool ledger_apply_pool(struct ledger *ledger, const struct event *event)
{
    struct pool_sample *sample = NULL;
    uint64_t handle = block_key_number(event->key);
    for (uint32_t i = 0; i < ledger->pools.count && sample == NULL; i++) {
        struct pool_sample *known = list_at(&ledger->pools, i);
        if (known->handle == handle && known->device == event->device)
            sample = known;
    }
    if (sample == NULL && ledger->pools.count < POOL_SAMPLES_MAX)
        sample = list_reach(&ledger->pools, ledger->pools.count);
    if (sample == NULL)
        return false;
    uint64_t reserved = ledger_believed(event->total_bytes), peak = sample->peak_reserved_bytes;
    uint64_t unused = event->free_bytes < reserved ? event->free_bytes : reserved;
    *sample = (struct pool_sample){.handle = handle,
                                   .device = event->device,
                                   .time_ns = event->time_ns,
                                   .reserved_bytes = reserved,
                                   .used_bytes = reserved - unused,
                                   .threshold_bytes = event->size,
                                   .peak_reserved_bytes = reserved > peak ? reserved : peak};
    return true;
}
