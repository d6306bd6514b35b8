/* What the driver says of devices and of memory pools, as the ledger keeps it (ledger.h). */
#include "ledger/internal.h"

#define DEVICES_MAX      256
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
    struct device_figures *figures =
        ledger->devices.count < DEVICES_MAX ? list_reach(&ledger->devices, ledger->devices.count) : NULL;
    if (figures != NULL)
        figures->device = figures->first.device = figures->latest.device = figures->fullest.device = device;
    return figures;
}

static void add_sample(struct device_figures *figures, const struct memory_sample *sample)
{
    figures->latest = *sample;
    if (figures->first.total_bytes == 0)
        figures->first = *sample;
    if (figures->fullest.total_bytes == 0 || sample->tracked_bytes > figures->fullest.tracked_bytes)
        figures->fullest = *sample;
}

bool ledger_apply_figures(struct ledger *ledger, const struct event *event)
{
    struct device_figures *figures = ledger_reach_device(ledger, event->device);
    if (figures == NULL)
        return false;
    switch (event->type) {
    case EVENT_CONTEXT_MADE:
        figures->contexts++;
        figures->context_bytes += event->size;
        break;
    case EVENT_CODE_LOADED:
        figures->code_loads++;
        figures->code_bytes += event->size;
        break;
    case EVENT_PROCESSES:
        figures->processes_ns = event->time_ns > 0 ? event->time_ns : 1;
        figures->own_bytes = event->size;
        figures->all_bytes = event->total_bytes;
        break;
    default: {
        struct memory_sample sample = {.device = event->device,
                                       .time_ns = event->time_ns,
                                       .free_bytes = event->free_bytes,
                                       .total_bytes = event->total_bytes,
                                       .tracked_bytes = ledger_live_on(ledger, event->device)};
        add_sample(figures, &sample);
        break;
    }
    }
    return true;
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
    uint64_t reserved = event->total_bytes, peak = sample->peak_reserved_bytes;
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
