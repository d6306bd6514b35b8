/* What the outputs of `gpumemtrace merge` are given. */
#ifndef GPUMEMTRACE_MERGE_H
#define GPUMEMTRACE_MERGE_H

#include "base/output.h"
#include "job.h"

struct merge {
    struct job job;
    size_t top;      /* places to list at most; 0: all */
    size_t unusable; /* files that could not be read */
};

void merge_write_text(const struct merge *merge, struct output *out);
void merge_write_json(const struct merge *merge, struct output *out);

#endif
