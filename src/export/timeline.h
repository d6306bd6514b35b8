/*
 * How live bytes went over time, in a bounded number of points: in a recording with more events than that,
 * each stretch of time keeps what was lowest, highest and last in it, in their order. So no peak is cut off.
 */
#ifndef EXPORT_TIMELINE_H
#define EXPORT_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/list.h"

struct timeline_point {
    uint64_t time_ns, value;
};

struct timeline {
    struct list points; /* struct timeline_point */
    uint64_t width_ns;  /* of a stretch; 0: every change is kept */
    uint64_t stretch;
    bool any;
    struct timeline_point lowest, highest, last;
    bool failed; /* memory ran out */
};

/* `events` and `duration_ns` as far as known beforehand. Uses `arena`. */
void timeline_begin(struct timeline *timeline, struct arena *arena, uint64_t events, uint64_t duration_ns);
/* The value from that time on; times never go back. */
void timeline_add(struct timeline *timeline, uint64_t time_ns, uint64_t value);
/* Puts the last stretch among the points. */
void timeline_end(struct timeline *timeline);

#endif
