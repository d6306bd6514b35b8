/* Phases and steps (phases.h). */
#include "ledger/phases.h"

#include <string.h>

void phases_init(struct ledger *ledger)
{
    struct phases *phases = &ledger->phases;
    list_init(&phases->records, ledger->arena, sizeof(struct phase_record));
    list_init(&phases->ranges, ledger->arena, sizeof(struct phase_range));
    list_init(&phases->sites, ledger->arena, sizeof(struct phase_site_record));
}

void phases_destroy(struct ledger *ledger)
{
    HASH_CLEAR(hh, ledger->phases.by_name);
    HASH_CLEAR(hh, ledger->phases.by_site);
}

static void sum_live(const struct ledger *ledger, uint64_t live[LAYER_COUNT])
{
    memset(live, 0, LAYER_COUNT * sizeof *live);
    for (uint32_t i = 0; i < ledger->spaces.count; i++) {
        const struct space_record *space = list_at(&ledger->spaces, i);
        if (space->is.kind == SPACE_DEVICE)
            live[space->is.layer] += space->is.totals.live_bytes;
    }
}

static struct phase_record *record_at(const struct ledger *ledger, uint32_t phase)
{
    return list_at(&ledger->phases.records, phase);
}

static struct phase_record *add_record(struct ledger *ledger, const struct program_phase *phase)
{
    struct phases *phases = &ledger->phases;
    struct phase_record *record =
        phases->records.count < PHASES_MAX ? list_reach(&phases->records, phases->records.count) : NULL;
    if (record == NULL)
        return NULL;
    record->is = *phase;
    record->number = phases->records.count - 1;
    HASH_ADD(hh, phases->by_name, is.name, sizeof record->is.name, record);
    return hash_added(record) ? record : NULL;
}

static struct phase_record *find_record(const struct ledger *ledger, uint32_t name)
{
    struct phase_record *record;
    HASH_FIND(hh, ledger->phases.by_name, &name, sizeof name, record);
    return record;
}

/* The open range that began last. */
static const struct phase_range *last_range(const struct phases *phases)
{
    return phases->open == 0 ? NULL : list_at(&phases->ranges, phases->open - 1);
}

static struct phase_record *reach_record(struct ledger *ledger, const struct event *event)
{
    struct phase_record *record = find_record(ledger, event->name);
    if (record != NULL)
        return record;
    const struct phase_range *around = last_range(&ledger->phases);
    struct program_phase phase = {.name = event->name,
                                  .parent = around == NULL ? PHASE_NONE : around->phase,
                                  .first_ns = event->time_ns};
    return add_record(ledger, &phase);
}

static void raise_peaks(struct program_phase *phase, const uint64_t live[LAYER_COUNT])
{
    for (int layer = 0; layer < LAYER_COUNT; layer++)
        if (live[layer] > phase->layers[layer].peak_bytes)
            phase->layers[layer].peak_bytes = live[layer];
}

static void start_period(struct ledger *ledger, struct phase_record *record, uint64_t time_ns)
{
    struct phases *phases = &ledger->phases;
    record->is.periods++;
    record->began_ns = time_ns;
    sum_live(ledger, record->began_bytes);
    raise_peaks(&record->is, record->began_bytes);
    if (phases->active_count < PHASES_ACTIVE)
        phases->active[phases->active_count++] = record->number;
}

static void end_period(struct ledger *ledger, struct phase_record *record, uint64_t time_ns)
{
    struct phases *phases = &ledger->phases;
    uint64_t live[LAYER_COUNT];
    sum_live(ledger, live);
    for (int layer = 0; layer < LAYER_COUNT; layer++)
        record->is.layers[layer].net_bytes =
            ledger_net(record->is.layers[layer].net_bytes, record->began_bytes[layer], live[layer]);
    if (time_ns > record->began_ns)
        record->is.time_ns += time_ns - record->began_ns;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < phases->active_count; i++)
        if (phases->active[i] != record->number)
            phases->active[kept++] = phases->active[i];
    phases->active_count = kept;
}

bool phases_begin(struct ledger *ledger, const struct event *event)
{
    struct phases *phases = &ledger->phases;
    if (phases->open == PHASE_RANGES_MAX)
        return false;
    struct phase_record *record = reach_record(ledger, event);
    struct phase_range *range = record == NULL ? NULL : list_reach(&phases->ranges, phases->open);
    if (range == NULL)
        return false;
    *range = (struct phase_range){.range = event->range, .phase = record->number};
    phases->open++;
    record->is.ranges++;
    if (record->is.open++ == 0)
        start_period(ledger, record, event->time_ns);
    return true;
}

bool phases_end(struct ledger *ledger, const struct event *event)
{
    struct phases *phases = &ledger->phases;
    uint32_t at = phases->open;
    while (at > 0 && ((const struct phase_range *)list_at(&phases->ranges, at - 1))->range != event->range)
        at--;
    if (at == 0)
        return true; /* its beginning was not recorded */
    struct phase_record *record =
        record_at(ledger, ((const struct phase_range *)list_at(&phases->ranges, at - 1))->phase);
    for (; at < phases->open; at++) {
        struct phase_range *to = list_at(&phases->ranges, at - 1);
        *to = *(const struct phase_range *)list_at(&phases->ranges, at);
    }
    phases->open--;
    if (record->is.open > 0 && --record->is.open == 0)
        end_period(ledger, record, event->time_ns);
    return true;
}

bool phases_step(struct ledger *ledger, const struct event *event)
{
    struct phases *phases = &ledger->phases;
    if (phases->step_history == NULL) {
        phases->step_history = arena_alloc(ledger->arena, sizeof *phases->step_history);
        if (phases->step_history == NULL)
            return false;
        history_begin(phases->step_history, event->time_ns, 0);
    }
    history_note(phases->step_history, event->time_ns, phases->steps, phases->steps + 1);
    phases->steps++;
    return true;
}

static struct phase_site_record *add_site(struct ledger *ledger, const struct phase_site *site)
{
    struct phases *phases = &ledger->phases;
    struct phase_site_record *record =
        phases->sites.count < PHASE_SITES_MAX ? list_reach(&phases->sites, phases->sites.count) : NULL;
    if (record == NULL)
        return NULL;
    record->is = *site;
    HASH_ADD(hh, phases->by_site, is.phase, 2 * sizeof(uint32_t), record);
    return hash_added(record) ? record : NULL;
}

static struct phase_site_record *find_site(const struct ledger *ledger, uint32_t phase, uint32_t site)
{
    struct phase_site_record *record;
    const uint32_t key[] = {phase, site};
    HASH_FIND(hh, ledger->phases.by_site, key, sizeof key, record); /* NOLINT: the hash reads `key` alone */
    return record;
}

/* Beyond the last pair that there is room for, a phase has its totals only. */
static void note_site(struct ledger *ledger, const struct program_phase *phase, uint32_t number,
                      uint32_t site, uint64_t before, uint64_t after)
{
    struct phase_site_record *record = find_site(ledger, number, site);
    if (record == NULL)
        record = add_site(ledger, &(struct phase_site){.phase = number, .site = site});
    if (record == NULL)
        return;
    if (record->period != phase->periods) {
        record->period = phase->periods;
        record->base = before;
    }
    record->is.net_bytes = ledger_net(record->is.net_bytes, before, after);
    if (after > record->base && after - record->base > record->is.rise_bytes)
        record->is.rise_bytes = after - record->base;
}

void phases_note(struct ledger *ledger, uint32_t site, uint64_t before, uint64_t after)
{
    struct phases *phases = &ledger->phases;
    uint64_t live[LAYER_COUNT];
    sum_live(ledger, live);
    for (uint32_t i = 0; i < phases->active_count; i++) {
        struct phase_record *record = record_at(ledger, phases->active[i]);
        raise_peaks(&record->is, live);
        note_site(ledger, &record->is, record->number, site, before, after);
    }
}

void phases_at_peak(const struct ledger *ledger, struct ledger_space *space)
{
    const struct phases *phases = &ledger->phases;
    uint32_t first = phases->active_count < PEAK_PHASES_MAX ? 0 : phases->active_count - PEAK_PHASES_MAX;
    space->peak_phase_count = phases->active_count - first;
    for (uint32_t i = first; i < phases->active_count; i++)
        space->peak_phases[i - first] = phases->active[i];
}

size_t ledger_phase_count(const struct ledger *ledger)
{
    return ledger->phases.records.count;
}

struct program_phase ledger_phase(const struct ledger *ledger, size_t index)
{
    const struct phase_record *record = index < UINT32_MAX ? record_at(ledger, (uint32_t)index) : NULL;
    if (record == NULL)
        return (struct program_phase){.parent = PHASE_NONE};
    struct program_phase phase = record->is;
    uint64_t live[LAYER_COUNT];
    sum_live(ledger, live);
    for (int layer = 0; layer < LAYER_COUNT && phase.open > 0; layer++)
        phase.layers[layer].net_bytes =
            ledger_net(phase.layers[layer].net_bytes, record->began_bytes[layer], live[layer]);
    return phase;
}

size_t ledger_phase_site_count(const struct ledger *ledger)
{
    return ledger->phases.sites.count;
}

struct phase_site ledger_phase_site(const struct ledger *ledger, size_t index)
{
    const struct phase_site_record *record =
        index < UINT32_MAX ? list_at(&ledger->phases.sites, (uint32_t)index) : NULL;
    static const struct phase_site none = {.phase = PHASE_NONE};
    return record == NULL ? none : record->is;
}

uint64_t ledger_steps(const struct ledger *ledger)
{
    return ledger->phases.steps;
}

/* How many had been done then. */
static uint64_t steps_at(const struct phases *phases, uint64_t time_ns)
{
    const struct history *history = phases->step_history;
    if (history == NULL || time_ns <= history->origin_ns)
        return 0;
    uint64_t cell = (time_ns - history->origin_ns) >> history->width_log2;
    return cell > history->last ? phases->steps : history->floors[cell];
}

uint64_t ledger_steps_between(const struct ledger *ledger, uint64_t from_ns, uint64_t to_ns)
{
    return ledger_less(steps_at(&ledger->phases, to_ns), steps_at(&ledger->phases, from_ns));
}

struct phase_record *phases_restore(struct ledger *ledger, const struct program_phase *phase)
{
    return find_record(ledger, phase->name) != NULL ? NULL : add_record(ledger, phase);
}

static bool is_active(const struct phases *phases, uint32_t phase)
{
    for (uint32_t i = 0; i < phases->active_count; i++)
        if (phases->active[i] == phase)
            return true;
    return false;
}

struct phase_range *phases_restore_range(struct ledger *ledger, const struct phase_range *range)
{
    struct phases *phases = &ledger->phases;
    if (phases->open == PHASE_RANGES_MAX || range->phase >= phases->records.count ||
        record_at(ledger, range->phase)->is.open == 0)
        return NULL;
    struct phase_range *added = list_reach(&phases->ranges, phases->open);
    if (added == NULL)
        return NULL;
    *added = *range;
    phases->open++;
    if (!is_active(phases, range->phase) && phases->active_count < PHASES_ACTIVE)
        phases->active[phases->active_count++] = range->phase;
    return added;
}

struct phase_site_record *phases_restore_site(struct ledger *ledger, const struct phase_site *site)
{
    if (site->phase >= ledger->phases.records.count || find_site(ledger, site->phase, site->site) != NULL)
        return NULL;
    return add_site(ledger, site);
}

struct history *phases_restore_steps(struct ledger *ledger)
{
    struct phases *phases = &ledger->phases;
    if (phases->step_history == NULL)
        phases->step_history = arena_alloc(ledger->arena, sizeof *phases->step_history);
    return phases->step_history;
}
