/*
 * A memory snapshot as torch.cuda.memory._dump_snapshot() writes it, for https://pytorch.org/memory_viz: a
 * pickle of segments as they are at the end, and for each device what happened. Every block lies in a segment
 * at any time, which the page relies on.
 */
#include <stdio.h>
#include <stdlib.h>

#include "export/formats.h"
#include "export/pickle.h"
#include "export/torch_replay.h"

static const char *const action_names[TORCH_ACTION_COUNT] = {
#define AS_NAME(symbol, name) name,
    TORCH_ACTIONS(AS_NAME)
#undef AS_NAME
};

/* The page calls blocks and segments above this "large". */
#define LARGE_BYTES (1 << 20)

struct snapshot {
    struct pickle pickle;
    struct torch_replay replay;
    uint32_t *frames_of; /* by catalog site: where its frames are kept, plus one */
};

static void put_int(struct snapshot *snapshot, const char *key, uint64_t value)
{
    pickle_text(&snapshot->pickle, key);
    pickle_int(&snapshot->pickle, (int64_t)value);
}

static void put_text(struct snapshot *snapshot, const char *key, const char *value)
{
    pickle_text(&snapshot->pickle, key);
    pickle_text(&snapshot->pickle, value);
}

static void write_frame(struct snapshot *snapshot, const struct named_frame *frame)
{
    char text[EXPORT_NAME_MAX];
    pickle_open_dict(&snapshot->pickle);
    put_text(snapshot, "filename", frame->file ? frame->file : frame->module ? frame->module : "??");
    put_int(snapshot, "line", (uint64_t)frame->line);
    put_text(snapshot, "name", export_function(frame, text, sizeof(text)));
    pickle_close(&snapshot->pickle);
}

/* Innermost first. A site without a stack has one frame, its API: the page takes none for "before recording".
 */
static void write_frames(struct snapshot *snapshot, uint32_t site)
{
    const struct report *report = snapshot->replay.report;
    const struct report_site *listed = &report->sites[report->site_of_catalog[site]];
    const struct named_frame api = {.function = listed->api};
    size_t count = 0;
    pickle_text(&snapshot->pickle, "frames");
    if (snapshot->frames_of[site] > 0) {
        pickle_again(&snapshot->pickle, snapshot->frames_of[site] - 1);
        return;
    }
    const struct named_frame *const *frames = report_stack(report, listed->stack, &count);
    pickle_open_list(&snapshot->pickle);
    for (size_t i = 0; i < count; i++)
        write_frame(snapshot, frames[i]);
    if (count == 0)
        write_frame(snapshot, &api);
    pickle_close(&snapshot->pickle);
    snapshot->frames_of[site] = pickle_keep(&snapshot->pickle) + 1;
}

static void write_event(struct snapshot *snapshot, const struct torch_event *event)
{
    pickle_open_dict(&snapshot->pickle);
    put_text(snapshot, "action", action_names[event->action]);
    if (event->action == TORCH_OOM)
        put_int(snapshot, "device_free", event->free_bytes);
    else
        put_int(snapshot, "addr", event->address);
    put_int(snapshot, "size", event->size);
    put_int(snapshot, "stream", 0);
    put_int(snapshot, "time_us",
            (snapshot->replay.report->input->process->start_realtime_ns + event->time_ns) / 1000);
    write_frames(snapshot, event->site);
    pickle_close(&snapshot->pickle);
}

static void write_traces(struct snapshot *snapshot)
{
    const struct torch_replay *replay = &snapshot->replay;
    uint64_t first = replay->event_count > TORCH_EVENTS_MAX ? replay->event_count - TORCH_EVENTS_MAX : 0;
    int devices = 0;
    for (size_t i = 0; i < replay->report->site_count; i++)
        if (replay->report->sites[i].key->device >= devices)
            devices = replay->report->sites[i].key->device + 1;
    pickle_text(&snapshot->pickle, "device_traces");
    pickle_open_list(&snapshot->pickle);
    for (int device = 0; device < devices; device++) {
        pickle_open_list(&snapshot->pickle);
        for (uint64_t i = first; i < replay->event_count; i++)
            if (replay->ring[i % TORCH_EVENTS_MAX].device == device)
                write_event(snapshot, &replay->ring[i % TORCH_EVENTS_MAX]);
        pickle_close(&snapshot->pickle);
    }
    pickle_close(&snapshot->pickle);
}

static void write_block(struct snapshot *snapshot, uint64_t address, uint64_t size,
                        const struct torch_item *item)
{
    pickle_open_dict(&snapshot->pickle);
    put_int(snapshot, "address", address);
    put_int(snapshot, "size", size);
    put_int(snapshot, "requested_size", item ? size : 0);
    put_text(snapshot, "state", item ? "active_allocated" : "inactive");
    if (item) {
        write_frames(snapshot, item->site);
    } else {
        pickle_text(&snapshot->pickle, "frames");
        pickle_open_list(&snapshot->pickle);
        pickle_close(&snapshot->pickle);
    }
    pickle_close(&snapshot->pickle);
}

/* The blocks of items[first], from there to items[end], with what is free between them. */
static void write_blocks(struct snapshot *snapshot, struct torch_item *const *items, size_t first, size_t end)
{
    const struct torch_item *segment = items[first];
    uint64_t at = segment->address, limit = segment->address + segment->size;
    pickle_text(&snapshot->pickle, "blocks");
    pickle_open_list(&snapshot->pickle);
    for (size_t i = first; i < end; i++) {
        if (!items[i]->is_block || items[i]->address < at || items[i]->address + items[i]->size > limit)
            continue;
        if (items[i]->address > at)
            write_block(snapshot, at, items[i]->address - at, NULL);
        write_block(snapshot, items[i]->address, items[i]->size, items[i]);
        at = items[i]->address + items[i]->size;
    }
    if (at < limit)
        write_block(snapshot, at, limit - at, NULL);
    pickle_close(&snapshot->pickle);
}

static void write_segment(struct snapshot *snapshot, struct torch_item *const *items, size_t first,
                          size_t end)
{
    const struct torch_item *segment = items[first];
    uint64_t allocated = 0;
    for (size_t i = first; i < end; i++)
        allocated += items[i]->is_block ? items[i]->size : 0;
    pickle_open_dict(&snapshot->pickle);
    put_int(snapshot, "device", (uint64_t)segment->device);
    put_int(snapshot, "address", segment->address);
    put_int(snapshot, "total_size", segment->size);
    put_int(snapshot, "allocated_size", allocated);
    put_int(snapshot, "active_size", allocated);
    put_int(snapshot, "requested_size", allocated);
    put_int(snapshot, "stream", 0);
    put_text(snapshot, "segment_type", segment->size > LARGE_BYTES ? "large" : "small");
    write_frames(snapshot, segment->site);
    write_blocks(snapshot, items, first, end);
    pickle_close(&snapshot->pickle);
}

/* By device and address; a segment before the first block in it. */
static int by_place(const void *left, const void *right)
{
    const struct torch_item *a = *(struct torch_item *const *)left, *b = *(struct torch_item *const *)right;
    if (a->device != b->device)
        return a->device - b->device;
    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (int)b->is_segment - (int)a->is_segment;
}

static void write_segments(struct snapshot *snapshot, struct torch_item **items)
{
    size_t count = 0;
    struct torch_item *item, *next;
    HASH_ITER (hh, snapshot->replay.alive, item, next) {
        items[count++] = item;
    }
    if (count > 0)
        qsort(items, count, sizeof(struct torch_item *), by_place);
    pickle_text(&snapshot->pickle, "segments");
    pickle_open_list(&snapshot->pickle);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1;
             end < count && !items[end]->is_segment && items[end]->device == items[first]->device;)
            end++;
        if (items[first]->is_segment)
            write_segment(snapshot, items, first, end);
    }
    pickle_close(&snapshot->pickle);
}

int export_torch_snapshot(const struct export_request *request, struct output *out, char *error,
                          size_t error_bytes)
{
    struct snapshot snapshot = {0};
    if (torch_replay_read(&snapshot.replay, request, error, error_bytes) != 0)
        return -1;
    size_t alive = HASH_COUNT(snapshot.replay.alive),
           sites = catalog_site_count(request->report->input->catalog);
    struct torch_item **items =
        arena_alloc(&snapshot.replay.arena, (alive + 1) * sizeof(struct torch_item *));
    snapshot.frames_of = arena_alloc(&snapshot.replay.arena, (sites + 1) * sizeof(*snapshot.frames_of));
    int result = items && snapshot.frames_of ? 0 : -1;
    if (result == 0) {
        pickle_begin(&snapshot.pickle, out);
        pickle_open_dict(&snapshot.pickle);
        write_segments(&snapshot, items);
        write_traces(&snapshot);
        pickle_close(&snapshot.pickle);
        pickle_end(&snapshot.pickle);
    } else {
        snprintf(error, error_bytes, "not enough memory");
    }
    torch_replay_release(&snapshot.replay);
    return result;
}
