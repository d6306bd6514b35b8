/* Following a recording; see follow.h. */
#include "trace/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/liveness.h"
#include "trace/reading.h"

#define TRIES 20

struct follow {
    int fd;
    bool is_begun;
    struct recording recording;
    struct reading reading;
    uint64_t generation, offset; /* everything before `offset` was read */
};

static int refuse(char *error, size_t error_bytes, const char *why)
{
    snprintf(error, error_bytes, "%s", why);
    return -1;
}

struct follow *follow_open(const char *path, char *error, size_t error_bytes)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct follow *follow = fd < 0 ? NULL : pages_alloc(sizeof(*follow));
    if (!follow || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        refuse(error, error_bytes, !follow ? strerror(errno) : "not a regular file");
        if (fd >= 0)
            close(fd);
        if (follow)
            pages_free(follow, sizeof(*follow));
        return NULL;
    }
    follow->fd = fd;
    return follow;
}

static void forget(struct follow *follow)
{
    if (follow->is_begun)
        recording_release(&follow->recording);
    follow->is_begun = false;
}

/* From the beginning of the generation that is the recording now. */
static int begin(struct follow *follow, const struct trace_header *header, char *error, size_t error_bytes)
{
    uint8_t *buffer = follow->reading.buffer;
    uint64_t end;
    forget(follow);
    if (!buffer)
        buffer = pages_alloc(READING_BYTES);
    follow->reading =
        (struct reading){.recording = &follow->recording, .fd = follow->fd, .buffer = buffer, .wrong = ""};
    follow->is_begun = true;
    if (!reading_begin(&follow->reading) || !buffer || !reading_take_header(&follow->recording, header))
        return refuse(error, error_bytes, "not enough memory");
    follow->generation = reading_locate(header, &follow->offset, &end);
    return 0;
}

static void note_end(struct follow *follow, const struct trace_header *header)
{
    struct process_info *process = &follow->recording.process;
    process->duration_ns = follow->reading.previous_time_ns;
    process->end = header->state == TRACE_EXITED ? PROCESS_EXITED
                   : process_is_alive(process)   ? PROCESS_RUNNING
                                                 : PROCESS_KILLED;
    follow->recording.file_dropped_events = header->dropped_events;
}

/* 1: the process was faster, and all must be read anew. */
static int read_once(struct follow *follow, bool *anew, char *error, size_t error_bytes)
{
    struct trace_header header;
    struct stat status;
    uint64_t start, end;
    if (!reading_header(follow->fd, &header) || !reading_is_recording(&header))
        return refuse(error, error_bytes, "not a recording of gpumemtrace");
    if (header.version != TRACE_VERSION || header.header_size < sizeof(header))
        return refuse(error, error_bytes, "written by another version of gpumemtrace");
    bool is_first = !follow->is_begun || reading_locate(&header, &start, &end) != follow->generation;
    if (is_first && begin(follow, &header, error, error_bytes) != 0)
        return -1;
    *anew |= is_first;
    reading_locate(&header, &start, &end);
    if (fstat(follow->fd, &status) != 0 || end > (uint64_t)status.st_size || follow->offset > end)
        return refuse(error, error_bytes, "damaged: it is shorter than its header says");
    int result = reading_records(&follow->reading, follow->offset, end, error, error_bytes);
    if (reading_was_overwritten(&follow->reading, &header)) {
        forget(follow);
        return 1;
    }
    follow->offset = end;
    if (result == 0 && is_first)
        reading_finish(&follow->recording, &follow->reading, &header);
    if (result == 0)
        note_end(follow, &header);
    return result;
}

int follow_read(struct follow *follow, bool *anew, char *error, size_t error_bytes)
{
    bool ignored;
    int result = 1;
    anew = anew ? anew : &ignored;
    *anew = false;
    for (int tries = 0; tries < TRIES && result > 0; tries++)
        result = read_once(follow, anew, error, error_bytes);
    return result > 0 ? refuse(error, error_bytes, "it is being written faster than it can be read") : result;
}

const struct recording *follow_recording(const struct follow *follow)
{
    return &follow->recording;
}

void follow_close(struct follow *follow)
{
    forget(follow);
    if (follow->reading.buffer)
        pages_free(follow->reading.buffer, READING_BYTES);
    close(follow->fd);
    pages_free(follow, sizeof(*follow));
}
