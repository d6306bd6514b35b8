/*
 * Reads a recording back into a catalog and a ledger, in one pass. The file is untrusted: whatever its bytes,
 * the answer is a recording or one sentence saying what is wrong.
 */
#ifndef TRACE_READER_H
#define TRACE_READER_H

#include <stddef.h>
#include <stdint.h>

#include "catalog/catalog.h"
#include "ledger/ledger.h"
#include "trace/process_info.h"

struct recording {
    struct arena arena;
    struct catalog *catalog;
    struct ledger *ledger;
    struct process_info process;
    uint32_t note_count;
    const uint32_t *notes;        /* string ids */
    uint64_t file_dropped_events; /* events the process had to leave out of the file */
    uint64_t file_bytes;          /* of records, with the header */
    /* Events up to that time, in nanoseconds since the start, were left out to keep the file under a size;
     * what came of them is in the ledger. Both 0: all events are there. */
    uint64_t events_since_ns, bound_bytes;
};

typedef void event_watcher(const struct recording *recording, const struct event *event, void *arg);

/* 0, or -1 with a sentence in `error`. `each_event`, where not NULL, sees every event before the ledger does.
 * A running process may overwrite what is being read: then all is read anew, and `each_event` is told so by a
 * NULL for the event. */
int recording_read(struct recording *recording, const char *path, event_watcher *each_event, void *arg,
                   char *error, size_t error_bytes);
void recording_release(struct recording *recording);

#endif
