/*
 * A line on the terminal for work that takes more than two seconds, and that is gone when the work is done.
 * Nothing is written where standard error is no terminal.
 */
#ifndef GPUMEMTRACE_PROGRESS_H
#define GPUMEMTRACE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what; /* "reading train.gmt" */
    const char *unit; /* "events" */
    uint64_t total;   /* 0: unknown */
    uint64_t begun_ns, shown_ns;
    bool is_terminal;
};

void progress_begin(struct progress *progress, const char *what, uint64_t total, const char *unit);
/* Cheap enough for every file, and for every few thousand events. */
void progress_tell(struct progress *progress, uint64_t done);
void progress_end(struct progress *progress);
/* From now on nothing is written: of a process that works for another one. */
void progress_never(void);

#endif
