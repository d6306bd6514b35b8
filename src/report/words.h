/*
 * Sentences: a bounded buffer that every line and every sentence of a report is put together in, and the
 * wording of sizes, times, shares and counts, the same everywhere. What is in the buffer is raw text: whoever
 * prints it makes it safe. Too long a text is cut between characters.
 */
#ifndef REPORT_WORDS_H
#define REPORT_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/output.h"

struct words {
    size_t used;
    char text[1024]; /* always NUL-terminated once anything was added; start with {0} */
};

void words_add(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "3.0 MiB" */
void words_size(struct words *words, uint64_t bytes);
/* "120 ms", "59.1 s", "12 min 5 s": a duration, or a time since the recording began */
void words_time(struct words *words, uint64_t ns);
/* "78.9%"; "-" of nothing */
void words_share(struct words *words, uint64_t part, uint64_t whole);
/* "1 block", "60 blocks" */
void words_count(struct words *words, uint64_t count, const char *singular);
/* "2025-12-01 03:52:11" in UTC, with `separator` between date and time. gmtime() would read the time zone's
 * file, with malloc. */
void words_date(struct words *words, uint64_t realtime_ns, char separator);
/* Spaces up to a column, at least one. */
void words_column(struct words *words, int column);
/* Terminal columns used so far. */
int words_columns(const struct words *words);
/* Makes it fit into `bytes` with its NUL, cutting between characters. */
void words_cut(struct words *words, size_t bytes);
/* As a line, made safe to print; then there are none. */
void words_end_line(struct words *words, struct output *out);
/* A copy in `arena`; NULL when memory ran out. */
const char *words_keep(const struct words *words, struct arena *arena);

#endif
