/*
 * Taking a saved ledger back (state.h). The items come from a file: each value is checked as far as anything
 * here or later would go wrong with it, and what cannot be is said. Values that merely contradict each other
 * give answers that contradict each other.
 */
#include "ledger/restore.h"

#include <string.h>

static const char *restore_counters(const struct item *item)
{
    memcpy(&item->ledger->counters, item->values, sizeof item->ledger->counters);
    return NULL;
}

#define TOTALS_FIGURES 7 /* those of struct totals before its time */

/* Whether sums over all sites are figures still, with this one's. */
static bool can_be_summed(struct ledger_restoring *restoring, const struct totals *totals, uint64_t at_peak)
{
    const uint64_t parts[] = {totals->live_bytes,    totals->peak_bytes, at_peak,
                              totals->live_blocks,   totals->allocs,     totals->frees,
                              totals->teardown_frees};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        restoring->sum = ledger_sum(restoring->sum, parts[i]);
    return restoring->sum < LEDGER_FIGURE_MAX / 2;
}

static const char *read_space(const uint64_t *values, struct ledger_space *space)
{
    if (values[0] >= LAYER_COUNT || values[1] >= SPACE_COUNT || !is_device(values[2]))
        return out_of_range;
    *space = (struct ledger_space){
        .layer = (enum layer)values[0], .kind = (enum space_kind)values[1], .device = device_of(values[2])};
    enum { PEAK = 3 + sizeof space->totals / sizeof *values };
    memcpy(&space->totals, values + 3, sizeof space->totals);
    if (values[PEAK] > PEAK_PHASES_MAX || !are_figures(values + 3, TOTALS_FIGURES))
        return out_of_range;
    space->peak_phase_count = (uint32_t)values[PEAK];
    for (uint32_t i = 0; i < space->peak_phase_count; i++)
        space->peak_phases[i] = (uint32_t)values[PEAK + 1 + i];
    return NULL;
}

static const char *restore_space(const struct item *item)
{
    struct ledger_space space;
    const char *wrong = read_space(item->values, &space);
    if (wrong != NULL)
        return wrong;
    if (space.totals.live_bytes > LEDGER_LIVE_MAX || space.totals.peak_bytes > LEDGER_LIVE_MAX)
        return out_of_range;
    struct space_record *record = ledger_restore_space(item->ledger, &space);
    if (record == NULL)
        return out_of_place;
    record->epoch = 1; /* its sites hold what they held at its peak, and say so by the same number */
    return NULL;
}

static const char *restore_whole(const struct item *item)
{
    struct ledger_space space;
    const char *wrong = read_space(item->values, &space);
    if (wrong != NULL)
        return wrong;
    return ledger_restore_whole(item->ledger, &space) == NULL ? out_of_place : NULL;
}

static const char *restore_site(const struct item *item)
{
    const uint64_t *values = item->values;
    if (!is_catalog_site(item->ledger, values[0]))
        return out_of_range;
    struct site_record *site = ledger_reach_site(item->ledger, (uint32_t)values[0]);
    if (site == NULL)
        return no_memory;
    memcpy(&site->totals, values + 1, sizeof site->totals);
    if (!are_figures(values + 1, TOTALS_FIGURES) || !are_figures(values + 12, 2) ||
        !are_figures(values + 15, 2) || !can_be_summed(item->restoring, &site->totals, values[12]))
        return out_of_range;
    site->failed = values[9];
    site->first_time_ns = values[10];
    site->last_time_ns = values[11];
    site->at_peak = (struct share_at_peak){site->space->epoch, values[12], values[13]};
    site->user = (uint32_t)values[14];
    site->ended_ns = values[17];
    site->at_whole_peak = (struct share_at_peak){item->ledger->whole.epoch, values[15], values[16]};
    return NULL;
}

static const char *restore_history(const struct item *item)
{
    const uint64_t *values = item->values;
    struct site_record *site = known_site(item->ledger, values[0]);
    if (site == NULL || site->history != NULL)
        return out_of_place;
    if (values[2] > WIDTH_LOG2_MAX || values[3] >= HISTORY_CELLS)
        return out_of_range;
    struct history history = {
        .origin_ns = values[1], .width_log2 = (uint32_t)values[2], .last = (uint16_t)values[3]};
    memcpy(history.floors, values + 4, (values[3] + 1) * sizeof *values);
    return histories_restore(item->ledger, site, &history) ? NULL : no_memory;
}

const char *restore_read_block(const struct item *item, const uint64_t *values, struct block *block)
{
    if (known_site(item->ledger, values[3]) == NULL || block_key_space(values[0]) >= KEY_SPACE_COUNT ||
        values[1] > LEDGER_LIVE_MAX || values[4] > UINT32_MAX || values[5] > UINT32_MAX)
        return out_of_range;
    *block = (struct block){.key = values[0],
                            .size = values[1],
                            .born_ns = values[2],
                            .site = (uint32_t)values[3],
                            .context = (uint32_t)values[4],
                            .references = (uint32_t)values[5]};
    return NULL;
}

static const char *restore_block(const struct item *item)
{
    struct block block;
    const char *wrong = restore_read_block(item, item->values, &block);
    if (wrong != NULL)
        return wrong;
    return ledger_restore_block(item->ledger, &block, item->values[6]) == NULL ? out_of_place : NULL;
}

/* From *values on, which moves behind it. False for a reason that there is none of. */
static bool read_sample(const uint64_t **values, int device, struct memory_sample *sample)
{
    const uint64_t *of = *values;
    *values += SAMPLE_VALUES;
    *sample = (struct memory_sample){.device = device,
                                     .reason = (enum sample_reason)of[0],
                                     .time_ns = of[1],
                                     .free_bytes = of[2],
                                     .total_bytes = of[3],
                                     .tracked_bytes = of[4],
                                     .context_bytes = of[5],
                                     .code_bytes = of[6],
                                     .pool_unused_bytes = of[7],
                                     .graph_bytes = of[8]};
    return of[0] < SAMPLE_REASON_COUNT && are_figures(of + 2, SAMPLE_VALUES - 2);
}

static struct held read_held(const uint64_t *values)
{
    return (struct held){.count = values[0], .bytes = values[1], .basis = (enum basis)values[2]};
}

static const char *restore_memory(const struct item *item)
{
    const uint64_t *values = item->values;
    if (!is_device(values[0]) || values[3] >= BASIS_COUNT || values[6] >= BASIS_COUNT ||
        !are_figures(values + 1, 2) || !are_figures(values + 4, 2) || !are_figures(values + 8, 2))
        return out_of_range;
    int device = device_of(values[0]);
    struct device_figures *figures = ledger_reach_device(item->ledger, device);
    if (figures == NULL)
        return no_memory;
    *figures = (struct device_figures){.device = device,
                                       .contexts = read_held(values + 1),
                                       .code = read_held(values + 4),
                                       .processes_ns = values[7],
                                       .own_bytes = values[8],
                                       .all_bytes = values[9]};
    values += MEMORY_SAMPLES_AT;
    bool good = read_sample(&values, device, &figures->first);
    good &= read_sample(&values, device, &figures->latest);
    good &= read_sample(&values, device, &figures->fullest);
    for (int reason = 0; reason < SAMPLE_REASON_COUNT; reason++)
        good &= read_sample(&values, device, &figures->last[reason]);
    return good ? NULL : out_of_range;
}

static const char *restore_pool(const struct item *item)
{
    const uint64_t *values = item->values;
    if (!is_device(values[1]) || values[4] > values[3] || values[3] > LEDGER_LIVE_MAX ||
        values[6] > LEDGER_LIVE_MAX)
        return out_of_range;
    struct pool_sample *sample = list_reach(&item->ledger->pools, item->ledger->pools.count);
    if (sample == NULL)
        return no_memory;
    *sample = (struct pool_sample){.handle = values[0],
                                   .device = device_of(values[1]),
                                   .time_ns = values[2],
                                   .reserved_bytes = values[3],
                                   .used_bytes = values[4],
                                   .threshold_bytes = values[5],
                                   .peak_reserved_bytes = values[6]};
    return NULL;
}

static const char *restore_summits(const struct item *item)
{
    struct ledger *ledger = item->ledger;
    const uint64_t *values = item->values;
    struct space_record *space =
        values[0] < UINT32_MAX ? list_at(&ledger->spaces, (uint32_t)values[0]) : NULL;
    if (values[0] == ledger->spaces.count && ledger->whole.in_whole)
        space = &ledger->whole;
    if (space == NULL || values[1] > SUMMITS_ROOM_MAX)
        return out_of_range;
    if (space->summits.room > 0 || space->summits.floor > 0)
        return out_of_place;
    struct summits summits = {
        .room = (uint32_t)values[1], .floor = values[2], .rising = values[3] != 0, .rose_ns = values[4]};
    if (summits.room > 0)
        summits.entries = arena_alloc(ledger->arena, summits.room * sizeof *summits.entries);
    if (summits.room > 0 && summits.entries == NULL)
        return no_memory;
    space->summits = summits;
    item->restoring->summits = &space->summits;
    return NULL;
}

static const char *restore_summit(const struct item *item)
{
    struct summits *summits = item->restoring->summits;
    if (summits == NULL)
        return out_of_place;
    for (uint32_t i = 0; i < SUMMITS_AT_ONCE; i++) {
        uint64_t number = item->values[2 * i], value = item->values[2 * i + 1];
        if (number == 0 && value == 0)
            break;
        if (summits->count == summits->room)
            return out_of_place;
        if (number > 0 && known_site(item->ledger, number - 1) == NULL)
            return out_of_range;
        struct summit_entry entry = {.site = SUMMIT_MARK, .bytes = value - 1};
        if (number > 0)
            entry = (struct summit_entry){(value >> 1) ^ (0 - (value & 1)), (uint32_t)(number - 1)};
        summits->entries[summits->count++] = entry;
    }
    return NULL;
}

static const struct {
    const char *(*restore)(const struct item *);
} kinds[] = {
    [STATE_COUNTERS] = {restore_counters},
    [STATE_SPACE] = {restore_space},
    [STATE_SITE] = {restore_site},
    [STATE_HISTORY] = {restore_history},
    [STATE_BLOCK] = {restore_block},
    [STATE_MEMORY] = {restore_memory},
    [STATE_POOL] = {restore_pool},
    [STATE_OOM] = {restore_oom},
    [STATE_SHARE] = {restore_share},
    [STATE_LAYOUT] = {restore_layout},
    [STATE_LAYOUT_SEGMENT] = {restore_layout_segment},
    [STATE_PINNER] = {restore_pinner},
    [STATE_SEGMENTS] = {restore_segments},
    [STATE_FRAMEWORK] = {restore_framework},
    [STATE_FULLEST] = {restore_fullest},
    [STATE_SEGMENT] = {restore_segment},
    [STATE_KEPT_BLOCK] = {restore_kept_block},
    [STATE_PHASE] = {restore_phase},
    [STATE_RANGE] = {restore_range},
    [STATE_PHASE_SITE] = {restore_phase_site},
    [STATE_STEPS] = {restore_steps},
    [STATE_WHOLE] = {restore_whole},
    [STATE_SUMMITS] = {restore_summits},
    [STATE_SUMMIT] = {restore_summit},
};

const char *ledger_restore(struct ledger *ledger, struct ledger_restoring *restoring, unsigned kind,
                           const uint64_t *values)
{
    struct item item = {.ledger = ledger, .restoring = restoring, .values = values};
    if (kind >= sizeof kinds / sizeof *kinds || kinds[kind].restore == NULL)
        return NULL;
    return kinds[kind].restore(&item);
}
