/*
 * Appends records to the mapped file (writer.h). The file is seen through a window that moves along; its disk
 * space is allocated ahead of the window, so that a store into it cannot fail. A record is committed by one
 * store of the new end into the mapped header, after its bytes: what a killed process leaves behind is always
 * whole.
 */
#include "trace/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/varint.h"

#define WINDOW_BYTES ((uint64_t)1 << 20)
/* The largest record: a string, or a stack, with its tag and count. */
#define RECORD_MAX (TRACE_FRAMES_MAX * 5 + 2 * VARINT_MAX_BYTES)
/* The window begins on a page, below the record it is moved for. */
#define PAGE_BYTES ((uint64_t)65536)

_Static_assert(RECORD_MAX + PAGE_BYTES < WINDOW_BYTES, "a record fits the window wherever it starts");
_Static_assert(sizeof(struct trace_header) <= TRACE_HEADER_SIZE, "the header is one page");

bool trace_writer_is_open(const struct trace_writer *writer)
{
    return writer->header != NULL;
}

/* A file that grows beyond the process's own limit (ulimit -f) costs it a SIGXFSZ, which kills. */
static bool is_beyond_file_limit(uint64_t end)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur;
}

/* Allocates disk space up to `end`: by fallocate, or where the file system cannot, by writing zeros. 0 or an
 * errno. */
static int reserve(struct trace_writer *writer, uint64_t end)
{
    if (end <= writer->reserved_end)
        return 0;
    if (is_beyond_file_limit(end))
        return EFBIG;
    uint64_t bytes = end - writer->reserved_end;
    if (fallocate(writer->fd, 0, (off_t)writer->reserved_end, (off_t)bytes) != 0) {
        static const char zeros[4096];
        if (errno != EOPNOTSUPP && errno != ENOSYS)
            return errno;
        for (uint64_t done = 0; done < bytes;) {
            size_t count = bytes - done < sizeof zeros ? (size_t)(bytes - done) : sizeof zeros;
            ssize_t wrote = pwrite(writer->fd, zeros, count, (off_t)(writer->reserved_end + done));
            if (wrote < 0 && errno == EINTR)
                continue;
            if (wrote <= 0)
                return wrote < 0 ? errno : ENOSPC;
            done += (uint64_t)wrote;
        }
    }
    writer->reserved_end = end;
    return 0;
}

static void unmap_window(struct trace_writer *writer)
{
    if (writer->window != NULL)
        munmap(writer->window, writer->window_end - writer->window_start);
    writer->window = NULL;
}

static int move_window(struct trace_writer *writer)
{
    uint64_t start = writer->position / PAGE_BYTES * PAGE_BYTES;
    writer->at_limit = start + WINDOW_BYTES > writer->limit;
    if (writer->at_limit)
        return EFBIG;
    int error = reserve(writer, start + WINDOW_BYTES);
    if (error != 0)
        return error;
    void *window = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, writer->fd, (off_t)start);
    if (window == MAP_FAILED)
        return errno;
    /* A forked child must not reach its parent's recording. */
    madvise(window, WINDOW_BYTES, MADV_DONTFORK);
    unmap_window(writer);
    writer->window = window;
    writer->window_start = start;
    writer->window_end = start + WINDOW_BYTES;
    return 0;
}

static void copy_text(char *to, size_t bytes, const char *from)
{
    size_t length = from == NULL ? 0 : strnlen(from, bytes - 1);
    memcpy(to, from == NULL ? "" : from, length);
    to[length] = '\0';
}

static void fill_header(struct trace_header *header, const struct process_info *process)
{
    *header = (struct trace_header){
        .magic = TRACE_MAGIC,
        .version = TRACE_VERSION,
        .header_size = TRACE_HEADER_SIZE,
        .committed = TRACE_HEADER_SIZE,
        .state = TRACE_RUNNING,
        .pid = process->pid,
        .ppid = process->ppid,
        .start_realtime_ns = process->start_realtime_ns,
        .start_monotonic_ns = process->start_monotonic_ns,
        .process_start_ticks = process->process_start_ticks,
    };
    copy_text(header->boot_id, sizeof header->boot_id, process->boot_id);
    copy_text(header->session, sizeof header->session, process->session);
}

static int open_mapped(struct trace_writer *writer, const struct process_info *process)
{
    int error = reserve(writer, TRACE_HEADER_SIZE);
    if (error != 0)
        return error;
    void *header = mmap(NULL, TRACE_HEADER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, writer->fd, 0);
    if (header == MAP_FAILED)
        return errno;
    madvise(header, TRACE_HEADER_SIZE, MADV_DONTFORK);
    writer->header = header;
    writer->position = TRACE_HEADER_SIZE;
    error = move_window(writer);
    if (error == 0)
        fill_header(header, process);
    return error;
}

static void forget(struct trace_writer *writer)
{
    unmap_window(writer);
    if (writer->header != NULL)
        munmap(writer->header, TRACE_HEADER_SIZE);
    if (writer->fd >= 0)
        close(writer->fd);
    writer->header = NULL;
    writer->fd = -1;
}

int trace_writer_open(struct trace_writer *writer, const char *path, const struct process_info *process,
                      uint64_t limit)
{
    *writer = (struct trace_writer){.limit = limit};
    writer->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (writer->fd < 0)
        return writer->error = errno;
    writer->error = open_mapped(writer, process);
    if (writer->error != 0) {
        forget(writer);
        unlink(path);
    }
    return writer->error;
}

/* Room for a record at the current position, or NULL when it is dropped. */
static uint8_t *begin(struct trace_writer *writer, uint64_t bytes)
{
    if (writer->header == NULL || writer->error != 0)
        return NULL;
    if (writer->position + bytes > writer->window_end)
        writer->error = move_window(writer);
    return writer->error == 0 ? writer->window + (writer->position - writer->window_start) : NULL;
}

static void commit(struct trace_writer *writer, const uint8_t *end)
{
    writer->position = writer->window_start + (uint64_t)(end - writer->window);
    __atomic_store_n(&writer->header->committed, writer->position, __ATOMIC_RELEASE);
}

void trace_put_string(struct trace_writer *writer, const char *text, uint64_t bytes)
{
    if (bytes > TRACE_STRING_MAX)
        bytes = TRACE_STRING_MAX;
    uint8_t *at = begin(writer, 1 + VARINT_MAX_BYTES + bytes);
    if (at == NULL)
        return;
    *at++ = TRACE_STRING;
    at = varint_put(at, bytes);
    memcpy(at, text, bytes);
    commit(writer, at + bytes);
}

void trace_put_module(struct trace_writer *writer, const struct module *module, uint32_t path)
{
    uint32_t build_id_bytes = module->build_id_bytes < BUILD_ID_MAX ? module->build_id_bytes : BUILD_ID_MAX;
    uint8_t *at = begin(writer, 1 + 7 * VARINT_MAX_BYTES + BUILD_ID_MAX);
    if (at == NULL)
        return;
    *at++ = TRACE_MODULE;
    at = varint_put(at, path);
    at = varint_put(at, module->bias);
    at = varint_put(at, module->start);
    at = varint_put(at, module->end - module->start);
    at = varint_put(at, module->file_size);
    at = varint_put(at, module->file_mtime_ns);
    at = varint_put(at, build_id_bytes);
    memcpy(at, module->build_id, build_id_bytes);
    commit(writer, at + build_id_bytes);
}

void trace_put_frame(struct trace_writer *writer, const struct frame *frame)
{
    uint8_t *at = begin(writer, 1 + 3 * VARINT_MAX_BYTES);
    if (at == NULL)
        return;
    if (frame->kind == FRAME_NATIVE) {
        *at++ = TRACE_NATIVE;
        at = varint_put(at, frame->module == CATALOG_NONE ? 0 : (uint64_t)frame->module + 1);
        at = varint_put(at, frame->offset);
    } else {
        *at++ = TRACE_PYTHON;
        at = varint_put(at, frame->function);
        at = varint_put(at, frame->file);
        at = varint_put(at, frame->line < 0 ? 0 : (uint64_t)frame->line);
    }
    commit(writer, at);
}

void trace_put_stack(struct trace_writer *writer, const uint32_t *frames, uint32_t count)
{
    if (count > TRACE_FRAMES_MAX)
        count = TRACE_FRAMES_MAX;
    uint8_t *at = begin(writer, RECORD_MAX);
    if (at == NULL)
        return;
    *at++ = TRACE_STACK;
    at = varint_put(at, count);
    int64_t previous = 0;
    for (uint32_t i = 0; i < count; i++) {
        at = varint_put(at, zigzag((int64_t)frames[i] - previous));
        previous = frames[i];
    }
    commit(writer, at);
}

void trace_put_site(struct trace_writer *writer, const struct site_key *site)
{
    uint8_t *at = begin(writer, 1 + 5 * VARINT_MAX_BYTES);
    if (at == NULL)
        return;
    *at++ = TRACE_SITE;
    at = varint_put(at, site->stack == CATALOG_NONE ? 0 : (uint64_t)site->stack + 1);
    at = varint_put(at, site->api);
    at = varint_put(at, site->family);
    at = varint_put(at, site->space);
    at = varint_put(at, (uint16_t)(site->device + 1));
    commit(writer, at);
}

void trace_put_process(struct trace_writer *writer, const uint32_t *strings, uint32_t count)
{
    if (count > TRACE_FRAMES_MAX)
        count = TRACE_FRAMES_MAX;
    uint8_t *at = begin(writer, RECORD_MAX);
    if (at == NULL)
        return;
    *at++ = TRACE_PROCESS;
    at = varint_put(at, count);
    for (uint32_t i = 0; i < count; i++)
        at = varint_put(at, strings[i]);
    commit(writer, at);
}

void trace_put_note(struct trace_writer *writer, uint32_t string)
{
    uint8_t *at = begin(writer, 1 + VARINT_MAX_BYTES);
    if (at == NULL)
        return;
    *at++ = TRACE_NOTE;
    commit(writer, varint_put(at, string));
}

/* The next event's field values, in the order the format stores them. */
static uint8_t *put_fields(struct trace_writer *writer, uint8_t *at, const struct event *event,
                           unsigned fields)
{
    if (fields & FIELD_SITE)
        at = varint_put(at, event->site);
    if (fields & FIELD_KEY) {
        enum key_space space = block_key_space(event->key);
        uint64_t number = block_key_number(event->key);
        at = varint_put(at, space);
        at = varint_put(at, zigzag((int64_t)(number - writer->previous_number[space])));
        writer->previous_number[space] = number;
    }
    if (fields & FIELD_SIZE)
        at = varint_put(at, event->size);
    if (fields & FIELD_CONTEXT)
        at = varint_put(at, event->context);
    if (fields & FIELD_BORN)
        at = varint_put(at, event->born_ns);
    if (fields & FIELD_ERROR)
        at = varint_put(at, (uint32_t)event->error);
    if (fields & FIELD_FREE_BYTES)
        at = varint_put(at, event->free_bytes);
    if (fields & FIELD_TOTAL_BYTES)
        at = varint_put(at, event->total_bytes);
    if (fields & FIELD_DEVICE)
        at = varint_put(at, (uint32_t)event->device);
    return at;
}

void trace_drop_event(struct trace_writer *writer)
{
    writer->dropped_events++;
    if (writer->header != NULL)
        writer->header->dropped_events = writer->dropped_events;
}

void trace_put_event(struct trace_writer *writer, const struct event *event)
{
    uint8_t *at = begin(writer, 1 + 11 * VARINT_MAX_BYTES);
    if (at == NULL) {
        trace_drop_event(writer);
        return;
    }
    *at++ = (uint8_t)event->type;
    at = varint_put(at, zigzag((int64_t)(event->time_ns - writer->previous_time_ns)));
    writer->previous_time_ns = event->time_ns;
    commit(writer, put_fields(writer, at, event, event_fields(event->type)));
}

void trace_writer_close(struct trace_writer *writer, uint64_t end_ns)
{
    if (writer->header == NULL)
        return;
    writer->header->end_ns = end_ns;
    __atomic_store_n(&writer->header->state, TRACE_EXITED, __ATOMIC_RELEASE);
    unmap_window(writer);
    /* Nothing to be done when this fails: the reader does not look beyond what is committed. */
    (void)!ftruncate(writer->fd, (off_t)writer->position);
    forget(writer);
}

void trace_writer_abandon(struct trace_writer *writer)
{
    writer->window = NULL; /* the maps are not in the child */
    writer->header = NULL;
    forget(writer);
}
