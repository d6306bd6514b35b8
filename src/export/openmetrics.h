/* OpenMetrics text of one or several reports, for `gpumemtrace export` and `top`. */
#ifndef EXPORT_OPENMETRICS_H
#define EXPORT_OPENMETRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/output.h"

struct report;

struct openmetrics_recording {
    const struct report *report;
    const char *path;
};

/* The whole text; recordings are told apart by a label. False when memory ran out, and then nothing is
 * written. */
bool openmetrics_write(const struct openmetrics_recording *recordings, size_t count, struct output *out);

#endif
