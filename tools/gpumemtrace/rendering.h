/* From a recording to a report: the one way in which every subcommand reads a .gmt file. */
#ifndef GPUMEMTRACE_RENDERING_H
#define GPUMEMTRACE_RENDERING_H

#include <stddef.h>

#include "base/arena.h"
#include "report/report.h"
#include "symbols/symbols.h"
#include "trace/reader.h"

struct rendering {
    struct recording recording;
    struct symbol_source *symbols;
    struct arena arena;
    struct suppressions suppressions;
    struct report_input input; /* the report points at it */
    struct report *report;
};

/* 0, or -1 with a sentence in `error` and nothing left open. `places`: where the recording's files are, or
 * NULL; it must outlive the rendering. `suppressions`: a file of them, or NULL for the one that
 * GPUMEMTRACE_SUPPRESSIONS names; what is wrong with it is said on stderr. `report_path`: as in struct
 * report_input. */
int rendering_open(struct rendering *rendering, const char *path, const struct symbol_places *places,
                   const char *suppressions, const char *report_path, char *error, size_t error_bytes);
/* The same, and `each_event` sees every event, as in recording_read(). */
int rendering_open_watched(struct rendering *rendering, const char *path, const struct symbol_places *places,
                           const char *suppressions, const char *report_path, event_watcher *each_event,
                           void *arg, char *error, size_t error_bytes);
void rendering_close(struct rendering *rendering);

#endif
