/*
 * The records of a recording (gpumemtrace/trace.h), one function a kind. Every length, id and code is checked
 * before use.
 */
#include <string.h>

#include "gpumemtrace/trace.h"
#include "trace/reading.h"
#include "trace/varint.h"

static bool fail(struct reading *reading, const char *wrong)
{
    reading->wrong = wrong;
    return false;
}

static bool get(struct reading *reading, uint64_t *value)
{
    return varint_get(&reading->at, reading->end, value) || fail(reading, "a number is cut off");
}

/* A number that must be under `bound`. */
static bool get_below(struct reading *reading, uint64_t bound, uint64_t *value)
{
    return get(reading, value) && (*value < bound || fail(reading, "a number is out of range"));
}

/* The id of something already defined, of which there are `count`. */
static bool get_id(struct reading *reading, uint32_t count, uint32_t *id)
{
    uint64_t value;
    if (!get_below(reading, count, &value))
        return false;
    *id = (uint32_t)value;
    return true;
}

/* As get_id(), stored plus one with 0 for none. */
static bool get_optional_id(struct reading *reading, uint32_t count, uint32_t *id)
{
    uint64_t value;
    if (!get_below(reading, (uint64_t)count + 1, &value))
        return false;
    *id = value == 0 ? CATALOG_NONE : (uint32_t)(value - 1);
    return true;
}

static bool get_bytes(struct reading *reading, uint64_t bytes, const uint8_t **start)
{
    if (bytes > (uint64_t)(reading->end - reading->at))
        return fail(reading, "bytes are cut off");
    *start = reading->at;
    reading->at += bytes;
    return true;
}

/* Definitions number themselves, so one that stands twice would shift all later ids. */
static bool added(struct reading *reading, uint32_t id, bool is_new)
{
    if (id == CATALOG_NONE)
        return fail(reading, "not enough memory");
    return is_new || fail(reading, "a definition stands twice");
}

static bool read_string(struct reading *reading)
{
    uint64_t bytes;
    const uint8_t *text;
    bool is_new;
    if (!get_below(reading, TRACE_STRING_MAX + 1, &bytes) || !get_bytes(reading, bytes, &text))
        return false;
    uint32_t id = catalog_add_string(reading->recording->catalog, (const char *)text, bytes, &is_new);
    return added(reading, id, is_new);
}

static bool read_module(struct reading *reading)
{
    struct catalog *catalog = reading->recording->catalog;
    struct module module = {0};
    uint32_t path;
    uint64_t mapped, build_id_bytes;
    const uint8_t *build_id;
    bool is_new;
    if (!get_id(reading, catalog_string_count(catalog), &path) || !get(reading, &module.bias) ||
        !get(reading, &module.start) || !get(reading, &mapped) || !get(reading, &module.file_size) ||
        !get(reading, &module.file_mtime_ns) || !get_below(reading, BUILD_ID_MAX + 1, &build_id_bytes) ||
        !get_bytes(reading, build_id_bytes, &build_id))
        return false;
    module.path = catalog_string(catalog, path);
    module.end = module.start + mapped;
    module.build_id_bytes = (uint32_t)build_id_bytes;
    memcpy(module.build_id, build_id, build_id_bytes);
    uint32_t id = catalog_add_module(catalog, &module, &is_new);
    return added(reading, id, is_new);
}

static bool read_native(struct reading *reading)
{
    struct catalog *catalog = reading->recording->catalog;
    struct frame frame = {.kind = FRAME_NATIVE};
    bool is_new;
    if (!get_optional_id(reading, catalog_module_count(catalog), &frame.module) ||
        !get(reading, &frame.offset))
        return false;
    uint32_t id = catalog_add_frame(catalog, &frame, &is_new);
    return added(reading, id, is_new);
}

static bool read_python(struct reading *reading)
{
    struct catalog *catalog = reading->recording->catalog;
    uint32_t strings = catalog_string_count(catalog);
    struct frame frame = {.kind = FRAME_PYTHON};
    uint64_t line;
    bool is_new;
    if (!get_id(reading, strings, &frame.function) || !get_id(reading, strings, &frame.file) ||
        !get_below(reading, (uint64_t)INT32_MAX + 1, &line))
        return false;
    frame.line = (int32_t)line;
    uint32_t id = catalog_add_frame(catalog, &frame, &is_new);
    return added(reading, id, is_new);
}

static bool read_stack(struct reading *reading)
{
    struct catalog *catalog = reading->recording->catalog;
    uint32_t frames[TRACE_FRAMES_MAX];
    uint64_t count, step;
    int64_t previous = 0;
    bool is_new;
    if (!get_below(reading, TRACE_FRAMES_MAX + 1, &count))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        if (!get(reading, &step))
            return false;
        previous = (int64_t)((uint64_t)previous + (uint64_t)unzigzag(step));
        if (previous < 0 || previous >= catalog_frame_count(catalog))
            return fail(reading, "a stack names a frame that is not there");
        frames[i] = (uint32_t)previous;
    }
    uint32_t id = catalog_add_stack(catalog, frames, (uint32_t)count, &is_new);
    return added(reading, id, is_new);
}

/* Sites may share a stack, as those of several devices do. But all that is done once for each frame of each
 * site must stay in proportion to the file. */
#define SITE_FRAMES_FREE     (UINT64_C(1) << 24)
#define SITE_FRAMES_PER_BYTE 64

static bool count_site_frames(struct reading *reading, uint32_t stack)
{
    const struct stack *of_site = catalog_stack(reading->recording->catalog, stack);
    reading->site_frames += of_site == NULL ? 0 : of_site->count;
    return reading->site_frames <= SITE_FRAMES_FREE + SITE_FRAMES_PER_BYTE * reading->end_offset ||
           fail(reading, "more sites share their stacks than there can be");
}

static bool read_site(struct reading *reading)
{
    struct catalog *catalog = reading->recording->catalog;
    struct site_key site = {0};
    uint64_t family, space, device;
    bool is_new;
    if (!get_optional_id(reading, catalog_stack_count(catalog), &site.stack) ||
        !get_id(reading, catalog_string_count(catalog), &site.api) ||
        !get_below(reading, FAMILY_COUNT, &family) || !get_below(reading, SPACE_COUNT, &space) ||
        !get_below(reading, LEDGER_DEVICES_MAX + 1, &device))
        return false;
    site.family = (uint8_t)family;
    site.space = (uint8_t)space;
    site.device = (int16_t)((int)device - 1);
    uint32_t id = catalog_add_site(catalog, &site, &is_new);
    return added(reading, id, is_new) && count_site_frames(reading, site.stack);
}

static int parse_rank(const char *text)
{
    int rank = 0;
    if (*text == '\0')
        return -1;
    for (; *text >= '0' && *text <= '9' && rank < 100000000; text++)
        rank = rank * 10 + (*text - '0');
    return *text == '\0' ? rank : -1;
}

static bool read_process(struct reading *reading)
{
    struct catalog *catalog = reading->recording->catalog;
    struct process_info *process = &reading->recording->process;
    uint64_t count;
    if (!get_below(reading, TRACE_FRAMES_MAX + 1, &count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id;
        if (!get_id(reading, catalog_string_count(catalog), &id))
            return false;
        const char *text = catalog_string(catalog, id);
        if (i == 0)
            process->exe = text;
        else if (i == 1)
            process->host = text;
        else if (i == 2)
            process->rank = parse_rank(text);
        else {
            const char **argument = list_reach(&reading->arguments, i - 3);
            if (argument == NULL)
                return fail(reading, "not enough memory");
            *argument = text;
        }
    }
    return true;
}

/* The recording lasted until then at least. */
static bool note_time(struct reading *reading, uint64_t time_ns)
{
    struct process_info *process = &reading->recording->process;
    if (time_ns > process->duration_ns && time_ns < (uint64_t)INT64_MAX)
        process->duration_ns = time_ns;
    return true;
}

static bool read_note(struct reading *reading)
{
    uint32_t id;
    if (!get_id(reading, catalog_string_count(reading->recording->catalog), &id))
        return false;
    for (uint32_t i = 0; i < reading->notes.count; i++) {
        if (*(uint32_t *)list_at(&reading->notes, i) == id)
            return true;
    }
    if (reading->notes.count == TRACE_NOTES_MAX)
        return fail(reading, "more notes than there can be");
    uint32_t *note = list_reach(&reading->notes, reading->notes.count);
    if (note == NULL)
        return fail(reading, "not enough memory");
    *note = id;
    return true;
}

static bool read_checkpoint(struct reading *reading)
{
    uint64_t time_ns;
    if (!get(reading, &time_ns))
        return false;
    if (reading->has_checkpoint || reading->has_events)
        return fail(reading, "a checkpoint is out of place");
    reading->has_checkpoint = true;
    reading->recording->events_since_ns = time_ns;
    return note_time(reading, time_ns);
}

static bool read_state(struct reading *reading)
{
    uint64_t values[LEDGER_STATE_VALUES_MAX] = {0}, kind, count, value;
    if (!get_below(reading, UINT32_MAX, &kind) || !get(reading, &count))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        if (!get(reading, &value))
            return false;
        if (i < LEDGER_STATE_VALUES_MAX)
            values[i] = value;
    }
    if (!reading->has_checkpoint || reading->has_events)
        return fail(reading, "a checkpoint's item is out of place");
    const char *wrong =
        ledger_restore(reading->recording->ledger, &reading->restoring, (unsigned)kind, values);
    return wrong == NULL || fail(reading, wrong);
}

static bool get_key(struct reading *reading, struct event *event)
{
    uint64_t space, step;
    if (!get_below(reading, KEY_SPACE_COUNT, &space) || !get(reading, &step))
        return false;
    reading->previous_number[space] += (uint64_t)unzigzag(step);
    event->key = block_key((enum key_space)space, reading->previous_number[space]);
    return block_key_number(event->key) == reading->previous_number[space] ||
           fail(reading, "an address is out of range");
}

static bool get_word(struct reading *reading, uint32_t *word)
{
    uint64_t value;
    if (!get_below(reading, (uint64_t)UINT32_MAX + 1, &value))
        return false;
    *word = (uint32_t)value;
    return true;
}

static bool get_event_fields(struct reading *reading, struct event *event, unsigned fields)
{
    uint32_t sites = catalog_site_count(reading->recording->catalog);
    if ((fields & FIELD_SITE) && !get_id(reading, sites, &event->site))
        return false;
    if ((fields & FIELD_KEY) && !get_key(reading, event))
        return false;
    if ((fields & FIELD_SIZE) && !get(reading, &event->size))
        return false;
    if ((fields & FIELD_CONTEXT) && !get_word(reading, &event->context))
        return false;
    if ((fields & FIELD_BORN) && !get(reading, &event->born_ns))
        return false;
    if ((fields & FIELD_ERROR) && !get_word(reading, (uint32_t *)&event->error))
        return false;
    if ((fields & FIELD_FREE_BYTES) && !get(reading, &event->free_bytes))
        return false;
    if ((fields & FIELD_TOTAL_BYTES) && !get(reading, &event->total_bytes))
        return false;
    if ((fields & FIELD_DEVICE) && !get_word(reading, (uint32_t *)&event->device))
        return false;
    if ((fields & FIELD_NAME) &&
        !get_id(reading, catalog_string_count(reading->recording->catalog), &event->name))
        return false;
    if ((fields & FIELD_RANGE) && !get_word(reading, &event->range))
        return false;
    if ((fields & FIELD_COUNT) && !get_word(reading, &event->count))
        return false;
    if ((fields & FIELD_DETAIL) && !get_word(reading, &event->detail))
        return false;
    return true;
}

static bool read_event(struct reading *reading, unsigned tag)
{
    struct recording *recording = reading->recording;
    struct event event = {.type = (enum event_type)tag};
    unsigned fields = event_fields(tag);
    uint64_t step;
    if (fields == 0)
        return fail(reading, "a record of a kind this version does not know");
    if (!get(reading, &step))
        return false;
    event.time_ns = reading->previous_time_ns += (uint64_t)unzigzag(step);
    if (!get_event_fields(reading, &event, fields))
        return false;
    if (reading->each_event != NULL)
        reading->each_event(recording, &event, reading->arg);
    ledger_apply(recording->ledger, &event, NULL);
    reading->has_events = true;
    return note_time(reading, event.time_ns);
}

/* May be longer than the buffer. */
static bool skip_record(struct reading *reading)
{
    uint64_t bytes;
    if (!get(reading, &bytes))
        return false;
    uint64_t there = (uint64_t)(reading->end - reading->at);
    if (bytes <= there) {
        reading->at += bytes;
        return true;
    }
    if (bytes - there > reading->file_end - reading->end_offset)
        return fail(reading, "bytes are cut off");
    reading->end_offset += bytes - there;
    reading->at = reading->end;
    return true;
}

bool read_record(struct reading *reading)
{
    unsigned tag = *reading->at++;
    switch (tag) {
    case TRACE_STRING:
        return read_string(reading);
    case TRACE_MODULE:
        return read_module(reading);
    case TRACE_NATIVE:
        return read_native(reading);
    case TRACE_PYTHON:
        return read_python(reading);
    case TRACE_STACK:
        return read_stack(reading);
    case TRACE_SITE:
        return read_site(reading);
    case TRACE_PROCESS:
        return read_process(reading);
    case TRACE_NOTE:
        return read_note(reading);
    case TRACE_STATE:
        return read_state(reading);
    case TRACE_CHECKPOINT:
        return read_checkpoint(reading);
    default:
        return tag >= TRACE_TAG_SKIPPABLE ? skip_record(reading) : read_event(reading, tag);
    }
}
