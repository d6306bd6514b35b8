/*
 * Where the tool's output goes: to standard output, or to a file, which has its name only when it is whole.
 * What cannot be written is said on stderr, once, here; callers only pass the status on.
 */
#ifndef GPUMEMTRACE_DESTINATION_H
#define GPUMEMTRACE_DESTINATION_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/output.h"

struct destination {
    struct output out;
    const char *path; /* for messages; NULL: standard output */
    char *aside;      /* the file's name until it is whole; NULL: it is written in place */
    char *target;     /* what it replaces then, with its links followed; NULL: `path` */
};

/* A file that a person named; NULL or "-": standard output. A link is followed to the file that is replaced.
 * What is no plain file (a device, a FIFO), has other names, too, or an owner whom we cannot give it to, is
 * written in place, and so is a file in a folder that takes no other. False: it cannot be opened. `path` must
 * outlive it. */
bool destination_open(struct destination *to, const char *path);
/* A file of a name of our own making, for its owner alone. Whatever has the name is replaced, never followed.
 */
bool destination_open_own(struct destination *to, const char *path);
/* Ends it; without `whole` a file written aside goes away again. STATUS_GOOD, or STATUS_UNUSABLE where not
 * all was written; `whole` does not count for that. */
int destination_close(struct destination *to, bool whole);

/* The end of what was printed to standard output: the same status. */
int finish_printing(struct output *out);

#endif
