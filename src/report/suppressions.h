/*
 * Suppressions, in the syntax of LeakSanitizer: what a program keeps on purpose, so that it is not listed
 * among what is still allocated. A file has a line for each:
 *
 *     leak:PATTERN            # why
 *
 * PATTERN is looked for in the function, file and module of every frame of a site's stack. It may stand
 * anywhere in the name; '*' stands for any text, '^' at the beginning and '$' at the end for the name's
 * beginning and end. What follows a space and '#' is the reason, which the report gives. Empty lines, and
 * those that begin with '#', say nothing.
 */
#ifndef REPORT_SUPPRESSIONS_H
#define REPORT_SUPPRESSIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

struct suppression {
    const char *pattern;
    const char *reason; /* NULL: none was given */
    const char *file;   /* that it stands in; NULL: built in */
    unsigned line;      /* from 1 */
};

struct suppressions {
    size_t count;
    const struct suppression *list;
};

/* Takes sentences on what is wrong with the file, each once. */
typedef void suppressions_complain(void *arg, const char *sentence);

/* Reads a file, of which `path` is absolute; a line that cannot be understood is complained of and left out.
 * False: it could not be read, which is complained of, too. Calls no malloc. */
bool suppressions_read(struct suppressions *suppressions, const char *path, struct arena *arena,
                       suppressions_complain *complain, void *arg);
/* The same from `bytes` of text that are in memory and may be changed; `path` is what to call it. */
bool suppressions_parse(struct suppressions *suppressions, const char *path, char *text, size_t bytes,
                        struct arena *arena, suppressions_complain *complain, void *arg);

/* Whether a name is one that the pattern means. */
bool suppression_matches(const char *pattern, const char *name);

#endif
