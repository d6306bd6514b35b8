/*
 * Appends to a recording (gpumemtrace/trace.h). The file's space is allocated before it is mapped, so a full
 * disk is an error of an allocation here and never a SIGBUS in the traced program. Not locked: the recorder's
 * lock covers every call. After an error the writer drops everything and counts it; the traced program goes
 * on.
 */
#ifndef TRACE_WRITER_H
#define TRACE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "catalog/catalog.h"
#include "gpumemtrace/trace.h"
#include "ledger/event.h"
#include "trace/process_info.h"

struct trace_writer {
    int fd; /* -1: not open */
    struct trace_header *header;
    uint8_t *window; /* the mapped part of the file that is being filled */
    uint64_t window_start, window_end, reserved_end, limit;
    uint64_t position; /* next byte to write; committed once the record is whole */
    uint64_t previous_time_ns, previous_number[KEY_SPACE_COUNT];
    uint64_t dropped_events; /* as the header says it, for when there is none */
    int error;               /* errno that ended the recording, 0 while all is well */
    bool at_limit;           /* … and then, whether it was `limit` */
};

/* Creates `path` (it must not exist; mode 0600; links are not followed) and writes the header. 0 or an errno.
 * `limit` bounds the file's size in bytes. */
int trace_writer_open(struct trace_writer *writer, const char *path, const struct process_info *process,
                      uint64_t limit);
bool trace_writer_is_open(const struct trace_writer *writer);

void trace_put_string(struct trace_writer *writer, const char *text, uint64_t bytes);
void trace_put_module(struct trace_writer *writer, const struct module *module, uint32_t path);
void trace_put_frame(struct trace_writer *writer, const struct frame *frame);
void trace_put_stack(struct trace_writer *writer, const uint32_t *frames, uint32_t count);
void trace_put_site(struct trace_writer *writer, const struct site_key *site);
void trace_put_process(struct trace_writer *writer, const uint32_t *strings, uint32_t count);
void trace_put_note(struct trace_writer *writer, uint32_t string);
void trace_put_event(struct trace_writer *writer, const struct event *event);

/* Counts an event that happened and is not in the recording. */
void trace_drop_event(struct trace_writer *writer);

/* Marks the recording as ended by a normal exit, gives back the reserved space and closes. */
void trace_writer_close(struct trace_writer *writer, uint64_t end_ns);
/* Closes without a word in the file: for a forked child, which shares it with its parent. */
void trace_writer_abandon(struct trace_writer *writer);

#endif
