/* The files that lie beside a recording: STEM.txt, STEM.json and STEM.html of STEM.gmt. */
#ifndef GPUMEMTRACE_REPORT_FILE_H
#define GPUMEMTRACE_REPORT_FILE_H

#include "rendering.h"

#define REPORT_SUFFIX ".json"

/* Whether a name ends so, and is more than that. */
bool has_suffix(const char *path, const char *suffix);
/* "stem.gmt" gives "stem.txt"; for free(). NULL when there is no memory. */
char *report_file_beside(const char *recording, const char *suffix);

/* What writes a report; false when memory ran out. */
typedef bool report_file_writer(const struct rendering *rendering, struct output *out);

/* Writes one whole or not at all: under a name of its own first. Says on stderr what went wrong; `path` may
 * be NULL, which is that there is no memory. */
void report_file_write(const struct rendering *rendering, const char *path, report_file_writer *writer);

/* The recording's page, beside it. Says on stderr what went wrong. */
void report_file_page(const char *recording);

#endif
