/*
 * The file that a recording is appended to (gpumemtrace/trace.h says how it is laid out; writer.h what goes
 * into it). A record is put in two steps: room for it, then its commitment, by one store of the new end into
 * the header. Not locked: the recorder's lock covers every call.
 *
 * The traced program must not suffer, whatever becomes of the file:
 *   - Where the file system keeps the promise of fallocate(), the file is mapped, and what is mapped is
 *     allocated first: a full disk is an error of an allocation here and never a SIGBUS. Elsewhere, and where
 *     it cannot be mapped, pwrite() is used: two calls a record.
 *   - Somebody may truncate a file that is mapped, and a store would then raise SIGBUS. So before a record is
 *     put the kernel is asked to store something (the signal mask) into the last bytes of the mapped window,
 *     which fails with EFAULT once they are gone. That call takes 130 ns, where pwrite() into the page cache
 *     takes 650, and nothing cheaper than a system call can tell. Events that follow each other within
 *     TRACE_LOG_UNCHECKED_NS do without it, which bounds what it costs to some percent of the time. What is
 *     left: a truncation, by another process, in the 0.1 us between the answer and the store, or in the
 *     midst of events that are nearer to each other than that.
 *
 * After an error everything is dropped.
 */
#ifndef TRACE_LOG_H
#define TRACE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "gpumemtrace/trace.h"
#include "trace/own_file.h"
#include "trace/process_info.h"

/* Records that are put within this time of a check do without one. */
#define TRACE_LOG_UNCHECKED_NS 2000
/* As a time: check in any case. */
#define TRACE_LOG_CHECK UINT64_MAX

enum trace_log_end {
    TRACE_LOG_GOES_ON,
    TRACE_LOG_FULL,   /* no room for what must be kept, within `limit` */
    TRACE_LOG_CUT,    /* somebody made the file shorter */
    TRACE_LOG_FAILED, /* by `error` */
};

struct trace_log {
    struct own_file file;
    bool is_open; /* false in zeroed memory, too */
    enum trace_log_end end;
    int error;                   /* errno that ended it, 0 while all is well */
    bool is_mapped;              /* else written */
    struct trace_header *header; /* mapped; NULL otherwise */
    /* The part of the file that is being filled, as offsets in it. Written: from `unwritten` on, the file
     * does not have it yet. */
    uint8_t *window;
    uint64_t window_start, window_end, unwritten;
    uint64_t position;        /* next byte to fill */
    uint64_t half_bytes;      /* the generations take turns in two halves */
    uint64_t generation;      /* whose half is being filled: its lowest bit */
    uint64_t reserved_end[2]; /* disk space is allocated up to there, in each half */
    /* A checkpoint is being written: nothing counts before trace_log_end_checkpoint(). */
    bool in_checkpoint, lacks_room;
    uint64_t checked_ns;    /* when the map was last found to be there */
    uint64_t kept_position; /* of the generation before */
};

/* Creates `path` (it must not exist; mode 0600; links are not followed) and writes the header. 0 or an errno;
 * then no file is left. The file will not be larger than `limit` bytes. */
int trace_log_open(struct trace_log *log, const char *path, const struct process_info *process,
                   uint64_t limit);

/* Where the next `bytes` go, at the time `now_ns` or TRACE_LOG_CHECK. NULL when the file has ended, or when
 * the half is full: then `lacks_room` is set and a checkpoint is due. */
uint8_t *trace_log_room(struct trace_log *log, uint64_t bytes, uint64_t now_ns);
/* What was put, up to `end`, is a whole record. It is in the file unless that has ended by it. */
void trace_log_commit(struct trace_log *log, const uint8_t *end);

/* From now on records go into the other half, and count for nothing until the end. */
void trace_log_begin_checkpoint(struct trace_log *log);
/* True: they are the recording now. False: the file has ended, and is what it was before. */
bool trace_log_end_checkpoint(struct trace_log *log);

/* Writes into the header how many events are not in the file. */
void trace_log_set_dropped(struct trace_log *log, uint64_t dropped_events);
/* Notices, before it is too late to say so, that the file was cut short since the last record. */
void trace_log_check(struct trace_log *log);
/* Marks the recording as ended by a normal exit, gives back the reserved space and closes. */
void trace_log_close(struct trace_log *log, uint64_t end_ns);
/* After trace_log_close(): it was not the end, the recording goes on where it was. */
void trace_log_resume(struct trace_log *log);
/* Closes without a word in the file: for a forked child, which shares it with its parent. */
void trace_log_abandon(struct trace_log *log);

#endif
