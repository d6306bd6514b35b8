/*
 * Recordings rendered by a few helper processes, ahead of the one that adds them up: replaying is most of the
 * work of a merge, and each replay is by itself. A helper waits while nobody takes what it made, so that only
 * a few are in memory at a time.
 */
#ifndef GPUMEMTRACE_RENDER_AHEAD_H
#define GPUMEMTRACE_RENDER_AHEAD_H

#include <stddef.h>

#include "saved_report.h"

struct render_ahead;

/* Begins with the first of `paths`, which must stay until render_ahead_stop(). NULL where there is one
 * processor, too little to do, or no way to start helpers: then saved_report_load() does it all. */
struct render_ahead *render_ahead_start(const char *const *paths, size_t count,
                                        const struct symbol_places *places);
/* The next of them, in their order; as saved_report_load(), which does it where a helper came to its end. */
int render_ahead_take(struct render_ahead *ahead, struct saved_report *report, char *error,
                      size_t error_bytes);
void render_ahead_stop(struct render_ahead *ahead);

#endif
