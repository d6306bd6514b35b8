/*
 * A report read back from its JSON, as far as a comparison needs it. A recording takes the same way: it is
 * rendered to JSON in memory first, so that both are read by the same code. The file is untrusted: every
 * value's type is checked.
 */
#ifndef GPUMEMTRACE_SAVED_REPORT_H
#define GPUMEMTRACE_SAVED_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/symbols.h"

struct saved_frame {
    bool python, inlined;
    const char *function, *file, *module; /* NULL: unknown */
    bool has_offset;
    uint64_t offset;
};

/* Bytes and counts, of a space or a site. */
struct saved_figures {
    uint64_t live_bytes, live_blocks;
    uint64_t peak_bytes;  /* a space's own; of a site: what it held at the moment of its space's peak */
    uint64_t peak_blocks; /* 0 for a space */
    uint64_t allocs, frees, allocated_bytes;
    uint64_t leaked_bytes; /* of a site: what of live_bytes the report counts as leaked */
    uint64_t adding_bytes; /* of the first site of a line that was added to all through the run: its leaked
                              bytes */
    uint64_t growth_per_second; /* of a site that grows: bytes */
    uint64_t own_peak_bytes;    /* of a site: the most that it ever held; 0: unknown */
    uint64_t last_time_ns;      /* of a site: of its last allocation; 0: none, or unknown */
};

struct saved_space {
    const char *space;
    int device; /* -1: not tied to one */
    struct saved_figures figures;
};

struct saved_site {
    const char *title; /* NULL: the report has none */
    const char *layer, *space, *family, *api;
    int device;
    bool suppressed;
    uint64_t first_time_ns; /* of its first allocation; 0: none, or unknown */
    struct saved_figures figures;
    size_t frame_count;
    struct saved_frame *frames; /* innermost first */
};

/* What a program calls a part of its work. */
struct saved_phase {
    const char *name;
    uint64_t count; /* how often it began */
    uint64_t first_time_ns;
};

struct saved_report {
    void *json;          /* owns all strings */
    const char *program; /* process.exe, NULL: unknown */
    const char *end;     /* "exited", "killed", "running" */
    const char *host;    /* NULL: unknown */
    uint32_t pid;        /* 0: unknown */
    int rank;            /* -1: none */
    bool complete;
    uint64_t duration_ns;
    uint64_t steps; /* that the program counted; 0: none */
    size_t oom_count;
    const char *verdict; /* why the last request was refused; NULL: none was */
    size_t space_count, site_count, phase_count;
    struct saved_space *spaces;
    struct saved_site *sites;
    struct saved_phase *phases; /* of one name there may be several, inside different others */
};

/* The most bytes of a report: a tree of it in memory takes some ten times as much. */
#define SAVED_REPORT_BYTES_MAX (UINT64_C(512) << 20)

/* The two halves of saved_report_load(), for a recording: a file in memory with its report as JSON, or -1
 * with a sentence, and without one for a file that is no recording; and reading that text. Thread safety as
 * of all of these: a report is one thread's. */
int saved_report_render(const char *path, const struct symbol_places *places, char *error,
                        size_t error_bytes);
int saved_report_parse(struct saved_report *report, const char *text, size_t bytes, char *error,
                       size_t error_bytes);
/* Reads a recording (.gmt) or a report (.json), told apart by their first bytes. `places`: of a recording's
 * files, or NULL. 0, or -1 with a sentence. */
int saved_report_load(struct saved_report *report, const char *path, const struct symbol_places *places,
                      char *error, size_t error_bytes);
void saved_report_release(struct saved_report *report);

#endif
