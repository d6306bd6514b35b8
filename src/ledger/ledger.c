/*
 * The ledger's events (ledger.h): blocks begin and end, and totals of their site and space follow.
 *
 * The peak is kept without ever walking the sites. A space's epoch is the number of times its peak was
 * raised. A site that changes for the first time since then notes what it held ("at peak") before the change;
 * a site that has not changed since holds now what it held then. So it is for the peak of all devices
 * together, once there is a second one.
 */
#include "ledger/ledger.h"

#include "base/list.h"
#include "ledger/internal.h"
#include "ledger/phases.h"
#include "ledger/segments.h"

struct ledger *ledger_create(struct arena *arena, const struct catalog *catalog)
{
    struct ledger *ledger = arena_alloc(arena, sizeof *ledger);
    if (ledger == NULL)
        return NULL;
    ledger->arena = arena;
    ledger->catalog = catalog;
    list_init(&ledger->sites, arena, sizeof(struct site_record));
    list_init(&ledger->spaces, arena, sizeof(struct space_record));
    list_init(&ledger->ooms, arena, sizeof(struct oom));
    list_init(&ledger->devices, arena, sizeof(struct device_figures));
    list_init(&ledger->pools, arena, sizeof(struct pool_sample));
    histories_init(ledger);
    segments_init(ledger);
    phases_init(ledger);
    return blocks_init(ledger) ? ledger : NULL;
}

void ledger_destroy(struct ledger *ledger)
{
    blocks_destroy(ledger);
    phases_destroy(ledger);
}

static void note_peak(struct totals *totals, uint64_t time_ns)
{
    totals->peak_bytes = totals->live_bytes;
    totals->peak_time_ns = time_ns;
}

/* Before any change to a site's live figures. */
static void keep_share_at_peak(struct share_at_peak *share, const struct space_record *space,
                               const struct site_record *site)
{
    if (share->epoch == space->epoch)
        return;
    *share = (struct share_at_peak){space->epoch, site->totals.live_bytes, site->totals.live_blocks};
}

static void add_to_space(struct ledger *ledger, struct space_record *space, uint32_t id, uint64_t bytes,
                         uint64_t time_ns)
{
    summits_note(ledger, space, id, bytes, true, time_ns);
    space->is.totals.live_bytes += bytes;
    space->is.totals.live_blocks++;
    if (space->is.totals.live_bytes <= space->is.totals.peak_bytes)
        return;
    note_peak(&space->is.totals, time_ns);
    space->epoch++;
    if ((ledger->phases.active_count | space->is.peak_phase_count) != 0)
        phases_at_peak(ledger, &space->is);
}

static void subtract_from_space(struct ledger *ledger, struct space_record *space, uint32_t id,
                                uint64_t bytes, uint64_t time_ns)
{
    summits_note(ledger, space, id, -bytes, false, time_ns);
    space->is.totals.live_bytes = ledger_less(space->is.totals.live_bytes, bytes);
    space->is.totals.live_blocks = ledger_less(space->is.totals.live_blocks, 1);
}

static void keep_shares_at_peaks(const struct ledger *ledger, struct site_record *site)
{
    keep_share_at_peak(&site->at_peak, site->space, site);
    if (site->space->in_whole)
        keep_share_at_peak(&site->at_whole_peak, &ledger->whole, site);
}

/* Before any change to a site's living bytes. */
static void note_change(struct ledger *ledger, struct site_record *site, uint64_t time_ns,
                        uint64_t live_bytes)
{
    if (site->history != NULL)
        histories_note(ledger, site, time_ns, site->totals.live_bytes, live_bytes);
    else
        site->ended_ns = live_bytes < site->totals.live_bytes ? time_ns : 0;
}

static void follow_in_phases(struct ledger *ledger, uint32_t id, const struct site_record *site,
                             uint64_t before)
{
    if (ledger->phases.active_count > 0 && site->space->is.kind == SPACE_DEVICE)
        phases_note(ledger, id, before, site->totals.live_bytes);
}

static void add_live(struct ledger *ledger, uint32_t id, struct site_record *site, uint64_t bytes,
                     uint64_t time_ns)
{
    uint64_t before = site->totals.live_bytes;
    keep_shares_at_peaks(ledger, site);
    add_to_space(ledger, site->space, id, bytes, time_ns);
    if (site->space->in_whole)
        add_to_space(ledger, &ledger->whole, id, bytes, time_ns);
    note_change(ledger, site, time_ns, before + bytes);
    site->totals.live_bytes += bytes;
    site->totals.live_blocks++;
    if (site->totals.live_bytes > site->totals.peak_bytes)
        note_peak(&site->totals, time_ns);
    follow_in_phases(ledger, id, site, before);
}

static void subtract_live(struct ledger *ledger, uint32_t id, struct site_record *site, uint64_t bytes,
                          uint64_t time_ns)
{
    uint64_t before = site->totals.live_bytes;
    keep_shares_at_peaks(ledger, site);
    subtract_from_space(ledger, site->space, id, bytes, time_ns);
    if (site->space->in_whole)
        subtract_from_space(ledger, &ledger->whole, id, bytes, time_ns);
    note_change(ledger, site, time_ns, ledger_less(before, bytes));
    site->totals.live_bytes = ledger_less(before, bytes);
    site->totals.live_blocks = ledger_less(site->totals.live_blocks, 1);
    follow_in_phases(ledger, id, site, before);
}

/* The driver layer's counters are the report's counters. */
static void count(const struct site_record *site, uint64_t *counter, int by)
{
    if (site->layer == LAYER_DRIVER)
        *counter += (uint64_t)(int64_t)by;
}

static void count_free(struct ledger *ledger, struct site_record *site)
{
    site->totals.frees++;
    site->space->is.totals.frees++;
    if (site->space->in_whole)
        ledger->whole.is.totals.frees++;
    count(site, &ledger->counters.frees, 1);
}

static void uncount_free(struct ledger *ledger, struct site_record *site)
{
    struct totals *all = &site->space->is.totals, *whole = &ledger->whole.is.totals;
    site->totals.frees = ledger_less(site->totals.frees, 1);
    all->frees = ledger_less(all->frees, 1);
    if (site->space->in_whole)
        whole->frees = ledger_less(whole->frees, 1);
    if (ledger->counters.frees > 0)
        count(site, &ledger->counters.frees, -1);
}

static void count_alloc_in(struct totals *totals, uint64_t bytes)
{
    totals->allocs++;
    totals->allocated_bytes = ledger_sum(totals->allocated_bytes, bytes);
}

static void count_alloc(struct ledger *ledger, struct site_record *site, uint64_t bytes)
{
    count_alloc_in(&site->totals, bytes);
    count_alloc_in(&site->space->is.totals, bytes);
    if (site->space->in_whole)
        count_alloc_in(&ledger->whole.is.totals, bytes);
    count(site, &ledger->counters.allocs, 1);
}

static struct site_record *site_of(const struct ledger *ledger, const struct block *block)
{
    return list_at(&ledger->sites, block->site);
}

/* An allocation at a living block's address: we missed that block's end. */
static void replace_block(struct ledger *ledger, uint64_t key, uint64_t time_ns)
{
    struct block_entry *entry = blocks_find(ledger, key);
    if (entry == NULL)
        return;
    struct site_record *site = site_of(ledger, &entry->block);
    subtract_live(ledger, entry->block.site, site, entry->block.size, time_ns);
    count_free(ledger, site);
    ledger->counters.replaced_blocks++;
    blocks_remove(ledger, entry, site);
}

/* See LEDGER_LIVE_MAX. */
static bool has_room(const struct site_record *site, uint64_t bytes)
{
    uint64_t most = LEDGER_LIVE_MAX;
    return bytes <= most && site->space->is.totals.live_bytes <= most - bytes &&
           site->totals.live_bytes <= most - bytes;
}

static bool apply_alloc(struct ledger *ledger, const struct event *event)
{
    struct site_record *site = ledger_reach_site(ledger, event->site);
    if (site == NULL)
        return false;
    replace_block(ledger, event->key, event->time_ns);
    if (!has_room(site, event->size))
        return false;
    struct block block = {.key = event->key,
                          .size = event->size,
                          .born_ns = event->time_ns,
                          .site = event->site,
                          .context = event->context,
                          .references = 1};
    const struct block_entry *entry = blocks_insert(ledger, &block);
    if (entry == NULL)
        return false;
    if (site->totals.allocs == 0)
        site->first_time_ns = event->time_ns;
    site->last_time_ns = event->time_ns;
    count_alloc(ledger, site, event->size);
    if (site->totals.allocs == 2) /* one that allocates once has nothing to show */
        histories_begin(ledger, site);
    add_live(ledger, event->site, site, event->size, event->time_ns);
    segments_block_began(ledger, entry, site, event->time_ns, false);
    if (ledger->unanswered > 0)
        ledger_answer_ooms(ledger, site, event->size, event->time_ns);
    return true;
}

static bool apply_free(struct ledger *ledger, const struct event *event, struct block *ended)
{
    struct block_entry *entry = blocks_find(ledger, event->key);
    if (entry == NULL)
        return false;
    if (ended != NULL)
        *ended = entry->block;
    if (entry->block.references > 1) {
        entry->block.references--;
        return true;
    }
    struct site_record *site = site_of(ledger, &entry->block);
    subtract_live(ledger, entry->block.site, site, entry->block.size, event->time_ns);
    count_free(ledger, site);
    blocks_remove(ledger, entry, site);
    return true;
}

/* Takes a free back: either a reference returns to a block that others kept alive, or the block itself
 * returns. */
static bool apply_unfree(struct ledger *ledger, const struct event *event)
{
    struct block_entry *entry = blocks_find(ledger, event->key);
    if (entry != NULL) {
        entry->block.references++;
        return true;
    }
    struct site_record *site = ledger_reach_site(ledger, event->site);
    struct block block = {.key = event->key,
                          .size = event->size,
                          .born_ns = event->born_ns,
                          .site = event->site,
                          .context = event->context,
                          .references = 1};
    entry = site == NULL || !has_room(site, event->size) ? NULL : blocks_insert(ledger, &block);
    if (entry == NULL)
        return false;
    uncount_free(ledger, site);
    add_live(ledger, event->site, site, event->size, event->time_ns);
    segments_block_began(ledger, entry, site, event->time_ns, true);
    return true;
}

static bool apply_retain(struct ledger *ledger, const struct event *event)
{
    struct block_entry *entry = blocks_find(ledger, event->key);
    if (entry == NULL)
        return false;
    entry->block.references++;
    return true;
}

static void resize_in(struct totals *totals, uint64_t from, uint64_t to)
{
    totals->allocated_bytes = to > from ? ledger_sum(totals->allocated_bytes, to - from)
                                        : ledger_less(totals->allocated_bytes, from - to);
}

/* As if it had been allocated so. What has an address lies in a segment of its size, so only handles can. */
static bool apply_resize(struct ledger *ledger, const struct event *event)
{
    struct block_entry *entry = blocks_find(ledger, event->key);
    if (entry == NULL || block_key_space(event->key) != KEY_HANDLE)
        return false;
    struct site_record *site = site_of(ledger, &entry->block);
    uint64_t before = entry->block.size;
    if (event->size > before && !has_room(site, event->size - before))
        return false;
    subtract_live(ledger, entry->block.site, site, before, event->time_ns);
    resize_in(&site->totals, before, event->size);
    resize_in(&site->space->is.totals, before, event->size);
    if (site->space->in_whole)
        resize_in(&ledger->whole.is.totals, before, event->size);
    entry->block.size = event->size;
    add_live(ledger, entry->block.site, site, event->size, event->time_ns);
    return true;
}

static bool apply_teardown(struct ledger *ledger, const struct event *event)
{
    struct block_entry *entry;
    if (event->context == 0)
        return false;
    while ((entry = contexts_first(ledger, event->context)) != NULL) {
        struct site_record *site = site_of(ledger, &entry->block);
        subtract_live(ledger, entry->block.site, site, entry->block.size, event->time_ns);
        site->totals.teardown_frees++;
        site->space->is.totals.teardown_frees++;
        if (site->space->in_whole)
            ledger->whole.is.totals.teardown_frees++;
        count(site, &ledger->counters.teardown_frees, 1);
        blocks_remove(ledger, entry, site);
    }
    contexts_end(ledger, event->context);
    return true;
}

static bool apply_failed(struct ledger *ledger, const struct event *event)
{
    struct site_record *site = ledger_reach_site(ledger, event->site);
    if (site == NULL)
        return false;
    site->failed++;
    count(site, &ledger->counters.failed_allocs, 1);
    if (event->type != EVENT_OOM)
        return true;
    int device = site->space->is.device;
    if (event->total_bytes > 0 && device >= 0)
        ledger_apply_figures(ledger, event, device);
    return ledger_add_oom(ledger, event, site);
}

bool ledger_apply(struct ledger *ledger, const struct event *event, struct block *ended)
{
    bool applied = false;
    ledger->counters.events++;
    switch (event->type) {
    case EVENT_ALLOC:
        applied = apply_alloc(ledger, event);
        break;
    case EVENT_FREE:
        return apply_free(ledger, event, ended); /* false is an answer, not a loss */
    case EVENT_UNFREE:
        applied = apply_unfree(ledger, event);
        break;
    case EVENT_RETAIN:
        return apply_retain(ledger, event);
    case EVENT_RESIZE:
        return apply_resize(ledger, event);
    case EVENT_TEARDOWN:
        return apply_teardown(ledger, event);
    case EVENT_FAILED:
    case EVENT_OOM:
        applied = apply_failed(ledger, event);
        break;
    case EVENT_FOREIGN_FREE:
        ledger->counters.foreign_frees++;
        return true;
    case EVENT_MEMORY:
    case EVENT_SAMPLE:
    case EVENT_CONTEXTS:
    case EVENT_CODE:
    case EVENT_PROCESSES:
        applied = ledger_apply_figures(ledger, event, event->device);
        break;
    case EVENT_POOL:
        applied = ledger_apply_pool(ledger, event);
        break;
    case EVENT_PHASE_BEGIN:
        applied = phases_begin(ledger, event);
        break;
    case EVENT_PHASE_END:
        applied = phases_end(ledger, event);
        break;
    case EVENT_STEP:
        applied = phases_step(ledger, event);
        break;
    case EVENT_MAP:
        applied = segments_map(ledger, event);
        break;
    case EVENT_UNMAP:
        segments_unmap(ledger, block_key_number(event->key));
        return true;
    }
    if (!applied)
        ledger->counters.dropped_events++;
    return applied;
}

bool ledger_around(struct ledger *ledger, uint64_t address, struct block *around)
{
    segments_start(ledger);
    const struct segment *segment = segments_find(ledger, address);
    if (segment == NULL)
        return false;
    *around = (struct block){.key = block_key(KEY_ADDRESS, segment->start),
                             .size = segment->size,
                             .site = segment->site,
                             .context = segment->context};
    return true;
}
