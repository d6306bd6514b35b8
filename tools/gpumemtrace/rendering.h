/* From a recording to a report: the one way in which every subcommand reads a .gmt file. */
#ifndef GPUMEMTRACE_RENDERING_H
#define GPUMEMTRACE_RENDERING_H

#include <stddef.h>

#include "base/arena.h"
#include "report/page/page.h"
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
    struct timeline *timeline; /* for a page; NULL otherwise */
};

/* 0, or -1 with a sentence in `error` and nothing left open. `places`: where the recording's files are, or
 * NULL; it must outlive the rendering. `suppressions`: a file of them, or NULL for the one that
 * GPUMEMTRACE_SUPPRESSIONS names; what is wrong with it is said on stderr. `report_path`: as in struct
 * report_input. */
int rendering_open(struct rendering *rendering, const char *path, const struct symbol_places *places,
                   const char *suppressions, const char *report_path, char *error, size_t error_bytes);
/* The same, with what page_write() wants besides. */
int rendering_open_for_page(struct rendering *rendering, const char *path, const struct symbol_places *places,
                            const char *suppressions, const char *report_path, char *error,
                            size_t error_bytes);
/* How many bytes its reports may have: a few bytes of a recording can name a long text many times over. A
 * real one's are far less. */
uint64_t rendering_limit(const struct rendering *rendering);
void rendering_close(struct rendering *rendering);

#endif
