/*
 * Reads a recording (reader.h) in one pass over the mapped file: the first page here, the records in
 * records.c. Nothing of the file is trusted; what makes no sense ends the reading with a sentence, and what
 * was read before it is thrown away.
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

#include "gpumemtrace/trace.h"
#include "trace/liveness.h"
#include "trace/reading.h"

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
