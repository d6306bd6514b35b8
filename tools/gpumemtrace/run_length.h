/*
 * How much longer one run is than another, and what that alone makes of a place's figures. Of a place that
 * goes on allocating all through a run, calls and bytes in all follow its length; of one that keeps what it
 * allocates, the rest does too. What was set up once does not, nor do peaks of what is freed.
 *
 * Length is work, not time: the program's steps, or its phase with the most rounds that most of
 * its phases follow; where it names neither, how much more often most places allocate. Time says little,
 * since most of a short run is its start.
 */
#ifndef GPUMEMTRACE_RUN_LENGTH_H
#define GPUMEMTRACE_RUN_LENGTH_H

#include "comparison.h"

#define LENGTH_LEAST 1e-3 /* a run is no more than so many times as long, or as short */

/* The basis by steps or a phase, where both reports have them; else unknown. `given` above 0: what a person
 * says. */
struct run_length run_length_of(const struct saved_report *before, const struct saved_report *after,
                                double given);
/* For one of unknown basis: by the calls at the places of run `run`, where most of them agree. */
void run_length_by_calls(struct run_length *length, const struct compared *places, size_t count, size_t run);
/* What the place would have in the run after, had nothing but the length changed. */
struct saved_figures run_length_expect(const struct run_length *length, const struct saved_figures *before,
                                       const struct saved_figures *after);

#endif
