/*
 * A recording in the formats of other tools: one file each, one row in export.c's table. They read the
 * report's model and, where a format has events, the recording once more. Everything is written in one order,
 * so that equal recordings give equal files; names are escaped by the rules of the format.
 */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/output.h"
#include "report/model.h"

/* What a site is weighed by. X(symbol, name, unit, meaning) */
#define EXPORT_VALUES(X)                                                                                     \
    X(PEAK, "peak", "bytes", "held at the peak of its space")                                                \
    X(LIVE, "live", "bytes", "still allocated at the end")                                                   \
    X(ALLOCATED, "allocated", "bytes", "allocated in all")                                                   \
    X(ALLOCS, "allocs", "none", "number of allocations")

#define AS_VALUE(symbol, ...) EXPORT_##symbol,
enum export_value { EXPORT_VALUES(AS_VALUE) EXPORT_VALUE_COUNT };
#undef AS_VALUE

extern const char *const export_value_names[EXPORT_VALUE_COUNT];

struct export_request {
    const struct report *report;
    const char *path; /* the recording's, for formats that read its events */
    enum layer layer; /* the driver's memory, or what frameworks handed out of it */
    enum export_value value;
};

struct export_format {
    const char *name;
    bool binary; /* nothing for a terminal */
    /* 0, or -1 with a sentence in `error`. What cannot be written is told by the output. */
    int (*write)(const struct export_request *request, struct output *out, char *error, size_t error_bytes);
};

extern const struct export_format export_formats[];
extern const size_t export_format_count;

/* For the formats. */

uint64_t export_value(const struct report_site *site, enum export_value value);
/* Whether the site is of the layer that is asked for, and its memory this process's own. */
bool export_is_meant(const struct export_request *request, const struct report_site *site);
/* "device 0": the outermost frame of stacks, so that kinds of memory are never mixed. Raw text. */
#define EXPORT_SPACE_MAX 64
const char *export_space_name(enum space_kind kind, int device, char text[EXPORT_SPACE_MAX]);
/* A function's name alone; "module+0x1234" for one that is not known. Raw text, cut to `bytes`. */
const char *export_function(const struct named_frame *frame, char *text, size_t bytes);

/* False for what a terminal must not get from whoever reads the export (utf8_is_printable), a line's end
 * aside. */
bool export_can_stand(uint32_t code);
/* A copy in which everything else is '?', cut between characters to fit. */
const char *export_text(const char *name, char *text, size_t bytes);

#define EXPORT_NAME_MAX 4096

#endif
