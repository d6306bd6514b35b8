/*
 * The processes of one job, added up: read one at a time, of each only a few numbers for each place are kept.
 * The processes of one rank are one member; a process without a rank is a member by itself. Devices are not
 * told apart: rank 3's device 3 is to rank 3 what device 0 is to rank 0.
 */
#ifndef GPUMEMTRACE_JOB_H
#define GPUMEMTRACE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "place.h"
#include "saved_report.h"

struct member {
    int rank; /* -1: none; then pid and host are its name */
    uint32_t pid;
    const char *host; /* "": unknown */
    size_t processes;
    uint64_t peak_bytes, live_bytes; /* of its processes and all their devices, added up */
    size_t ooms, killed, running, incomplete;
};

enum job_figure { JOB_PEAK, JOB_LIVE, JOB_FIGURE_COUNT };

/* What one member has at one place. */
struct part {
    uint32_t member;
    uint64_t figures[JOB_FIGURE_COUNT];
};

/* How one figure is spread over the members. Those that do not have the place have 0. */
struct spread {
    uint64_t total, low, median, high;
    uint32_t low_member, high_member;
    /* One member, or a few, that are unlike all others (job_spread.c). */
    size_t odd_count;
    uint32_t odd_member; /* the one furthest from the median */
};

/* A space (title NULL) or a place. */
struct job_row {
    const char *key, *title;
    const char *layer, *space; /* literals of the catalog's tables */
    uint64_t allocs, frees, allocated_bytes;
    size_t member_count; /* that have it */
    size_t part_count, part_room;
    struct part *parts; /* as they came: a member with several processes may have several */
    struct spread spreads[JOB_FIGURE_COUNT];
};

struct job {
    size_t member_count, member_room, process_count;
    struct member *members;
    size_t row_count, row_room; /* spaces and places, as they came */
    struct job_row *rows;       /* after job_finish(): spaces first, then the highest total at the peak */
    size_t space_count;         /* of the rows */
    /* Inside: */
    struct arena arena; /* of names and what finds them */
    struct job_row_index *by_key;
    struct member_index *by_name;
    struct place_rules rules; /* the first report's: the interpreters of a job are one version */
    uint64_t *values;         /* room for one figure of every member */
    bool failed;              /* memory ran out */
};

/* The report may be released afterwards. */
void job_add(struct job *job, const struct saved_report *report);
/* Sorts, and works out the spreads. 0, or -1 when memory ran out. */
int job_finish(struct job *job);
void job_release(struct job *job);

/* "rank 3", "pid 4711 on node1". Returns `text`. */
#define MEMBER_NAME_MAX 128
const char *job_member_name(const struct job *job, uint32_t member, char text[MEMBER_NAME_MAX]);

#endif
