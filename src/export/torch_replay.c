/* Replaying a recording into segments and blocks; see torch_replay.h. */
#include "export/torch_replay.h"

#include <stdio.h>

#include "trace/reader.h"

/* Above every address of the driver's, and below where the page's numbers lose their last bits. */
#define MADE_UP_FIRST (UINT64_C(1) << 52)
#define MADE_UP_STEP  4096

static void add_event(struct torch_replay *replay, enum torch_action action, const struct torch_item *item,
                      uint64_t time_ns)
{
    replay->ring[replay->event_count++ % TORCH_EVENTS_MAX] = (struct torch_event){
        action, item->device, item->site, time_ns, item->address, item->size, 0,
    };
}

static const struct report_site *find_site(const struct torch_replay *replay, uint32_t site)
{
    const struct report *report = replay->report;
    uint32_t index =
        site < catalog_site_count(report->input->catalog) ? report->site_of_catalog[site] : REPORT_NONE;
    return index == REPORT_NONE ? NULL : &report->sites[index];
}

/* Memory on a device that the program can address; graphs' is the driver's, for each launch. */
static bool is_shown(const struct report_site *site)
{
    return site && site->owned && (site->key->space == SPACE_DEVICE || site->key->space == SPACE_MANAGED) &&
           site->key->device >= 0;
}

static uint64_t address_of(struct torch_replay *replay, uint64_t key, uint64_t size)
{
    enum key_space space = block_key_space(key);
    if (space == KEY_ADDRESS || space == KEY_FRAMEWORK ||
        (space >= KEY_ALLOCATOR && space <= KEY_ALLOCATOR_LAST))
        return block_key_number(key);
    uint64_t address = replay->next_made_up;
    replay->next_made_up += (size + MADE_UP_STEP) / MADE_UP_STEP * MADE_UP_STEP;
    return address;
}

/* What an item of that site is. False: it is not shown. */
static bool decide_kind(struct torch_replay *replay, const struct recording *recording,
                        struct torch_item *item, bool is_mapping)
{
    const struct report_site *site = find_site(replay, item->site);
    struct block around;
    if (!is_shown(site) || (site->key->family == FAMILY_VMM && !is_mapping))
        return false; /* physical memory is looked at where it is mapped */
    item->device = site->key->device;
    if (site->layer == LAYER_FRAMEWORK) {
        item->is_block = true;
        item->is_segment = !ledger_around(recording->ledger, item->address, &around);
    } else {
        item->is_segment = true;
        item->is_block = !site->is_cached;
    }
    return true;
}

static void end_item(struct torch_replay *replay, struct torch_item *item, uint64_t time_ns)
{
    if (item->is_block) {
        add_event(replay, TORCH_FREE_REQUESTED, item, time_ns);
        add_event(replay, TORCH_FREE_COMPLETED, item, time_ns);
    }
    if (item->is_segment)
        add_event(replay, TORCH_SEGMENT_FREE, item, time_ns);
    HASH_DELETE(hh, replay->alive, item);
    pool_put(&replay->items, item);
}

static struct torch_item *find_item(const struct torch_replay *replay, uint64_t key)
{
    struct torch_item *item;
    HASH_FIND(hh, replay->alive, &key, sizeof(key), item);
    return item;
}

static void begin_item(struct torch_replay *replay, const struct recording *recording,
                       const struct torch_item *wanted, bool is_mapping, bool is_old, uint64_t time_ns)
{
    struct torch_item *item = find_item(replay, wanted->key);
    if (item)
        end_item(replay, item, time_ns); /* its end was never seen */
    struct torch_item made = *wanted;
    made.address = address_of(replay, wanted->key, wanted->size);
    if (!decide_kind(replay, recording, &made, is_mapping))
        return;
    item = pool_get(&replay->items);
    replay->failed |= !item;
    if (!item)
        return;
    *item = made;
    HASH_ADD(hh, replay->alive, key, sizeof(item->key), item);
    replay->failed |= !hash_added(item);
    if (is_old)
        return;
    if (item->is_segment)
        add_event(replay, TORCH_SEGMENT_ALLOC, item, time_ns);
    if (item->is_block)
        add_event(replay, TORCH_ALLOC, item, time_ns);
}

struct beginning {
    struct torch_replay *replay;
    const struct recording *recording;
};

/* What was alive before the first event that the recording still has. */
static bool take_old_block(const struct block *block, void *arg)
{
    const struct beginning *beginning = arg;
    const struct torch_item item = {
        .key = block->key, .size = block->size, .site = block->site, .context = block->context};
    begin_item(beginning->replay, beginning->recording, &item, false, true, 0);
    return true;
}

static void reset(struct torch_replay *replay)
{
    HASH_CLEAR(hh, replay->alive);
    arena_release(&replay->arena);
    pool_init(&replay->items, &replay->arena, sizeof(struct torch_item));
    replay->event_count = 0;
    replay->next_made_up = MADE_UP_FIRST;
    replay->is_begun = false;
}

/* Blocks before the segments that they are in. */
static void end_context(struct torch_replay *replay, const struct event *event)
{
    struct torch_item *item, *next;
    for (int segments = 0; segments <= 1; segments++) {
        HASH_ITER (hh, replay->alive, item, next) {
            if (item->context == event->context && (segments || !item->is_segment))
                end_item(replay, item, event->time_ns);
        }
    }
}

static void take_oom(struct torch_replay *replay, const struct event *event)
{
    const struct report_site *site = find_site(replay, event->site);
    if (!is_shown(site))
        return;
    struct torch_item item = {.device = site->key->device, .site = event->site, .size = event->size};
    add_event(replay, TORCH_OOM, &item, event->time_ns);
    replay->ring[(replay->event_count - 1) % TORCH_EVENTS_MAX].free_bytes = event->free_bytes;
}

static void take_free(struct torch_replay *replay, const struct recording *recording,
                      const struct event *event)
{
    const struct block *block = ledger_find(recording->ledger, event->key);
    struct torch_item *item = find_item(replay, event->key);
    if (item && block && block->references <= 1)
        end_item(replay, item, event->time_ns);
}

static void take_event(const struct recording *recording, const struct event *event, void *arg)
{
    struct torch_replay *replay = arg;
    struct torch_item item;
    if (!event) {
        reset(replay);
        return;
    }
    if (!replay->is_begun) {
        struct beginning beginning = {replay, recording};
        replay->is_begun = true;
        ledger_each_block(recording->ledger, take_old_block, &beginning);
    }
    switch (event->type) {
    case EVENT_ALLOC:
    case EVENT_UNFREE:
    case EVENT_MAP:
        item = (struct torch_item){
            .key = event->key, .size = event->size, .site = event->site, .context = event->context};
        begin_item(replay, recording, &item, event->type == EVENT_MAP, false, event->time_ns);
        break;
    case EVENT_FREE:
        take_free(replay, recording, event);
        break;
    case EVENT_UNMAP:
        if (find_item(replay, event->key))
            end_item(replay, find_item(replay, event->key), event->time_ns);
        break;
    case EVENT_TEARDOWN:
        end_context(replay, event);
        break;
    case EVENT_OOM:
        take_oom(replay, event);
        break;
    default:
        break;
    }
}

int torch_replay_read(struct torch_replay *replay, const struct export_request *request, char *error,
                      size_t error_bytes)
{
    struct recording recording;
    *replay = (struct torch_replay){.report = request->report};
    replay->ring = pages_alloc(TORCH_EVENTS_MAX * sizeof(*replay->ring));
    reset(replay);
    int result =
        replay->ring ? recording_read(&recording, request->path, take_event, replay, error, error_bytes) : -1;
    if (result == 0) {
        if (!replay->is_begun) { /* no event since what was alive was noted */
            struct beginning beginning = {replay, &recording};
            ledger_each_block(recording.ledger, take_old_block, &beginning);
        }
        recording_release(&recording);
    }
    if (!replay->ring || (result == 0 && replay->failed)) {
        snprintf(error, error_bytes, "not enough memory");
        result = -1;
    }
    if (result != 0)
        torch_replay_release(replay);
    return result;
}

void torch_replay_release(struct torch_replay *replay)
{
    HASH_CLEAR(hh, replay->alive);
    arena_release(&replay->arena);
    pages_free(replay->ring, TORCH_EVENTS_MAX * sizeof(*replay->ring));
    *replay = (struct torch_replay){0};
}
