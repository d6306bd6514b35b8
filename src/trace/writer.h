/*
 * Appends to a recording (gpumemtrace/trace.h), record by record. Not locked: the recorder's lock covers
 * every call. After an error the writer drops everything and counts it; the traced program goes on.
 *
 * Whoever writes brings his books up to date first and puts the record second. When the recording is full,
 * putting a record makes room by a checkpoint of those books instead, which has in it what the record would
 * have said.
 */
#ifndef TRACE_WRITER_H
#define TRACE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "catalog/catalog.h"
#include "gpumemtrace/trace.h"
#include "ledger/event.h"
#include "ledger/state.h"
#include "trace/log.h"
#include "trace/process_info.h"

struct trace_writer;

/* Puts everything: definitions in the order of their ids, the process, notes, the ledger's state. Called from
 * within a trace_put_*(); may not put events. */
typedef void trace_put_everything(struct trace_writer *writer, void *arg);

struct trace_writer {
    struct trace_log log;
    trace_put_everything *checkpoint; /* NULL: the recording ends when it is full */
    void *checkpoint_arg;
    uint64_t previous_time_ns, previous_number[KEY_SPACE_COUNT];
    uint64_t newest_ns;      /* the latest time of any event */
    uint64_t dropped_events; /* as the header says it, for when there is none */
};

/* Creates `path` (it must not exist; mode 0600; links are not followed) and writes the header. 0 or an errno.
 * `limit` bounds the file's size in bytes; see struct trace_writer for `checkpoint`. */
int trace_writer_open(struct trace_writer *writer, const char *path, const struct process_info *process,
                      uint64_t limit, trace_put_everything *checkpoint, void *checkpoint_arg);
bool trace_writer_is_open(const struct trace_writer *writer);

void trace_put_string(struct trace_writer *writer, const char *text, uint64_t bytes);
void trace_put_module(struct trace_writer *writer, const struct module *module, uint32_t path);
void trace_put_frame(struct trace_writer *writer, const struct frame *frame);
void trace_put_stack(struct trace_writer *writer, const uint32_t *frames, uint32_t count);
void trace_put_site(struct trace_writer *writer, const struct site_key *site);
void trace_put_process(struct trace_writer *writer, const uint32_t *strings, uint32_t count);
void trace_put_note(struct trace_writer *writer, uint32_t string);
void trace_put_event(struct trace_writer *writer, const struct event *event);
void trace_put_state(void *writer, enum ledger_state_kind kind, const uint64_t *values, uint32_t count);
/* All definitions of a catalog that the writer's user has filled. Strings of it are looked up, none is added.
 */
void trace_put_catalog(struct trace_writer *writer, struct catalog *catalog);

/* Counts an event that happened and is not in the recording. */
void trace_drop_event(struct trace_writer *writer);

/* Marks the recording as ended by a normal exit, gives back the reserved space and closes. */
void trace_writer_close(struct trace_writer *writer, uint64_t end_ns);
/* After trace_writer_close(): it was not the end, the recording goes on where it was. */
void trace_writer_resume(struct trace_writer *writer);
/* Closes without a word in the file: for a forked child, which shares it with its parent. */
void trace_writer_abandon(struct trace_writer *writer);

#endif
