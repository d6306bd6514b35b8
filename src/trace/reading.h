/* A recording being read: what the reader's files share; nobody else includes this. */
#ifndef TRACE_READING_H
#define TRACE_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "gpumemtrace/trace.h"
#include "ledger/state.h"
#include "trace/reader.h"

struct reading {
    struct recording *recording;
    int fd;
    uint8_t *buffer;               /* READING_BYTES of the file */
    const uint8_t *at, *end;       /* the next record, and what the buffer has */
    uint64_t end_offset, file_end; /* where in the file `end` is, and where the records end */
    struct list arguments;         /* const char *, of the PROCESS record */
    struct list notes;             /* uint32_t */
    struct ledger_restoring restoring;
    bool has_checkpoint, has_events;
    uint64_t site_frames; /* of all sites' stacks */
    uint64_t previous_time_ns, previous_number[KEY_SPACE_COUNT];
    event_watcher *each_event;
    void *arg;
    const char *wrong; /* what is wrong with the record at hand */
};

#define READING_BYTES ((size_t)1 << 20)

/* The record at `at`, which is before `end`, and whole in the buffer if it is not longer than a record can
 * be. False, with the reason in `wrong`, when it makes no sense. */
bool read_record(struct reading *reading);

/* reader.c: the parts of a reading, for who goes on with it as the file grows. */

/* An empty recording; release it in any case. False when memory ran out. */
bool reading_begin(struct reading *reading);
/* The file's first page, as of now: a process may be changing it. */
bool reading_header(int fd, struct trace_header *header);
bool reading_is_recording(const struct trace_header *header);
/* What the first page says; texts are copied, since it goes away. */
bool reading_take_header(struct recording *recording, const struct trace_header *header);
/* The generation that `committed` lies in, and where in the file its records are. */
uint64_t reading_locate(const struct trace_header *header, uint64_t *start, uint64_t *end);
/* All records in [start, end) of the file. 0, or -1 with a sentence. */
int reading_records(struct reading *reading, uint64_t start, uint64_t end, char *error, size_t error_bytes);
/* Whether the process went on so far that what was read is not to be trusted. */
bool reading_was_overwritten(const struct reading *reading, const struct trace_header *before);
/* What is known once all records were read. */
void reading_finish(struct recording *recording, const struct reading *reading,
                    const struct trace_header *header);

#endif
