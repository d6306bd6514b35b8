/* A recording being read: what the reader's files share; nobody else includes this. */
#ifndef TRACE_READING_H
#define TRACE_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
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
    uint64_t previous_time_ns, previous_number[KEY_SPACE_COUNT];
    event_watcher *each_event;
    void *arg;
    const char *wrong; /* what is wrong with the record at hand */
};

#define READING_BYTES ((size_t)1 << 20)

/* The record at `at`, which is before `end`, and whole in the buffer if it is not longer than a record can
 * be. False, with the reason in `wrong`, when it makes no sense. */
bool read_record(struct reading *reading);

#endif
