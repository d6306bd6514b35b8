/*
 * Saving (state.h): walks the ledger and hands out its items. Whoever adds a field to what is walked here
 * saves it here and takes it back in restore.c; the sizes below are there to say so.
 */
#include "ledger/state.h"

#include <string.h>

#include "ledger/internal.h"
#include "ledger/phases.h"
#include "ledger/segments.h"

_Static_assert(sizeof(struct block) == 40, "a new field is to be saved and restored");
_Static_assert(sizeof(struct totals) == 64, "a new field is to be saved and restored");
_Static_assert(sizeof(struct ledger_counters) == 64, "a new field is to be saved and restored");
_Static_assert(sizeof(struct site_record) == 184, "a new field is to be saved and restored");
_Static_assert(sizeof(struct history) == 528, "a new field is to be saved and restored");
_Static_assert(sizeof(struct oom) == 144, "a new field is to be saved and restored");
_Static_assert(sizeof(struct layout) == 112, "a new field is to be saved and restored");
_Static_assert(sizeof(struct memory_sample) == 72, "a new field is to be saved and restored");
_Static_assert(sizeof(struct device_figures) == 728, "a new field is to be saved and restored");
_Static_assert(sizeof(struct pool_sample) == 56, "a new field is to be saved and restored");
_Static_assert(sizeof(struct segment) == 80, "a new field is to be saved and restored");
_Static_assert(sizeof(struct fullest) == 88, "a new field is to be saved and restored");
_Static_assert(sizeof(struct ledger_space) == 104, "a new field is to be saved and restored");
_Static_assert(sizeof(struct summits) == 40, "a new field is to be saved and restored");
_Static_assert(sizeof(struct program_phase) == 80, "a new field is to be saved and restored");
_Static_assert(sizeof(struct phase_site) == 24, "a new field is to be saved and restored");
_Static_assert(LEDGER_STATE_VALUES_MAX >= HISTORY_CELLS + 4 && LEDGER_STATE_VALUES_MAX >= MEMORY_VALUES,
               "the longest item fits");

/* Where items go. */
struct saving {
    const struct ledger *ledger;
    ledger_put_state *put;
    void *arg;
};

#define PUT(saving, kind, ...)                                                                               \
    do {                                                                                                     \
        const uint64_t values[] = {__VA_ARGS__};                                                             \
        (saving)->put((saving)->arg, STATE_##kind, values, sizeof values / sizeof *values);                  \
    } while (0)

/* Devices are -1 or more. */
static uint64_t device_value(int device)
{
    return (uint64_t)(int64_t)device + 1;
}

static void save_counters(const struct saving *saving)
{
    uint64_t values[sizeof(struct ledger_counters) / sizeof(uint64_t)];
    memcpy(values, &saving->ledger->counters, sizeof values);
    saving->put(saving->arg, STATE_COUNTERS, values, sizeof values / sizeof *values);
}

static void save_space(const struct saving *saving, enum ledger_state_kind kind,
                       const struct ledger_space *space)
{
    enum { TOTALS = sizeof(struct totals) / sizeof(uint64_t) };
    uint64_t values[3 + TOTALS + 1 + PEAK_PHASES_MAX] = {(uint64_t)space->layer, (uint64_t)space->kind,
                                                         device_value(space->device)};
    memcpy(values + 3, &space->totals, sizeof space->totals);
    values[3 + TOTALS] = space->peak_phase_count;
    for (uint32_t k = 0; k < space->peak_phase_count; k++)
        values[3 + TOTALS + 1 + k] = space->peak_phases[k];
    saving->put(saving->arg, kind, values, sizeof values / sizeof *values);
}

static void save_spaces(const struct saving *saving)
{
    for (uint32_t i = 0; i < saving->ledger->spaces.count; i++)
        save_space(saving, STATE_SPACE, ledger_space(saving->ledger, i));
    if (ledger_whole(saving->ledger) != NULL)
        save_space(saving, STATE_WHOLE, ledger_whole(saving->ledger));
}

/* Changes are small and of either sign. */
static uint64_t change_value(uint64_t change)
{
    return change << 1 ^ (0 - (change >> 63));
}

static void save_summits_of(const struct saving *saving, uint32_t number, const struct summits *summits)
{
    uint64_t pairs[2 * SUMMITS_AT_ONCE];
    PUT(saving, SUMMITS, number, summits->room, summits->floor, summits->rising, summits->rose_ns);
    for (uint32_t i = 0, filled = 0; i < summits->count; i++) {
        const struct summit_entry *entry = &summits->entries[i];
        bool is_mark = entry->site == SUMMIT_MARK;
        pairs[filled++] = is_mark ? 0 : (uint64_t)entry->site + 1;
        pairs[filled++] = is_mark ? entry->bytes + 1 : change_value(entry->bytes);
        if (filled < 2 * SUMMITS_AT_ONCE && i + 1 < summits->count)
            continue;
        saving->put(saving->arg, STATE_SUMMIT, pairs, filled);
        filled = 0;
    }
}

static void save_summits(const struct saving *saving)
{
    const struct ledger *ledger = saving->ledger;
    for (uint32_t i = 0; i < ledger->spaces.count; i++)
        save_summits_of(saving, i, &((const struct space_record *)list_at(&ledger->spaces, i))->summits);
    if (ledger->whole.in_whole)
        save_summits_of(saving, ledger->spaces.count, &ledger->whole.summits);
}

static void save_history(const struct saving *saving, uint32_t site, const struct history *history)
{
    uint64_t values[4 + HISTORY_CELLS] = {site, history->origin_ns, history->width_log2, history->last};
    memcpy(values + 4, history->floors, (history->last + 1) * sizeof *history->floors);
    saving->put(saving->arg, STATE_HISTORY, values, 4 + history->last + 1);
}

static void save_sites(const struct saving *saving)
{
    for (uint32_t i = 0; i < saving->ledger->sites.count; i++) {
        const struct site_record *record = list_at(&saving->ledger->sites, i);
        if (record->space == NULL)
            continue;
        struct site_totals site = ledger_site(saving->ledger, i);
        uint64_t values[] = {i,
                             0,
                             0,
                             0,
                             0,
                             0,
                             0,
                             0,
                             0,
                             site.failed,
                             site.first_time_ns,
                             site.last_time_ns,
                             site.bytes_at_peak,
                             site.blocks_at_peak,
                             record->user,
                             site.bytes_at_whole_peak,
                             site.blocks_at_whole_peak,
                             record->ended_ns};
        memcpy(values + 1, &site.totals, sizeof site.totals);
        saving->put(saving->arg, STATE_SITE, values, sizeof values / sizeof *values);
        if (record->history != NULL)
            save_history(saving, i, record->history);
    }
}

static void save_blocks(const struct saving *saving)
{
    const struct block_entry *entry = saving->ledger->blocks.oldest;
    for (; entry != NULL; entry = entry->newer) {
        const struct block *block = &entry->block;
        PUT(saving, BLOCK, block->key, block->size, block->born_ns, block->site, block->context,
            block->references, entry->birth);
    }
}

static uint64_t *put_sample(uint64_t *at, const struct memory_sample *sample)
{
    const uint64_t values[SAMPLE_VALUES] = {
        sample->reason,      sample->time_ns,           sample->free_bytes,
        sample->total_bytes, sample->tracked_bytes,     sample->context_bytes,
        sample->code_bytes,  sample->pool_unused_bytes, sample->graph_bytes};
    memcpy(at, values, sizeof values);
    return at + SAMPLE_VALUES;
}

static void save_device(const struct saving *saving, const struct device_figures *device)
{
    uint64_t values[MEMORY_VALUES] = {device_value(device->device),
                                      device->contexts.count,
                                      device->contexts.bytes,
                                      device->contexts.basis,
                                      device->code.count,
                                      device->code.bytes,
                                      device->code.basis,
                                      device->processes_ns,
                                      device->own_bytes,
                                      device->all_bytes};
    uint64_t *at = put_sample(values + MEMORY_SAMPLES_AT, &device->first);
    at = put_sample(put_sample(at, &device->latest), &device->fullest);
    for (int reason = 0; reason < SAMPLE_REASON_COUNT; reason++)
        at = put_sample(at, &device->last[reason]);
    saving->put(saving->arg, STATE_MEMORY, values, MEMORY_VALUES);
}

static void save_samples(const struct saving *saving)
{
    for (size_t i = 0; i < ledger_memory_count(saving->ledger); i++)
        save_device(saving, ledger_device(saving->ledger, i));
    for (size_t i = 0; i < ledger_pool_count(saving->ledger); i++) {
        const struct pool_sample *pool = ledger_pool(saving->ledger, i);
        PUT(saving, POOL, pool->handle, device_value(pool->device), pool->time_ns, pool->reserved_bytes,
            pool->used_bytes, pool->threshold_bytes, pool->peak_reserved_bytes);
    }
}

/* Its characters in two bits each. */
static uint64_t map_value(const char *map, unsigned half)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < LAYOUT_COLUMNS / 2; i++) {
        const char *found = strchr(LAYOUT_MAP_CHARACTERS, map[half * (LAYOUT_COLUMNS / 2) + i]);
        value |= (uint64_t)(found == NULL ? 0 : (found - LAYOUT_MAP_CHARACTERS) & 3) << (2 * i);
    }
    return value;
}

static void save_layout(const struct saving *saving, const struct layout *layout)
{
    PUT(saving, LAYOUT, layout->allocator, device_value(layout->device), layout->time_ns,
        layout->reserved_bytes, layout->allocated_bytes, layout->releasable_bytes, layout->stranded_bytes,
        layout->largest_free_bytes, layout->blocks, layout->outside_bytes, layout->segment_count,
        layout->listed_count, layout->pinner_count);
    for (size_t i = 0; i < layout->listed_count; i++) {
        const struct layout_segment *segment = &layout->segments[i];
        PUT(saving, LAYOUT_SEGMENT, segment->start, segment->bytes, segment->allocated_bytes,
            segment->releasable_bytes, segment->stranded_bytes, segment->largest_free_bytes, segment->blocks,
            map_value(segment->map, 0), map_value(segment->map, 1));
    }
    for (size_t i = 0; i < layout->pinner_count; i++) {
        const struct layout_pinner *pinner = &layout->pinners[i];
        PUT(saving, PINNER, pinner->site, pinner->stranded_bytes, pinner->pieces, pinner->blocks);
    }
}

static void save_ooms(const struct saving *saving)
{
    for (size_t i = 0; i < ledger_oom_count(saving->ledger); i++) {
        const struct oom *oom = ledger_oom(saving->ledger, i);
        PUT(saving, OOM, oom->time_ns, oom->site, (uint32_t)oom->error, oom->requested_bytes, oom->free_bytes,
            oom->total_bytes, oom->live_bytes, oom->pool_unused_bytes, oom->share_count, oom->layout_count,
            oom->driver_bytes, oom->granted_ns, oom->freed_bytes, oom->ended_bytes, oom->context_bytes,
            oom->own_bytes, oom->all_bytes);
        for (uint32_t share = 0; share < oom->share_count; share++)
            PUT(saving, SHARE, oom->shares[share].site, oom->shares[share].bytes, oom->shares[share].blocks);
        for (size_t layout = 0; layout < oom->layout_count; layout++)
            save_layout(saving, &oom->layouts[layout]);
    }
}

static void save_segment(const struct saving *saving, uint64_t fullest, const struct segment *segment)
{
    PUT(saving, SEGMENT, fullest, segment->start, segment->size, segment->site, segment->context,
        segment->mapped, segment->users, segment->users_then, segment->then, segment->birth);
}

static void save_living_segment(const struct segment *segment, void *arg)
{
    save_segment(arg, 0, segment);
}

static void save_segments(struct saving *saving)
{
    const struct segments *segments = &saving->ledger->segments;
    PUT(saving, SEGMENTS, segments->active, segments->ended_start, segments->ended_size,
        segments->ended_users);
    for (uint32_t i = 0; i < segments->frameworks.count; i++)
        PUT(saving, FRAMEWORK, *(const uint32_t *)list_at(&segments->frameworks, i));
    for (uint32_t i = 0; i < segments->fullest.count; i++) {
        const struct fullest *fullest = list_at(&segments->fullest, i);
        PUT(saving, FULLEST, device_value(fullest->device), fullest->driver_bytes, fullest->framework_bytes,
            fullest->time_ns, fullest->event, fullest->mapped_bytes, fullest->mapped_now);
    }
    segments_each(saving->ledger, save_living_segment, saving);
    for (uint32_t i = 0; i < segments->fullest.count; i++) {
        const struct fullest *fullest = list_at(&segments->fullest, i);
        for (const struct segment *segment = fullest->segments; segment != NULL; segment = segment->next)
            save_segment(saving, i + 1, segment);
        for (const struct block_entry *entry = fullest->blocks; entry != NULL; entry = entry->next) {
            const struct block *block = &entry->block;
            PUT(saving, KEPT_BLOCK, i + 1, block->key, block->size, block->born_ns, block->site,
                block->context, block->references, entry->birth);
        }
    }
}

static void save_phase(const struct saving *saving, const struct phase_record *record)
{
    const struct program_phase *phase = &record->is;
    PUT(saving, PHASE, phase->name, phase->parent == PHASE_NONE ? 0 : (uint64_t)phase->parent + 1,
        phase->ranges, phase->open, phase->periods, phase->first_ns, phase->time_ns,
        phase->layers[LAYER_DRIVER].peak_bytes, (uint64_t)phase->layers[LAYER_DRIVER].net_bytes,
        phase->layers[LAYER_FRAMEWORK].peak_bytes, (uint64_t)phase->layers[LAYER_FRAMEWORK].net_bytes,
        record->began_ns, record->began_bytes[LAYER_DRIVER], record->began_bytes[LAYER_FRAMEWORK]);
}

static void save_phases(const struct saving *saving)
{
    const struct phases *phases = &saving->ledger->phases;
    for (uint32_t i = 0; i < phases->records.count; i++)
        save_phase(saving, list_at(&phases->records, i));
    for (uint32_t i = 0; i < phases->open; i++) {
        const struct phase_range *range = list_at(&phases->ranges, i);
        PUT(saving, RANGE, range->range, range->phase);
    }
    for (uint32_t i = 0; i < phases->sites.count; i++) {
        const struct phase_site_record *site = list_at(&phases->sites, i);
        PUT(saving, PHASE_SITE, site->is.phase, site->is.site, site->is.rise_bytes,
            (uint64_t)site->is.net_bytes, site->period, site->base);
    }
    const struct history *steps = phases->step_history;
    if (steps != NULL) {
        uint64_t values[4 + HISTORY_CELLS] = {phases->steps, steps->origin_ns, steps->width_log2,
                                              steps->last};
        memcpy(values + 4, steps->floors, (steps->last + 1) * sizeof *steps->floors);
        saving->put(saving->arg, STATE_STEPS, values, 4 + steps->last + 1);
    }
}

void ledger_save(const struct ledger *ledger, ledger_put_state *put, void *arg)
{
    struct saving saving = {.ledger = ledger, .put = put, .arg = arg};
    save_counters(&saving);
    save_spaces(&saving);
    save_sites(&saving);
    save_blocks(&saving);
    save_samples(&saving);
    save_ooms(&saving);
    if (ledger->segments.active || ledger->segments.fullest.count > 0)
        save_segments(&saving);
    save_phases(&saving);
    save_summits(&saving);
}
