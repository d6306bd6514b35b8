/* The outputs of `gpumemtrace top`. */
#ifndef GPUMEMTRACE_TOP_H
#define GPUMEMTRACE_TOP_H

#include "base/output.h"
#include "live.h"
#include "report/words.h"

struct top {
    struct live live;
    size_t lines; /* sites to show at most; 0: all */
    uint64_t interval_ns;
};

/* A row of the tables, the same on the terminal and in plain text. Raw text. */
void top_space_heading(struct words *words);
void top_space_line(struct words *words, const struct live_space *space);
void top_site_heading(struct words *words);
void top_site_line(struct words *words, const struct live_site *site);

void top_write_text(const struct top *top, struct output *out);
/* One line, in the schema gpumemtrace.top/1. */
void top_write_json(const struct top *top, struct output *out);
/* On the terminal, until a person ends it. An exit status. */
int top_run_screen(struct top *top);

#endif
