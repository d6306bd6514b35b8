/*
 * Taking a saved ledger back (state.h). The items come from a file: each value is checked as far as anything
 * here or later would go wrong with it, and what cannot be is said. Values that merely contradict each other
 * give answers that contradict each other.
 */
#include <string.h>

#include "ledger/internal.h"
#include "ledger/phases.h"
#include "ledger/segments.h"
#include "ledger/state.h"

/* Of one OOM; the ledger itself takes far fewer (answers.c). */
#define OOM_LAYOUTS_MAX FRAMEWORKS_MAX
#define LAYOUT_LIST_MAX 1024
/* A history's cells are wide enough for any time, and their width can be shifted by. */
#define WIDTH_LOG2_MAX 58

struct item {
    struct ledger *ledger;
    struct ledger_restoring *restoring;
    const uint64_t *values;
};

static const char *const no_memory = "not enough memory";
static const char *const out_of_range = "a checkpoint's number is out of range";
static const char *const out_of_place = "a checkpoint's item is out of place";

static bool is_device(uint64_t value)
{
    return value <= (uint64_t)INT16_MAX + 1;
}

static int device_of(uint64_t value)
{
    return (int)value - 1;
}

/* A site that was restored, so that its record is there. */
static struct site_record *known_site(const struct ledger *ledger, uint64_t id)
{
    struct site_record *site = id < CATALOG_NONE ? list_at(&ledger->sites, (uint32_t)id) : NULL;
    return site == NULL || site->space == NULL ? NULL : site;
}

static bool is_catalog_site(const struct ledger *ledger, uint64_t id)
{
    return id < CATALOG_NONE && catalog_site(ledger->catalog, (uint32_t)id) != NULL;
}

static bool is_string(const struct ledger *ledger, uint64_t id)
{
    return id < CATALOG_NONE && catalog_string(ledger->catalog, (uint32_t)id) != NULL;
}

static const char *restore_counters(const struct item *item)
{
    memcpy(&item->ledger->counters, item->values, sizeof item->ledger->counters);
    return NULL;
}

static const char *restore_space(const struct item *item)
{
    const uint64_t *values = item->values;
    if (values[0] >= LAYER_COUNT || values[1] >= SPACE_COUNT || !is_device(values[2]))
        return out_of_range;
    struct ledger_space space = {
        .layer = (enum layer)values[0], .kind = (enum space_kind)values[1], .device = device_of(values[2])};
    enum { PEAK = 3 + sizeof space.totals / sizeof *values };
    memcpy(&space.totals, values + 3, sizeof space.totals);
    if (values[PEAK] > PEAK_PHASES_MAX)
        return out_of_range;
    space.peak_phase_count = (uint32_t)values[PEAK];
    for (uint32_t i = 0; i < space.peak_phase_count; i++)
        space.peak_phases[i] = (uint32_t)values[PEAK + 1 + i];
    struct space_record *record = ledger_restore_space(item->ledger, &space);
    if (record == NULL)
        return out_of_place;
    record->epoch = 1; /* its sites hold what they held at its peak, and say so by the same number */
    return NULL;
}

static const char *restore_site(const struct item *item)
{
    const uint64_t *values = item->values;
    if (!is_catalog_site(item->ledger, values[0]))
        return out_of_range;
    struct site_record *site = ledger_restore_site(item->ledger, (uint32_t)values[0]);
    if (site == NULL)
        return no_memory;
    memcpy(&site->totals, values + 1, sizeof site->totals);
    site->failed = values[9];
    site->first_time_ns = values[10];
    site->last_time_ns = values[11];
    site->bytes_at_peak = values[12];
    site->blocks_at_peak = values[13];
    site->user = (uint32_t)values[14];
    site->epoch = site->space->epoch;
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
    site->history = arena_alloc(item->ledger->arena, sizeof *site->history);
    if (site->history == NULL)
        return no_memory;
    site->history->origin_ns = values[1];
    site->history->width_log2 = (uint32_t)values[2];
    site->history->last = (uint32_t)values[3];
    memcpy(site->history->floors, values + 4, (values[3] + 1) * sizeof *values);
    return NULL;
}

/* From `values` on: key, size, born, site, context, references, birth. */
static const char *read_block(const struct item *item, const uint64_t *values, struct block *block)
{
    if (known_site(item->ledger, values[3]) == NULL || block_key_space(values[0]) >= KEY_SPACE_COUNT ||
        values[4] > UINT32_MAX || values[5] > UINT32_MAX)
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
    const char *wrong = read_block(item, item->values, &block);
    if (wrong != NULL)
        return wrong;
    return ledger_restore_block(item->ledger, &block, item->values[6]) == NULL ? out_of_place : NULL;
}

/* From `values` on: time, free, total, tracked bytes. */
static struct memory_sample read_sample(int device, const uint64_t *values)
{
    return (struct memory_sample){.device = device,
                                  .time_ns = values[0],
                                  .free_bytes = values[1],
                                  .total_bytes = values[2],
                                  .tracked_bytes = values[3]};
}

static const char *restore_memory(const struct item *item)
{
    const uint64_t *values = item->values;
    if (!is_device(values[0]))
        return out_of_range;
    int device = device_of(values[0]);
    struct device_figures *figures = ledger_reach_device(item->ledger, device);
    if (figures == NULL)
        return no_memory;
    *figures = (struct device_figures){.device = device,
                                       .latest = read_sample(device, values + 1),
                                       .first = read_sample(device, values + 5),
                                       .fullest = read_sample(device, values + 9),
                                       .contexts = values[13],
                                       .context_bytes = values[14],
                                       .code_loads = values[15],
                                       .code_bytes = values[16],
                                       .processes_ns = values[17],
                                       .own_bytes = values[18],
                                       .all_bytes = values[19]};
    return NULL;
}

static const char *restore_pool(const struct item *item)
{
    const uint64_t *values = item->values;
    if (!is_device(values[1]))
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

static const char *restore_oom(const struct item *item)
{
    const uint64_t *values = item->values;
    struct ledger *ledger = item->ledger;
    if (ledger->ooms.count == LEDGER_OOMS_MAX)
        return out_of_place;
    if (known_site(ledger, values[1]) == NULL || values[2] > UINT32_MAX || values[8] > ledger->sites.count ||
        values[9] > OOM_LAYOUTS_MAX)
        return out_of_range;
    struct share *shares = arena_alloc(ledger->arena, values[8] * sizeof *shares);
    struct layout *layouts = arena_alloc(ledger->arena, values[9] * sizeof *layouts);
    struct oom *oom = list_reach(&ledger->ooms, ledger->ooms.count);
    if (shares == NULL || layouts == NULL || oom == NULL)
        return no_memory;
    *oom = (struct oom){.time_ns = values[0],
                        .site = (uint32_t)values[1],
                        .error = (int32_t)values[2],
                        .requested_bytes = values[3],
                        .free_bytes = values[4],
                        .total_bytes = values[5],
                        .live_bytes = values[6],
                        .pool_unused_bytes = values[7],
                        .driver_bytes = values[10],
                        .granted_ns = values[11],
                        .freed_bytes = values[12],
                        .ended_bytes = values[13],
                        .shares = shares,
                        .layouts = layouts};
    ledger->unanswered += oom->granted_ns == 0;
    *item->restoring = (struct ledger_restoring){.oom = oom,
                                                 .shares = shares,
                                                 .shares_left = (uint32_t)values[8],
                                                 .layouts = layouts,
                                                 .layouts_left = (uint32_t)values[9]};
    return NULL;
}

static const char *restore_share(const struct item *item)
{
    struct ledger_restoring *restoring = item->restoring;
    if (restoring->shares_left == 0)
        return out_of_place;
    if (known_site(item->ledger, item->values[0]) == NULL)
        return out_of_range;
    restoring->shares_left--;
    restoring->shares[restoring->oom->share_count++] = (struct share){
        .site = (uint32_t)item->values[0], .bytes = item->values[1], .blocks = item->values[2]};
    return NULL;
}

static const char *restore_layout(const struct item *item)
{
    struct ledger_restoring *restoring = item->restoring;
    const uint64_t *values = item->values;
    if (restoring->layouts_left == 0)
        return out_of_place;
    if (!is_string(item->ledger, values[0]) || !is_device(values[1]) || values[11] > LAYOUT_LIST_MAX ||
        values[12] > LAYOUT_LIST_MAX)
        return out_of_range;
    struct layout_segment *segments = arena_alloc(item->ledger->arena, values[11] * sizeof *segments);
    struct layout_pinner *pinners = arena_alloc(item->ledger->arena, values[12] * sizeof *pinners);
    if (segments == NULL || pinners == NULL)
        return no_memory;
    restoring->layouts_left--;
    restoring->layout = &restoring->layouts[restoring->oom->layout_count++];
    *restoring->layout = (struct layout){.allocator = (uint32_t)values[0],
                                         .device = device_of(values[1]),
                                         .time_ns = values[2],
                                         .reserved_bytes = values[3],
                                         .allocated_bytes = values[4],
                                         .releasable_bytes = values[5],
                                         .stranded_bytes = values[6],
                                         .largest_free_bytes = values[7],
                                         .blocks = values[8],
                                         .outside_bytes = values[9],
                                         .segment_count = values[10],
                                         .segments = segments,
                                         .pinners = pinners};
    restoring->segments = segments;
    restoring->segments_left = (uint32_t)values[11];
    restoring->pinners = pinners;
    restoring->pinners_left = (uint32_t)values[12];
    return NULL;
}

static const char *restore_layout_segment(const struct item *item)
{
    struct ledger_restoring *restoring = item->restoring;
    const uint64_t *values = item->values;
    if (restoring->segments_left == 0)
        return out_of_place;
    restoring->segments_left--;
    struct layout_segment *segment = &restoring->segments[restoring->layout->listed_count++];
    *segment = (struct layout_segment){.start = values[0],
                                       .bytes = values[1],
                                       .allocated_bytes = values[2],
                                       .releasable_bytes = values[3],
                                       .stranded_bytes = values[4],
                                       .largest_free_bytes = values[5],
                                       .blocks = values[6]};
    for (unsigned i = 0; i < LAYOUT_COLUMNS; i++)
        segment->map[i] = LAYOUT_MAP_CHARACTERS[values[7 + i / 32] >> (2 * (i % 32)) & 3];
    return NULL;
}

static const char *restore_pinner(const struct item *item)
{
    struct ledger_restoring *restoring = item->restoring;
    if (restoring->pinners_left == 0)
        return out_of_place;
    if (known_site(item->ledger, item->values[0]) == NULL)
        return out_of_range;
    restoring->pinners_left--;
    restoring->pinners[restoring->layout->pinner_count++] =
        (struct layout_pinner){.site = (uint32_t)item->values[0],
                               .stranded_bytes = item->values[1],
                               .pieces = item->values[2],
                               .blocks = item->values[3]};
    return NULL;
}

static const char *restore_segments(const struct item *item)
{
    struct segments *segments = &item->ledger->segments;
    segments->active = item->values[0] != 0;
    segments->ended_start = item->values[1];
    segments->ended_size = item->values[2];
    segments->ended_users = (uint32_t)item->values[3];
    return NULL;
}

static const char *restore_framework(const struct item *item)
{
    struct list *frameworks = &item->ledger->segments.frameworks;
    if (frameworks->count == FRAMEWORKS_MAX)
        return out_of_place;
    if (!is_string(item->ledger, item->values[0]))
        return out_of_range;
    uint32_t *name = list_reach(frameworks, frameworks->count);
    if (name == NULL)
        return no_memory;
    *name = (uint32_t)item->values[0];
    return NULL;
}

static const char *restore_fullest(const struct item *item)
{
    if (!is_device(item->values[0]))
        return out_of_range;
    if (segments_fullest(item->ledger, device_of(item->values[0])) != NULL)
        return out_of_place;
    struct fullest fullest = {.device = device_of(item->values[0]),
                              .driver_bytes = item->values[1],
                              .framework_bytes = item->values[2],
                              .time_ns = item->values[3],
                              .event = item->values[4],
                              .mapped_bytes = item->values[5],
                              .mapped_now = item->values[6]};
    return segments_restore_fullest(item->ledger, &fullest) ? NULL : no_memory;
}

/* The fullest moment of that number, from 0; NULL when there is none. */
static struct fullest *nth_fullest(const struct item *item, uint64_t number)
{
    return number < UINT32_MAX ? list_at(&item->ledger->segments.fullest, (uint32_t)number) : NULL;
}

static const char *restore_segment(const struct item *item)
{
    const uint64_t *values = item->values;
    struct ledger_restoring *restoring = item->restoring;
    struct fullest *fullest = values[0] == 0 ? NULL : nth_fullest(item, values[0] - 1);
    if ((values[0] != 0 && fullest == NULL) || !is_catalog_site(item->ledger, values[3]) ||
        values[4] > UINT32_MAX)
        return out_of_range;
    struct segment *segment = pool_get(&item->ledger->segments.pool);
    if (segment == NULL)
        return no_memory;
    *segment = (struct segment){.start = values[1],
                                .size = values[2],
                                .site = (uint32_t)values[3],
                                .context = (uint32_t)values[4],
                                .mapped = values[5] != 0,
                                .users = (uint32_t)values[6],
                                .users_then = (uint32_t)values[7],
                                .then = values[8],
                                .birth = values[9]};
    if (fullest == NULL)
        return segments_restore(item->ledger, segment) ? NULL : out_of_place;
    if (restoring->kept_segments_of != values[0]) {
        if (fullest->segments != NULL)
            return out_of_place;
        restoring->kept_segments_of = (uint32_t)values[0];
        restoring->kept_segment = &fullest->segments;
    }
    *restoring->kept_segment = segment;
    restoring->kept_segment = &segment->next;
    return NULL;
}

static const char *restore_kept_block(const struct item *item)
{
    struct ledger_restoring *restoring = item->restoring;
    struct fullest *fullest = item->values[0] == 0 ? NULL : nth_fullest(item, item->values[0] - 1);
    struct block block;
    const char *wrong = read_block(item, item->values + 1, &block);
    if (fullest == NULL || wrong != NULL)
        return fullest == NULL ? out_of_range : wrong;
    if (restoring->kept_blocks_of != item->values[0]) {
        if (fullest->blocks != NULL)
            return out_of_place;
        restoring->kept_blocks_of = (uint32_t)item->values[0];
        restoring->kept_block = &fullest->blocks;
    }
    struct block_entry *entry = pool_get(&item->ledger->block_pool);
    if (entry == NULL)
        return no_memory;
    memset(entry, 0, sizeof *entry);
    entry->block = block;
    entry->birth = item->values[7];
    *restoring->kept_block = entry;
    restoring->kept_block = &entry->next;
    return NULL;
}

static const char *restore_phase(const struct item *item)
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

static const char *restore_range(const struct item *item)
{
    struct phase_range range = {(uint32_t)item->values[0], (uint32_t)item->values[1]};
    if (item->values[0] > UINT32_MAX || item->values[1] > UINT32_MAX)
        return out_of_range;
    return phases_restore_range(item->ledger, &range) == NULL ? out_of_place : NULL;
}

static const char *restore_phase_site(const struct item *item)
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

static const char *restore_steps(const struct item *item)
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
    history->last = (uint32_t)values[3];
    memcpy(history->floors, values + 4, (values[3] + 1) * sizeof *values);
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
};

const char *ledger_restore(struct ledger *ledger, struct ledger_restoring *restoring, unsigned kind,
                           const uint64_t *values)
{
    struct item item = {.ledger = ledger, .restoring = restoring, .values = values};
    if (kind >= sizeof kinds / sizeof *kinds || kinds[kind].restore == NULL)
        return NULL;
    return kinds[kind].restore(&item);
}
