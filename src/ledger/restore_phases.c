/* Taking back, item by item, phases and steps (restore.c). */
#include <string.h>

#include "ledger/phases.h"
#include "ledger/restore.h"

const char *restore_phase(const struct item *item)
{
    const uint64_t *values = item->values;
    if (!is_string(item->ledger, values[0]) || values[1] > ledger_phase_count(item->ledger) ||
        values[3] > PHASE_RANGES_MAX)
        return out_of_range;
    struct program_phase phase = {
        .name = (uint32_t)values[0],
        .parent = values[1] == 0 ? PHASE_NONE : (uint32_t)(values[1] - 1),
        .ranges = values[2],
        .open = (uint32_t)values[3],
        .periods = values[4],
        .first_ns = values[5],
        .time_ns = values[6],
        .layers = {[LAYER_DRIVER] = {.peak_bytes = values[7], .net_bytes = (int64_t)values[8]},
                   [LAYER_FRAMEWORK] = {.peak_bytes = values[9], .net_bytes = (int64_t)values[10]}}};
    struct phase_record *record = phases_restore(item->ledger, &phase);
    if (record == NULL)
        return out_of_place;
    record->began_ns = values[11];
    record->began_bytes[LAYER_DRIVER] = values[12];
    record->began_bytes[LAYER_FRAMEWORK] = values[13];
    return NULL;
}

const char *restore_range(const struct item *item)
{
    struct phase_range range = {(uint32_t)item->values[0], (uint32_t)item->values[1]};
    if (item->values[0] > UINT32_MAX || item->values[1] > UINT32_MAX)
        return out_of_range;
    return phases_restore_range(item->ledger, &range) == NULL ? out_of_place : NULL;
}

const char *restore_phase_site(const struct item *item)
{
    const uint64_t *values = item->values;
    if (values[0] > UINT32_MAX || !is_catalog_site(item->ledger, values[1]))
        return out_of_range;
    struct phase_site site = {.phase = (uint32_t)values[0],
                              .site = (uint32_t)values[1],
                              .rise_bytes = values[2],
                              .net_bytes = (int64_t)values[3]};
    struct phase_site_record *record = phases_restore_site(item->ledger, &site);
    if (record == NULL)
        return out_of_place;
    record->period = values[4];
    record->base = values[5];
    return NULL;
}

const char *restore_steps(const struct item *item)
{
    const uint64_t *values = item->values;
    if (values[2] > WIDTH_LOG2_MAX || values[3] >= HISTORY_CELLS)
        return out_of_range;
    struct history *history = phases_restore_steps(item->ledger);
    if (history == NULL)
        return no_memory;
    item->ledger->phases.steps = values[0];
    history->origin_ns = values[1];
    history->width_log2 = (uint32_t)values[2];
    history->last = (uint16_t)values[3];
    memcpy(history->floors, values + 4, (values[3] + 1) * sizeof *values);
    return NULL;
}
