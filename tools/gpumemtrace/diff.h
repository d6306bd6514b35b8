/* What the outputs of `gpumemtrace diff` are given. */
#ifndef GPUMEMTRACE_DIFF_H
#define GPUMEMTRACE_DIFF_H

#include "base/output.h"
#include "comparison.h"
#include "gate.h"

struct diff {
    size_t before_count;
    const char *before_paths[BASELINES_MAX], *after_path;
    struct saved_report before[BASELINES_MAX], after;
    struct comparison comparison;
    struct gates gates; /* decided already */
    size_t failed;      /* … so many of them failed */
    size_t top;         /* places to list at most; 0: all */
};

void diff_write_text(const struct diff *diff, struct output *out);
void diff_write_json(const struct diff *diff, struct output *out);
/* For a comment on a pull request: GitHub's Markdown. */
void diff_write_markdown(const struct diff *diff, struct output *out);
/* The gates as test cases, for what reads JUnit's XML. */
void diff_write_junit(const struct diff *diff, struct output *out);

#endif
