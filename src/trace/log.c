/*
 * The recording's file (log.h). It is seen through a window that moves along. What a killed process leaves
 * behind is always whole: `committed` in the header moves past a record, or to another generation, by one
 * store, after all bytes before it.
 */
#include "trace/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define WINDOW_BYTES ((uint64_t)1 << 20)
/* The window begins on a page, below the record it is moved for. */
#define PAGE_BYTES ((uint64_t)65536)
/* At the end of the window and of the header, where the kernel is asked to store something. */
#define PROBE_BYTES ((uint64_t)8)
/* Offsets stay far from the end of what off_t can say. */
#define LIMIT_MAX ((uint64_t)1 << 60)

_Static_assert(TRACE_RECORD_MAX + PAGE_BYTES + PROBE_BYTES < WINDOW_BYTES, "a record fits the window");
_Static_assert(sizeof(struct trace_header) <= TRACE_HEADER_SIZE - PROBE_BYTES, "the header is one page");

/* File systems where a byte that was allocated can be stored to, whatever happens to the disk. Copy-on-write
 * ones may need new space for each store, and a network may be gone. */
static const uint32_t allocating_file_systems[] = {
    0xef53,     /* ext2, ext3, ext4 */
    0x58465342, /* XFS */
    0x01021994, /* tmpfs */
    0xf2f52010, /* F2FS */
    0x794c7630, /* overlay: mostly on one of these */
};

static bool fail(struct trace_log *log, enum trace_log_end end, int error)
{
    log->end = end;
    log->error = error;
    return false;
}

static uint64_t half_start(const struct trace_log *log)
{
    return (log->generation & 1) * log->half_bytes;
}

static uint64_t half_end(const struct trace_log *log)
{
    return half_start(log) + log->half_bytes;
}

/* As `committed` counts. */
static uint64_t stream_position(const struct trace_log *log)
{
    return log->position - half_start(log) + log->generation * log->half_bytes;
}

/* A file that grows beyond the process's own limit (ulimit -f) costs it a SIGXFSZ, which kills. */
static bool is_beyond_file_limit(uint64_t end)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur;
}

/* 0 or an errno. */
static int write_all(struct trace_log *log, const void *bytes, uint64_t count, uint64_t offset)
{
    if (count > 0 && is_beyond_file_limit(offset + count))
        return EFBIG;
    int fd = count > 0 ? own_file_fd(&log->file) : -1;
    for (uint64_t done = 0; done < count;) {
        ssize_t wrote =
            pwrite(fd, (const uint8_t *)bytes + done, (size_t)(count - done), (off_t)(offset + done));
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return wrote < 0 ? errno : ENOSPC;
        done += (uint64_t)wrote;
    }
    return 0;
}

/* The recorder's lock is held, which a thread must not take along when it is cancelled. To turn that off
 * takes two locked instructions, 15 ns: too much for every event, and few of them come to where a thread can
 * end. */
static int write_at(struct trace_log *log, const void *bytes, uint64_t count, uint64_t offset)
{
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    int error = write_all(log, bytes, count, offset);
    pthread_setcancelstate(cancel_state, NULL);
    return error;
}

/* Allocates disk space up to `end`: by fallocate, or where the file system cannot, by writing zeros. */
static int reserve(struct trace_log *log, uint64_t end)
{
    static const uint8_t zeros[4096];
    uint64_t *reserved_end = &log->reserved_end[log->generation & 1];
    if (*reserved_end < half_start(log))
        *reserved_end = half_start(log);
    if (end <= *reserved_end)
        return 0;
    if (is_beyond_file_limit(end))
        return EFBIG;
    if (fallocate(own_file_fd(&log->file), 0, (off_t)*reserved_end, (off_t)(end - *reserved_end)) != 0) {
        if (errno != EOPNOTSUPP && errno != ENOSYS)
            return errno;
        for (uint64_t at = *reserved_end; at < end; at += sizeof zeros) {
            int error = write_at(log, zeros, end - at < sizeof zeros ? end - at : sizeof zeros, at);
            if (error != 0)
                return error;
        }
    }
    *reserved_end = end;
    return 0;
}

/* MAP_FAILED and errno, or a shared map that a forked child does not get: it must not reach the file. */
static void *map_shared(struct trace_log *log, uint64_t start, uint64_t end)
{
    void *map =
        mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_SHARED, own_file_fd(&log->file), (off_t)start);
    if (map != MAP_FAILED)
        madvise(map, end - start, MADV_DONTFORK);
    return map;
}

/* Whether the last bytes of a map can still be stored to. */
static bool is_there(void *map, uint64_t bytes)
{
    return syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, (uint8_t *)map + bytes - PROBE_BYTES, PROBE_BYTES) ==
               0 ||
           errno != EFAULT;
}

static void unmap_window(struct trace_log *log)
{
    if (log->window != NULL)
        munmap(log->window, log->window_end - log->window_start);
    log->window = NULL;
}

/* What the window has and the file has not. */
static int flush(struct trace_log *log)
{
    int error = write_at(log, log->window + (log->unwritten - log->window_start),
                         log->position - log->unwritten, log->unwritten);
    if (error == 0)
        log->unwritten = log->position;
    return error;
}

static int move_written_window(struct trace_log *log)
{
    int error = log->window == NULL ? 0 : flush(log);
    if (error != 0)
        return error;
    if (log->window == NULL) {
        void *window = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (window == MAP_FAILED)
            return errno;
        log->window = window;
    }
    log->window_start = log->unwritten = log->position;
    log->window_end = log->position + WINDOW_BYTES;
    return 0;
}

static int move_mapped_window(struct trace_log *log)
{
    uint64_t start = log->position / PAGE_BYTES * PAGE_BYTES, end = start + WINDOW_BYTES;
    if (end > half_end(log))
        end = half_end(log);
    int error = reserve(log, end);
    if (error != 0)
        return error;
    void *window = map_shared(log, start, end);
    if (window == MAP_FAILED)
        return errno;
    unmap_window(log);
    log->window = window;
    log->window_start = start;
    log->window_end = end;
    return 0;
}

static int move_window(struct trace_log *log)
{
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    int error = log->is_mapped ? move_mapped_window(log) : move_written_window(log);
    pthread_setcancelstate(cancel_state, NULL);
    return error;
}

/* One field of the header, of 4 or 8 bytes, at once for any reader. */
static int store_header(struct trace_log *log, size_t offset, uint64_t value, size_t bytes)
{
    if (!log->is_mapped)
        return write_at(log, &value, bytes, offset); /* little-endian, as the file is */
    if (!is_there(log->header, TRACE_HEADER_SIZE)) {
        fail(log, TRACE_LOG_CUT, EFAULT);
        return EFAULT;
    }
    void *field = (uint8_t *)log->header + offset;
    if (bytes == sizeof(uint32_t))
        __atomic_store_n((uint32_t *)field, (uint32_t)value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint64_t *)field, value, __ATOMIC_RELEASE);
    return 0;
}

#define STORE_HEADER(log, field, value)                                                                      \
    store_header(log, offsetof(struct trace_header, field), value, sizeof((struct trace_header *)0)->field)

static void copy_text(char *to, size_t bytes, const char *from)
{
    size_t length = from == NULL ? 0 : strnlen(from, bytes - 1);
    memcpy(to, from == NULL ? "" : from, length);
    to[length] = '\0';
}

static struct trace_header first_header(const struct trace_log *log, const struct process_info *process)
{
    struct trace_header header = {
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
        .half_bytes = log->half_bytes < LIMIT_MAX / 2 ? log->half_bytes : 0,
    };
    copy_text(header.boot_id, sizeof header.boot_id, process->boot_id);
    copy_text(header.session, sizeof header.session, process->session);
    return header;
}

static bool allocates(int fd)
{
    struct statfs status;
    bool found = false;
    if (fstatfs(fd, &status) != 0)
        return false;
    for (size_t i = 0; i < sizeof allocating_file_systems / sizeof *allocating_file_systems; i++)
        found |= (uint32_t)status.f_type == allocating_file_systems[i];
    return found;
}

/* 0 or an errno: ENODEV and the like where this file system has no shared maps. */
static int begin_mapped(struct trace_log *log)
{
    int error = reserve(log, TRACE_HEADER_SIZE);
    if (error != 0)
        return error;
    void *header = map_shared(log, 0, TRACE_HEADER_SIZE);
    if (header == MAP_FAILED)
        return errno;
    log->header = header;
    log->is_mapped = true;
    return move_window(log);
}

static int begin_file(struct trace_log *log, const struct process_info *process)
{
    int error = allocates(own_file_fd(&log->file)) ? begin_mapped(log) : ENODEV;
    if (error == ENODEV || error == EINVAL || error == EACCES || error == EPERM) {
        if (log->header != NULL)
            munmap(log->header, TRACE_HEADER_SIZE);
        log->header = NULL;
        log->is_mapped = false;
        error = move_window(log);
    }
    if (error != 0)
        return error;
    struct trace_header header = first_header(log, process);
    if (log->is_mapped)
        memcpy(log->header, &header, sizeof header);
    else
        error = write_at(log, &header, sizeof header, 0);
    return error;
}

static void forget(struct trace_log *log)
{
    unmap_window(log);
    if (log->header != NULL)
        munmap(log->header, TRACE_HEADER_SIZE);
    own_file_close(&log->file);
    log->header = NULL;
    log->is_open = false;
}

int trace_log_open(struct trace_log *log, const char *path, const struct process_info *process,
                   uint64_t limit)
{
    uint64_t half_bytes = (limit < LIMIT_MAX ? limit : LIMIT_MAX) / 2 / PAGE_BYTES * PAGE_BYTES;
    *log = (struct trace_log){.half_bytes = half_bytes, .position = TRACE_HEADER_SIZE};
    if (half_bytes == 0)
        return log->error = EFBIG;
    log->error = own_file_create(&log->file, path);
    if (log->error != 0)
        return log->error;
    log->is_open = true;
    log->error = begin_file(log, process);
    if (log->error != 0) {
        forget(log);
        unlink(path);
    }
    return log->error;
}

/* Times of several threads may be a little out of order: what lies behind the last check is far from it. */
static bool is_checked(const struct trace_log *log, uint64_t now_ns)
{
    return now_ns != TRACE_LOG_CHECK && now_ns - log->checked_ns < TRACE_LOG_UNCHECKED_NS;
}

uint8_t *trace_log_room(struct trace_log *log, uint64_t bytes, uint64_t now_ns)
{
    if (!log->is_open || log->end != TRACE_LOG_GOES_ON || log->lacks_room)
        return NULL;
    if (log->position + bytes + PROBE_BYTES > half_end(log)) {
        log->lacks_room = true;
        return NULL;
    }
    if (log->position + bytes + PROBE_BYTES > log->window_end) {
        int error = move_window(log);
        if (error != 0) {
            fail(log, TRACE_LOG_FAILED, error);
            return NULL;
        }
    }
    if (log->is_mapped && !is_checked(log, now_ns)) {
        if (!is_there(log->window, log->window_end - log->window_start)) {
            fail(log, TRACE_LOG_CUT, EFAULT);
            return NULL;
        }
        log->checked_ns = now_ns == TRACE_LOG_CHECK ? log->checked_ns : now_ns;
    }
    return log->window + (log->position - log->window_start);
}

/* Everything up to the position is the recording. */
static void publish(struct trace_log *log)
{
    if (log->is_mapped) { /* the header is there when the window was, a moment ago */
        __atomic_store_n(&log->header->committed, stream_position(log), __ATOMIC_RELEASE);
        return;
    }
    int error = flush(log);
    if (error == 0)
        error = STORE_HEADER(log, committed, stream_position(log));
    if (error != 0) {
        fail(log, TRACE_LOG_FAILED, error);
        log->position = log->unwritten;
    }
}

void trace_log_commit(struct trace_log *log, const uint8_t *end)
{
    log->position = log->window_start + (uint64_t)(end - log->window);
    if (!log->in_checkpoint)
        publish(log);
}

void trace_log_begin_checkpoint(struct trace_log *log)
{
    log->lacks_room = false;
    log->in_checkpoint = true;
    log->kept_position = log->position;
    log->generation++;
    log->position = log->unwritten = half_start(log) + TRACE_HEADER_SIZE;
    int error = STORE_HEADER(log, begun, log->generation);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* a reader that sees a byte of it sees that it was begun */
    if (error == 0)
        error = move_window(log);
    if (error != 0 && log->end == TRACE_LOG_GOES_ON)
        fail(log, TRACE_LOG_FAILED, error);
}

bool trace_log_end_checkpoint(struct trace_log *log)
{
    /* What leaves little room for events would be due again at once. */
    bool fits = !log->lacks_room && log->position - half_start(log) <= log->half_bytes / 4 * 3;
    if (log->end == TRACE_LOG_GOES_ON && !fits)
        fail(log, TRACE_LOG_FULL, EFBIG);
    if (log->end == TRACE_LOG_GOES_ON)
        publish(log);
    log->in_checkpoint = log->lacks_room = false;
    if (log->end == TRACE_LOG_GOES_ON)
        return true;
    log->generation--;
    log->position = log->kept_position;
    return false;
}

void trace_log_set_dropped(struct trace_log *log, uint64_t dropped_events)
{
    if (log->is_open && log->end != TRACE_LOG_CUT)
        (void)!STORE_HEADER(log, dropped_events, dropped_events);
}

void trace_log_check(struct trace_log *log)
{
    struct stat status;
    uint64_t least = log->is_mapped ? log->window_end : log->position;
    if (log->is_open && log->end == TRACE_LOG_GOES_ON && fstat(own_file_fd(&log->file), &status) == 0 &&
        (uint64_t)status.st_size < least)
        fail(log, TRACE_LOG_CUT, EFAULT);
}

void trace_log_close(struct trace_log *log, uint64_t end_ns)
{
    if (!log->is_open)
        return;
    trace_log_check(log);
    if (log->end != TRACE_LOG_CUT && STORE_HEADER(log, end_ns, end_ns) == 0 &&
        STORE_HEADER(log, state, TRACE_EXITED) == 0) {
        unmap_window(log);
        /* Nothing to be done when these fail: the reader does not look at what is not committed. */
        int fd = own_file_fd(&log->file);
        (void)!ftruncate(fd, (off_t)log->position);
        if (log->generation & 1)
            (void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, TRACE_HEADER_SIZE,
                             (off_t)(log->half_bytes - TRACE_HEADER_SIZE));
    }
    forget(log);
}

void trace_log_resume(struct trace_log *log)
{
    uint64_t half = log->generation & 1;
    if (!own_file_reopen(&log->file)) {
        if (log->end == TRACE_LOG_GOES_ON)
            fail(log, TRACE_LOG_FAILED, ENOENT);
        return;
    }
    log->is_open = true;
    log->reserved_end[half] = log->position; /* the rest was given back */
    log->reserved_end[1 - half] = half == 1 ? TRACE_HEADER_SIZE : 0;
    log->unwritten = log->position;
    int error = 0;
    if (log->is_mapped) {
        void *header = map_shared(log, 0, TRACE_HEADER_SIZE);
        if (header == MAP_FAILED)
            error = errno;
        else
            log->header = header;
    }
    if (error == 0)
        error = STORE_HEADER(log, state, TRACE_RUNNING);
    if (error == 0)
        error = move_window(log);
    if (error != 0 && log->end == TRACE_LOG_GOES_ON)
        fail(log, TRACE_LOG_FAILED, error);
    if (log->is_mapped && log->header == NULL)
        forget(log);
}

void trace_log_abandon(struct trace_log *log)
{
    if (log->is_mapped)
        log->window = NULL; /* the maps are not in the child */
    log->header = NULL;
    forget(log);
}
