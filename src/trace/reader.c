/*
 * Reads a recording (reader.h) in one pass: the first page here, the records in records.c. Nothing of the
 * file is trusted; what makes no sense ends the reading with a sentence, and what was read before it is
 * thrown away. It is read, not mapped: a file that somebody truncates meanwhile is a sentence too, and no
 * SIGBUS.
 */
#include "trace/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpumemtrace/trace.h"
#include "trace/liveness.h"
#include "trace/reading.h"

/* A process that writes may be met in the middle of it. */
#define HEADER_TRIES 100
#define READ_TRIES   20

/* What the first page says; texts are copied, since it goes away. */
bool reading_take_header(struct recording *recording, const struct trace_header *header)
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

/* The file's first page, as of now: a process may be changing it. */
bool reading_header(int fd, struct trace_header *header)
{
    struct trace_header again;
    /* The kernel need not copy a number at once: two equal copies are one. */
    for (int tries = 0; tries < HEADER_TRIES; tries++) {
        if (pread(fd, header, sizeof *header, 0) != (ssize_t)sizeof *header ||
            pread(fd, &again, sizeof again, 0) != (ssize_t)sizeof again)
            return false;
        if (memcmp(header, &again, sizeof again) == 0)
            return true;
    }
    return false;
}

void reading_finish(struct recording *recording, const struct reading *reading,
                    const struct trace_header *header)
{
    struct process_info *process = &recording->process;
    const char **arguments = arena_alloc(&recording->arena, reading->arguments.count * sizeof *arguments);
    uint32_t *notes = arena_alloc(&recording->arena, reading->notes.count * sizeof *notes);
    struct trace_header now;
    for (uint32_t i = 0; i < reading->arguments.count && arguments != NULL; i++)
        arguments[i] = *(const char **)list_at(&reading->arguments, i);
    for (uint32_t i = 0; i < reading->notes.count && notes != NULL; i++)
        notes[i] = *(uint32_t *)list_at(&reading->notes, i);
    process->arguments = arguments;
    process->argument_count = arguments == NULL ? 0 : reading->arguments.count;
    recording->notes = notes;
    recording->note_count = notes == NULL ? 0 : reading->notes.count;
    if (reading->has_checkpoint)
        recording->bound_bytes = 2 * header->half_bytes;
    if (process->end == PROCESS_EXITED)
        process->duration_ns = header->end_ns;
    /* It may have ended well since, but what was read is from when it ran. */
    else if (process_is_alive(process) || (reading_header(reading->fd, &now) && now.state == TRACE_EXITED))
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

/* Fills the buffer behind what is left of it. False when the file is shorter than it says. */
static bool refill(struct reading *reading)
{
    size_t left = (size_t)(reading->end - reading->at);
    memmove(reading->buffer, reading->at, left);
    reading->at = reading->buffer;
    while (left < READING_BYTES && reading->end_offset < reading->file_end) {
        uint64_t wanted = reading->file_end - reading->end_offset;
        if (wanted > READING_BYTES - left)
            wanted = READING_BYTES - left;
        ssize_t got = pread(reading->fd, reading->buffer + left, (size_t)wanted, (off_t)reading->end_offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        left += (size_t)got;
        reading->end_offset += (uint64_t)got;
    }
    reading->end = reading->buffer + left;
    return true;
}

/* All records in [start, end) of the file. */
int reading_records(struct reading *reading, uint64_t start, uint64_t end, char *error, size_t error_bytes)
{
    reading->at = reading->end = reading->buffer;
    reading->end_offset = start;
    reading->file_end = end;
    for (;;) {
        bool low = (size_t)(reading->end - reading->at) < TRACE_RECORD_MAX;
        if (low && reading->end_offset < end && !refill(reading))
            return refuse(error, error_bytes, "damaged: the file ends before its records do");
        if (reading->at == reading->end)
            return 0;
        uint64_t offset = reading->end_offset - (uint64_t)(reading->end - reading->at);
        if (!read_record(reading))
            return refuse(error, error_bytes, "damaged at byte %llu: %s", (unsigned long long)offset,
                          reading->wrong);
    }
}

/* The generation that `committed` lies in, and where in the file its records are. */
uint64_t reading_locate(const struct trace_header *header, uint64_t *start, uint64_t *end)
{
    uint64_t half_bytes = header->half_bytes == 0 ? UINT64_MAX : header->half_bytes;
    uint64_t generation = header->committed / half_bytes;
    uint64_t half = generation & 1 ? half_bytes : 0;
    *start = half + header->header_size;
    *end = half + header->committed % half_bytes;
    return generation;
}

bool reading_is_recording(const struct trace_header *header)
{
    return memcmp(header->magic, TRACE_MAGIC, sizeof header->magic) == 0;
}

/* `header` was read before. */
static int read_file(struct reading *reading, const struct trace_header *header, char *error,
                     size_t error_bytes)
{
    struct stat status;
    uint64_t start, end;
    if (!reading_is_recording(header))
        return refuse(error, error_bytes, "not a recording of gpumemtrace");
    if (header->version > TRACE_VERSION)
        return refuse(error, error_bytes,
                      "written by a newer version of gpumemtrace (format %u; this one reads %u)",
                      (unsigned)header->version, (unsigned)TRACE_VERSION);
    if (!reading_take_header(reading->recording, header))
        return refuse(error, error_bytes, "not enough memory");
    /* After the header: the process makes the file longer before it commits to its new end. */
    if (fstat(reading->fd, &status) != 0)
        return refuse(error, error_bytes, "%s", strerror(errno));
    reading_locate(header, &start, &end);
    if (header->version == 0 || header->header_size < sizeof *header || start > end ||
        end > (uint64_t)status.st_size)
        return refuse(error, error_bytes, "damaged: its header says %llu bytes and the file has %llu",
                      (unsigned long long)end, (unsigned long long)status.st_size);
    reading->recording->file_bytes = end - start + header->header_size;
    int result = reading_records(reading, start, end, error, error_bytes);
    if (result == 0)
        reading_finish(reading->recording, reading, header);
    return result;
}

/* Whether the process went on so far that what was read is not to be trusted. */
bool reading_was_overwritten(const struct reading *reading, const struct trace_header *before)
{
    struct trace_header now;
    uint64_t start, end, generation = reading_locate(before, &start, &end);
    return before->half_bytes != 0 && reading_header(reading->fd, &now) &&
           (now.begun >= generation + 2 ||
            (now.state != before->state && reading_locate(&now, &start, &end) != generation));
}

static int read_open(struct reading *reading, bool *again, char *error, size_t error_bytes)
{
    struct stat status;
    struct trace_header header;
    if (fstat(reading->fd, &status) != 0 || !S_ISREG(status.st_mode))
        return refuse(error, error_bytes, "not a regular file");
    if (status.st_size < TRACE_HEADER_SIZE || !reading_header(reading->fd, &header))
        return refuse(error, error_bytes, "not a recording of gpumemtrace (too short)");
    reading->buffer = pages_alloc(READING_BYTES);
    if (reading->buffer == NULL)
        return refuse(error, error_bytes, "not enough memory");
    int result = read_file(reading, &header, error, error_bytes);
    *again = reading_is_recording(&header) && header.version <= TRACE_VERSION &&
             reading_was_overwritten(reading, &header);
    if (*again)
        result = refuse(error, error_bytes, "it is being written faster than it can be read");
    pages_free(reading->buffer, READING_BYTES);
    return result;
}

bool reading_begin(struct reading *reading)
{
    struct recording *recording = reading->recording;
    memset(recording, 0, sizeof *recording);
    recording->catalog = catalog_create(&recording->arena);
    recording->ledger =
        recording->catalog == NULL ? NULL : ledger_create(&recording->arena, recording->catalog);
    list_init(&reading->arguments, &recording->arena, sizeof(const char *));
    list_init(&reading->notes, &recording->arena, sizeof(uint32_t));
    return recording->ledger != NULL;
}

/* Once; *again: it was overwritten meanwhile. */
static int try_to_read(struct reading *reading, bool *again, char *error, size_t error_bytes)
{
    *again = false;
    if (!reading_begin(reading))
        return refuse(error, error_bytes, "not enough memory");
    return read_open(reading, again, error, error_bytes);
}

int recording_read(struct recording *recording, const char *path, event_watcher *each_event, void *arg,
                   char *error, size_t error_bytes)
{
    memset(recording, 0, sizeof *recording);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return refuse(error, error_bytes, "%s", strerror(errno));
    int result = -1;
    bool again = true;
    for (int tries = 0; tries < READ_TRIES && again; tries++) {
        struct reading reading = {
            .recording = recording, .fd = fd, .each_event = each_event, .arg = arg, .wrong = ""};
        if (tries > 0 && each_event != NULL)
            each_event(recording, NULL, arg);
        result = try_to_read(&reading, &again, error, error_bytes);
        if (result != 0)
            recording_release(recording);
    }
    close(fd);
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
