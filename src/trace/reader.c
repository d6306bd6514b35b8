/*
 * Reads a recording (reader.h) in one pass over the mapped file. Every length, id and code is checked before
 * use: a record that makes no sense ends the reading with a sentence, and what was read before it is thrown
 * away.
 */
#include "trace/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/list.h"
#include "gpumemtrace/trace.h"
#include "trace/liveness.h"
#include "trace/varint.h"

struct reading {
    struct recording *recording;
    const uint8_t *start, *at, *end;
    struct list arguments; /* const char *, of the PROCESS record */
    struct list notes;     /* uint32_t */
    uint64_t previous_time_ns, previous_number[KEY_SPACE_COUNT];
    void (*each_event)(const struct recording *, const struct event *, void *);
    void *arg;
    const char *wrong; /* what is wrong with the record at hand */
};

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

static bool read_site(struct reading *reading)
{
    struct catalog *catalog = reading->recording->catalog;
    struct site_key site = {0};
    uint64_t family, space, device;
    bool is_new;
    if (!get_optional_id(reading, catalog_stack_count(catalog), &site.stack) ||
        !get_id(reading, catalog_string_count(catalog), &site.api) ||
        !get_below(reading, FAMILY_COUNT, &family) || !get_below(reading, SPACE_COUNT, &space) ||
        !get_below(reading, (uint64_t)UINT16_MAX + 1, &device))
        return false;
    site.family = (uint8_t)family;
    site.space = (uint8_t)space;
    site.device = (int16_t)((int)device - 1);
    uint32_t id = catalog_add_site(catalog, &site, &is_new);
    return added(reading, id, is_new);
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

static bool read_note(struct reading *reading)
{
    uint32_t id;
    if (!get_id(reading, catalog_string_count(reading->recording->catalog), &id))
        return false;
    uint32_t *note = list_reach(&reading->notes, reading->notes.count);
    if (note == NULL)
        return fail(reading, "not enough memory");
    *note = id;
    return true;
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

static bool get_event_fields(struct reading *reading, struct event *event, unsigned fields)
{
    uint64_t context = 0, error = 0, device = 0;
    uint32_t sites = catalog_site_count(reading->recording->catalog);
    if ((fields & FIELD_SITE) && !get_id(reading, sites, &event->site))
        return false;
    if ((fields & FIELD_KEY) && !get_key(reading, event))
        return false;
    if ((fields & FIELD_SIZE) && !get(reading, &event->size))
        return false;
    if ((fields & FIELD_CONTEXT) && !get_below(reading, (uint64_t)UINT32_MAX + 1, &context))
        return false;
    if ((fields & FIELD_BORN) && !get(reading, &event->born_ns))
        return false;
    if ((fields & FIELD_ERROR) && !get_below(reading, (uint64_t)UINT32_MAX + 1, &error))
        return false;
    if ((fields & FIELD_FREE_BYTES) && !get(reading, &event->free_bytes))
        return false;
    if ((fields & FIELD_TOTAL_BYTES) && !get(reading, &event->total_bytes))
        return false;
    if ((fields & FIELD_DEVICE) && !get_below(reading, (uint64_t)UINT32_MAX + 1, &device))
        return false;
    event->context = (uint32_t)context;
    event->error = (int32_t)error;
    event->device = (int32_t)device;
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
    if (event.time_ns > recording->process.duration_ns && event.time_ns < (uint64_t)INT64_MAX)
        recording->process.duration_ns = event.time_ns;
    return true;
}

static bool skip_record(struct reading *reading)
{
    uint64_t bytes;
    const uint8_t *ignored;
    return get(reading, &bytes) && get_bytes(reading, bytes, &ignored);
}

static bool read_record(struct reading *reading)
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
    default:
        return tag >= TRACE_TAG_SKIPPABLE ? skip_record(reading) : read_event(reading, tag);
    }
}

/* What the first page says; texts are copied, since the map goes away. */
static bool take_header(struct recording *recording, const struct trace_header *header)
{
    struct process_info *process = &recording->process;
    *process = (struct process_info){
        .pid = header->pid,
        .ppid = header->ppid,
        .rank = -1,
        .host = "",
        .exe = "",
        .start_realtime_ns = header->start_realtime_ns,
        .start_monotonic_ns = header->start_monotonic_ns,
        .process_start_ticks = header->process_start_ticks,
        .boot_id =
            arena_copy(&recording->arena, header->boot_id, strnlen(header->boot_id, sizeof header->boot_id)),
        .session =
            arena_copy(&recording->arena, header->session, strnlen(header->session, sizeof header->session)),
        .end = header->state == TRACE_EXITED ? PROCESS_EXITED : PROCESS_KILLED,
    };
    recording->file_dropped_events = header->dropped_events;
    return process->boot_id != NULL && process->session != NULL;
}

static void finish(struct recording *recording, const struct reading *reading,
                   const struct trace_header *header)
{
    struct process_info *process = &recording->process;
    const char **arguments = arena_alloc(&recording->arena, reading->arguments.count * sizeof *arguments);
    uint32_t *notes = arena_alloc(&recording->arena, reading->notes.count * sizeof *notes);
    for (uint32_t i = 0; i < reading->arguments.count && arguments != NULL; i++)
        arguments[i] = *(const char **)list_at(&reading->arguments, i);
    for (uint32_t i = 0; i < reading->notes.count && notes != NULL; i++)
        notes[i] = *(uint32_t *)list_at(&reading->notes, i);
    process->arguments = arguments;
    process->argument_count = arguments == NULL ? 0 : reading->arguments.count;
    recording->notes = notes;
    recording->note_count = notes == NULL ? 0 : reading->notes.count;
    if (process->end == PROCESS_EXITED)
        process->duration_ns = header->end_ns;
    /* It may have ended well since, but what was read is from when it ran. */
    else if (process_is_alive(process) || __atomic_load_n(&header->state, __ATOMIC_ACQUIRE) == TRACE_EXITED)
        process->end = PROCESS_RUNNING;
    process->complete =
        recording->file_dropped_events == 0 && ledger_counters(recording->ledger)->dropped_events == 0;
}

static int __attribute__((format(printf, 3, 4)))
refuse(char *error, size_t error_bytes, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(error, error_bytes, format, values);
    va_end(values);
    return -1;
}

/* All records in [header_size, committed) of the mapped file. */
static int read_records(struct reading *reading, const uint8_t *bytes, const struct trace_header *header,
                        uint64_t committed, char *error, size_t error_bytes)
{
    reading->recording->file_bytes = committed;
    reading->start = bytes;
    reading->at = bytes + header->header_size;
    reading->end = bytes + committed;
    while (reading->at < reading->end) {
        const uint8_t *record = reading->at;
        if (!read_record(reading))
            return refuse(error, error_bytes, "damaged at byte %llu: %s",
                          (unsigned long long)(record - reading->start), reading->wrong);
    }
    finish(reading->recording, reading, header);
    return 0;
}

/* `header` is the file's own, mapped; a process that still runs may change it. */
static int read_file(struct reading *reading, int fd, const struct trace_header *header, char *error,
                     size_t error_bytes)
{
    struct stat status;
    if (memcmp(header->magic, TRACE_MAGIC, sizeof header->magic) != 0)
        return refuse(error, error_bytes, "not a recording of gpumemtrace");
    if (header->version > TRACE_VERSION)
        return refuse(error, error_bytes,
                      "written by a newer version of gpumemtrace (format %u; this one reads %u)",
                      (unsigned)header->version, (unsigned)TRACE_VERSION);
    if (!take_header(reading->recording, header))
        return refuse(error, error_bytes, "not enough memory");
    /* In this order: the process makes the file longer before it commits to its new end. */
    uint64_t committed = __atomic_load_n(&header->committed, __ATOMIC_ACQUIRE);
    if (fstat(fd, &status) != 0)
        return refuse(error, error_bytes, "%s", strerror(errno));
    if (header->version == 0 || header->header_size < sizeof *header || header->header_size > committed ||
        committed > (uint64_t)status.st_size)
        return refuse(error, error_bytes, "damaged: its header says %llu bytes and the file has %llu",
                      (unsigned long long)committed, (unsigned long long)status.st_size);
    const uint8_t *bytes = mmap(NULL, committed, PROT_READ, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return refuse(error, error_bytes, "%s", strerror(errno));
    int result = read_records(reading, bytes, header, committed, error, error_bytes);
    munmap((void *)(uintptr_t)bytes, committed);
    return result;
}

static int read_open(struct reading *reading, int fd, char *error, size_t error_bytes)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return refuse(error, error_bytes, "not a regular file");
    if (status.st_size < TRACE_HEADER_SIZE)
        return refuse(error, error_bytes, "not a recording of gpumemtrace (too short)");
    void *header = mmap(NULL, TRACE_HEADER_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    if (header == MAP_FAILED)
        return refuse(error, error_bytes, "%s", strerror(errno));
    int result = read_file(reading, fd, header, error, error_bytes);
    munmap(header, TRACE_HEADER_SIZE);
    return result;
}

int recording_read(struct recording *recording, const char *path,
                   void (*each_event)(const struct recording *, const struct event *, void *), void *arg,
                   char *error, size_t error_bytes)
{
    memset(recording, 0, sizeof *recording);
    recording->catalog = catalog_create(&recording->arena);
    recording->ledger =
        recording->catalog == NULL ? NULL : ledger_create(&recording->arena, recording->catalog);
    if (recording->ledger == NULL) {
        snprintf(error, error_bytes, "not enough memory");
        recording_release(recording);
        return -1;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        snprintf(error, error_bytes, "%s", strerror(errno));
        recording_release(recording);
        return -1;
    }
    struct reading reading = {.recording = recording, .each_event = each_event, .arg = arg, .wrong = ""};
    list_init(&reading.arguments, &recording->arena, sizeof(const char *));
    list_init(&reading.notes, &recording->arena, sizeof(uint32_t));
    int result = read_open(&reading, fd, error, error_bytes);
    close(fd);
    if (result != 0)
        recording_release(recording);
    return result;
}

void recording_release(struct recording *recording)
{
    if (recording->ledger != NULL)
        ledger_destroy(recording->ledger);
    if (recording->catalog != NULL)
        catalog_destroy(recording->catalog);
    arena_release(&recording->arena);
    memset(recording, 0, sizeof *recording);
}
