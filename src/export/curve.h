/*
 * How live bytes went over time, in a bounded number of points: in a recording with more events than that,
 * each stretch of time keeps what was lowest, highest and last in it, in their order. So no peak is cut off.
 */
#ifndef EXPORT_CURVE_H
#define EXPORT_CURVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/list.h"

struct curve_point {
    uint64_t time_ns, value;
};

struct curve {
    struct list points; /* struct curve_point */
    uint64_t width_ns;  /* of a stretch; 0: every change is kept */
    uint64_t stretch;
    bool any;
    struct curve_point lowest, highest, last;
    bool failed; /* memory ran out */
};

/* `events` and `duration_ns` as far as known beforehand. Uses `arena`. */
void curve_begin(struct curve *curve, struct arena *arena, uint64_t events, uint64_t duration_ns);
/* The value from that time on; times never go back. */
void curve_add(struct curve *curve, uint64_t time_ns, uint64_t value);
/* Puts the last stretch among the points. */
void curve_end(struct curve *curve);

#endif
