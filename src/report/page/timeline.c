/*
 * Following a recording (timeline.h): after each event, what the sites it touches hold is asked of the
 * ledger. An event is seen before the ledger applies it, so that is done when the next one comes.
 */
#include "report/page/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "report/page/timeline_types.h"

#define FIRST_WIDTH_LOG2 10 /* a microsecond */

static void forget_space(struct followed_space *space)
{
    for (size_t i = 0; i < TIMELINE_CELLS; i++) {
        struct stretch *stretch = &space->is.stretches[i];
        if (stretch->last != stretch->fullest)
            free(stretch->last);
        free(stretch->fullest);
    }
}

static void forget(struct timeline *timeline)
{
    for (uint32_t i = 0; i < timeline->spaces.count; i++)
        forget_space(*(struct followed_space **)list_at(&timeline->spaces, i));
    free(timeline->scratch);
    arena_release(&timeline->arena);
    memset(timeline, 0, sizeof *timeline);
    timeline->width_log2 = FIRST_WIDTH_LOG2;
    list_init(&timeline->sites, &timeline->arena, sizeof(struct followed_site));
    list_init(&timeline->spaces, &timeline->arena, sizeof(struct followed_space *));
    list_init(&timeline->phases, &timeline->arena, sizeof(struct followed_phase));
}

struct timeline *timeline_create(void)
{
    struct timeline *timeline = calloc(1, sizeof *timeline);
    if (timeline)
        forget(timeline);
    return timeline;
}

void timeline_destroy(struct timeline *timeline)
{
    if (!timeline)
        return;
    forget(timeline);
    free(timeline);
}

static struct followed_space *reach_space(struct timeline *timeline, const struct site_key *key)
{
    enum layer layer = family_infos[key->family].layer;
    for (uint32_t i = 0; i < timeline->spaces.count; i++) {
        struct followed_space *space = *(struct followed_space **)list_at(&timeline->spaces, i);
        if (space->is.layer == layer && space->is.kind == key->space && space->is.device == key->device)
            return space;
    }
    struct followed_space *space = arena_alloc(&timeline->arena, sizeof *space);
    struct followed_space **slot = space ? list_reach(&timeline->spaces, timeline->spaces.count) : NULL;
    if (!slot)
        return NULL;
    *slot = space;
    space->is.layer = layer;
    space->is.kind = (enum space_kind)key->space;
    space->is.device = key->device;
    list_init(&space->sites, &timeline->arena, sizeof(uint32_t));
    return space;
}

/* NULL for a site that never was heard of, and without memory. */
static struct followed_site *reach_site(struct timeline *timeline, const struct catalog *catalog, uint32_t id)
{
    struct followed_site *site = list_at(&timeline->sites, id);
    if (site && site->space)
        return site;
    const struct site_key *key = catalog_site(catalog, id);
    if (!key || key->family >= FAMILY_COUNT || key->space >= SPACE_COUNT)
        return NULL;
    struct followed_space *space = reach_space(timeline, key);
    uint32_t *slot = space ? list_reach(&space->sites, space->sites.count) : NULL;
    site = slot ? list_reach(&timeline->sites, id) : NULL;
    if (!site) {
        timeline->incomplete = true;
        return NULL;
    }
    *slot = id;
    site->space = space;
    return site;
}

static void ask_site(struct timeline *timeline, const struct recording *recording, uint32_t id)
{
    uint64_t bytes = ledger_site(recording->ledger, id).totals.live_bytes;
    struct followed_site *site = list_at(&timeline->sites, id);
    if (site ? site->bytes == bytes : bytes == 0)
        return;
    site = reach_site(timeline, recording->catalog, id);
    if (!site)
        return;
    struct followed_space *space = site->space;
    if (site->epoch != space->epoch) {
        site->epoch = space->epoch;
        site->bytes_at_fullest = site->bytes;
    }
    space->bytes += bytes - site->bytes;
    space->changed = true;
    site->bytes = bytes;
}

/* One event changed the space: only what it holds after all of that counts. */
static void note_change(struct followed_space *space, uint64_t time_ns)
{
    space->is_at_fullest = !space->is_open || space->bytes > space->fullest_bytes;
    if (space->is_at_fullest) {
        space->fullest_bytes = space->bytes;
        space->fullest_ns = time_ns;
        space->epoch++;
    }
    if (!space->is_open) /* what the stretch began with */
        space->least_bytes = space->bytes_before;
    if (space->bytes < space->least_bytes)
        space->least_bytes = space->bytes;
    space->bytes_before = space->bytes;
    space->last_ns = time_ns;
    space->is_open = true;
    space->changed = false;
}

static void note_changes(struct timeline *timeline, uint64_t time_ns)
{
    for (uint32_t i = 0; i < timeline->spaces.count; i++) {
        struct followed_space *space = *(struct followed_space **)list_at(&timeline->spaces, i);
        if (space->changed)
            note_change(space, time_ns);
    }
}

static void ask_all(struct timeline *timeline, const struct recording *recording)
{
    for (uint32_t i = 0; i < catalog_site_count(recording->catalog); i++)
        ask_site(timeline, recording, i);
}

/* What was alive when the recording begins is there from its beginning. */
static void begin(struct timeline *timeline, const struct recording *recording)
{
    timeline->begun = true;
    timeline->origin_ns = recording->events_since_ns;
    ask_all(timeline, recording);
    note_changes(timeline, timeline->origin_ns);
    timeline_ask_all_phases(timeline, recording->ledger);
}

/* Of the event before, which the ledger has applied by now. */
static void settle(struct timeline *timeline, const struct recording *recording)
{
    const struct event *event = &timeline->event;
    if (!timeline->has_event)
        return;
    timeline->has_event = false;
    timeline_advance(timeline, event->time_ns);
    switch (event->type) {
    case EVENT_TEARDOWN:
        ask_all(timeline, recording);
        break;
    case EVENT_PHASE_BEGIN:
    case EVENT_PHASE_END:
        timeline_ask_phases(timeline, recording->ledger);
        break;
    default:
        if (event_fields(event->type) & FIELD_SITE)
            ask_site(timeline, recording, event->site);
        if (timeline->ended_site != CATALOG_NONE)
            ask_site(timeline, recording, timeline->ended_site);
    }
    note_changes(timeline, event->time_ns);
}

void timeline_see(const struct recording *recording, const struct event *event, void *arg)
{
    struct timeline *timeline = arg;
    if (!event) {
        forget(timeline);
        return;
    }
    if (!timeline->begun)
        begin(timeline, recording);
    settle(timeline, recording);
    const struct block *block =
        event_fields(event->type) & FIELD_KEY ? ledger_find(recording->ledger, event->key) : NULL;
    timeline->ended_site = block ? block->site : CATALOG_NONE;
    timeline->event = *event;
    timeline->has_event = true;
}

void timeline_finish(struct timeline *timeline, const struct recording *recording)
{
    if (!timeline->begun)
        begin(timeline, recording);
    settle(timeline, recording);
    if (recording->process.duration_ns > timeline->origin_ns)
        timeline_advance(timeline, recording->process.duration_ns);
    timeline_close(timeline);
    timeline_mark_phases(timeline);
}

bool timeline_is_incomplete(const struct timeline *timeline)
{
    return timeline->incomplete;
}

uint64_t timeline_origin_ns(const struct timeline *timeline)
{
    return timeline->origin_ns;
}

uint64_t timeline_width_ns(const struct timeline *timeline)
{
    return UINT64_C(1) << timeline->width_log2;
}

uint32_t timeline_cell_count(const struct timeline *timeline)
{
    return timeline->cell + 1;
}

const struct timeline_space *timeline_space(const struct timeline *timeline, uint32_t index)
{
    struct followed_space **space = list_at(&timeline->spaces, index);
    return space ? &(*space)->is : NULL;
}

const struct timeline_phase *timeline_phase(const struct timeline *timeline, uint32_t index)
{
    const struct followed_phase *phase = list_at(&timeline->phases, index);
    return phase ? &phase->is : NULL;
}
