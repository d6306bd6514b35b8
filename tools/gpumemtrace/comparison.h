/*
 * A report beside those of one or several runs before: what changed in each space and at each place. Computed
 * once; the outputs, and gates that decide over success, only read it.
 *
 * Of several runs before, every figure's median stands for them, and what lies within their spread is no
 * change: from the lowest minus the spread to the highest plus the spread.
 *
 * Of runs of different length (run_length.h), what the length alone makes of a figure is no change.
 */
#ifndef GPUMEMTRACE_COMPARISON_H
#define GPUMEMTRACE_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>

#include "saved_report.h"

enum change { CHANGE_NONE, CHANGE_CHANGED, CHANGE_NEW, CHANGE_GONE };

enum length_basis { LENGTH_UNKNOWN, LENGTH_GIVEN, LENGTH_STEPS, LENGTH_PHASE, LENGTH_CALLS };

/* How long the run after is beside one of those before. */
struct run_length {
    double ratio; /* so many times as long; 1: as long, or unknown */
    enum length_basis basis;
    bool phases_differ;     /* unknown, for phases do not agree on it */
    const char *phase;      /* LENGTH_PHASE: its name */
    uint64_t before, after; /* steps, or rounds of the phase */
    size_t agreeing, asked; /* LENGTH_CALLS: places */
    /* Half of the work was done then. */
    uint64_t middle_before_ns, middle_after_ns;
};

/* One space of one device, or one place. Sites of a report that are the same place are added up. */
struct compared {
    enum change change;
    const char *layer, *space;
    int device;
    struct saved_figures before, after;
    struct saved_figures
        expected; /* `before`, had nothing but the run's length changed; a change is from this */
    struct saved_figures *each; /* of the runs before, one by one */
    /* Of a place only: */
    char *key;
    const struct saved_site
        *site; /* the biggest of those that are this place; the later report's where it has one */
    bool suppressed;
};

#define BASELINES_MAX 64 /* runs before */

struct comparison {
    size_t before_count;
    size_t space_count, place_count;
    struct compared *spaces;
    struct compared *places;        /* the biggest change first */
    size_t counts[CHANGE_GONE + 1]; /* places, by how they changed */
    size_t adding_up;               /* of those without a change: see comparison_adds_up() */
    struct saved_figures *figures;  /* what `each` points into */
    struct run_length *lengths;     /* of each run before */
    bool same;                      /* nothing changed at all */
};

/* The reports must outlive the comparison, and get common function names (place.h). There may be none before.
 * `length`: how many times as long the run after is, or 0 to find out. 0, or -1 when memory ran out. */
int comparison_make(struct comparison *comparison, struct saved_report *before, size_t before_count,
                    struct saved_report *after, double length);
void comparison_release(struct comparison *comparison);

/* Whether the place has no change and yet has other bytes at the end: those that the length alone makes. */
bool comparison_adds_up(const struct compared *place);

/* after - before, as a sign and a size. */
struct difference {
    bool less;
    uint64_t amount;
};
struct difference difference(uint64_t before, uint64_t after);

#endif
