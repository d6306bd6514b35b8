/*
 * What was alive, moment by moment, of a run of any length in a bounded size: for the page's picture.
 *
 * The run is cut into up to TIMELINE_CELLS stretches of equal length; when it outgrows them they are merged
 * in pairs. Of each stretch in which a space's memory changed, two moments are kept: the fullest, and the
 * last. Both are real moments with the exact total and who held how much; nothing is an average, and the
 * space's peak is always among them. Between two moments that are kept the space never held more than the
 * fuller of the two.
 *
 * For the command-line tool, which feeds it while it reads a recording; it uses malloc. It asks the ledger
 * what an event has done, and counts nothing of its own.
 */
#ifndef REPORT_PAGE_TIMELINE_H
#define REPORT_PAGE_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"

#define TIMELINE_CELLS 2048
#define TIMELINE_SITES 128 /* of one moment: those that held most; the others are in its total only */

struct moment_share {
    uint32_t site; /* catalog id */
    uint64_t bytes;
};

struct moment {
    uint64_t time_ns, bytes;
    uint32_t count;
    struct moment_share shares[]; /* most bytes first */
};

/* A stretch in which nothing changed has neither moment. */
struct stretch {
    struct moment *fullest, *last; /* may be the same one */
    uint64_t least_bytes;
};

struct timeline_space {
    enum layer layer;
    enum space_kind kind;
    int device;
    struct stretch stretches[TIMELINE_CELLS];
};

/* A phase of the program, and in which stretches it was open at all. */
struct timeline_phase {
    uint32_t number; /* the ledger's */
    uint64_t cells[TIMELINE_CELLS / 64];
};

struct timeline;

/* NULL when there is no memory. */
struct timeline *timeline_create(void);
void timeline_destroy(struct timeline *timeline);

/* For recording_read(): `timeline` sees every event before the ledger does, and forgets all for a NULL. */
void timeline_see(const struct recording *recording, const struct event *event, void *timeline);
/* After the last event; before anything is asked. */
void timeline_finish(struct timeline *timeline, const struct recording *recording);

/* Memory was missing for some of it. */
bool timeline_is_incomplete(const struct timeline *timeline);
/* The time at which the first stretch begins, and the length of each. */
uint64_t timeline_origin_ns(const struct timeline *timeline);
uint64_t timeline_width_ns(const struct timeline *timeline);
/* In use; at most TIMELINE_CELLS. */
uint32_t timeline_cell_count(const struct timeline *timeline);
/* NULL beyond the last. */
const struct timeline_space *timeline_space(const struct timeline *timeline, uint32_t index);
const struct timeline_phase *timeline_phase(const struct timeline *timeline, uint32_t index);

#endif
