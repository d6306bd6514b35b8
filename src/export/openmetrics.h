/* OpenMetrics text of one or several reports, for `gpumemtrace export` and `top`. */
#ifndef EXPORT_OPENMETRICS_H
#define EXPORT_OPENMETRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/output.h"

struct report;

/* The whole text; processes are told apart by a label. False when memory ran out, and then nothing is
 * written. */
bool openmetrics_write(const struct report *const *reports, size_t count, struct output *out);

#endif
