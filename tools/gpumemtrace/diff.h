/* What the outputs of `gpumemtrace diff` are given. */
#ifndef GPUMEMTRACE_DIFF_H
#define GPUMEMTRACE_DIFF_H

#include "base/output.h"
#include "comparison.h"

struct diff {
    const char *before_path, *after_path;
    struct saved_report before, after;
    struct comparison comparison;
    size_t top; /* places to list at most */
};

void diff_write_text(const struct diff *diff, struct output *out);
void diff_write_json(const struct diff *diff, struct output *out);

#endif
