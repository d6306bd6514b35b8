/*
 * What came of a run, from the reports of its processes: three lines that say what to look at first, and
 * whether a process is over what it may be. One process at a time is in memory.
 */
#ifndef GPUMEMTRACE_RUN_OUTCOME_H
#define GPUMEMTRACE_RUN_OUTCOME_H

#include "gate.h"
#include "report/words.h"

struct run_outcome {
    /* Given: */
    struct gates gates;
    size_t baseline_count;
    const char *baselines[BASELINES_MAX];
    const char *folder; /* where the run began, and names are relative to; NULL: unknown */
    const char *names;  /* what the recordings of all processes match, as a shell has it */
    /* Found: */
    size_t processes, unusable, failed;
    uint64_t peak_bytes; /* of the process that is spoken of: the highest */
    struct words figures, look, path;
};

/* One more process; `arg` is the struct run_outcome. Tells on stderr what cannot be read, and why the first
 * process that fails a condition does. */
void run_outcome_take(const char *recording, void *arg);
/* The three lines, on stderr. Nothing when no process recorded anything. */
void run_outcome_say(const struct run_outcome *outcome);
/* STATUS_GOOD, STATUS_GATE_FAILED, or STATUS_UNUSABLE when conditions could not be decided; says why. */
int run_outcome_status(const struct run_outcome *outcome);

#endif
