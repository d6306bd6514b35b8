/* What the timeline's files share; nobody else includes this. */
#ifndef REPORT_PAGE_TIMELINE_TYPES_H
#define REPORT_PAGE_TIMELINE_TYPES_H

#include "base/list.h"
#include "report/page/timeline.h"

/*
 * A space while it is followed. The fullest moment of the open stretch is kept without walking the sites, as
 * the ledger keeps its peak: `epoch` is the number of times that moment was replaced, and a site that changes
 * for the first time since then notes what it held.
 */
struct followed_space {
    struct timeline_space is;
    struct list sites; /* uint32_t: catalog ids of those that ever held memory in it */
    uint64_t bytes, epoch;
    uint64_t bytes_before; /* the event at hand */
    bool is_open, changed; /* in this stretch; by the event at hand */
    bool is_at_fullest;    /* nothing changed since the fullest moment */
    uint64_t fullest_bytes, fullest_ns, least_bytes, last_ns;
};

struct followed_site {
    struct followed_space *space; /* NULL: it never held memory */
    uint64_t bytes;
    uint64_t epoch, bytes_at_fullest; /* the latter is good while the former is the space's */
};

struct followed_phase {
    struct timeline_phase is;
    uint32_t name; /* string id */
    bool is_open;
    uint32_t since; /* the stretch in which it was opened */
};

struct timeline {
    struct arena arena;
    bool begun, incomplete;
    uint64_t origin_ns;
    uint32_t width_log2; /* a stretch is 2^width_log2 ns long */
    uint32_t cell;       /* the newest stretch */
    struct list sites;   /* struct followed_site, by catalog id */
    struct list spaces;  /* struct followed_space * */
    struct list phases;  /* struct followed_phase, by the ledger's number */

    /* The event before: what it may have changed is asked when the next one comes. */
    struct event event;
    bool has_event;
    uint32_t ended_site; /* of the block that the event ends; CATALOG_NONE */

    struct moment_share *scratch; /* room for all sites of a space */
    uint32_t scratch_room;
};

/* timeline_cells.c: goes on to the stretch of that time; closes the one before. */
void timeline_advance(struct timeline *timeline, uint64_t time_ns);
/* Keeps the open stretch's moments. */
void timeline_close(struct timeline *timeline);

/* timeline_phases.c: which phases are open is asked of the ledger: of all, and of those that the event at
 * hand may have begun or ended. */
void timeline_ask_all_phases(struct timeline *timeline, const struct ledger *ledger);
void timeline_ask_phases(struct timeline *timeline, const struct ledger *ledger);
void timeline_merge_phases(struct timeline *timeline);
/* Marks the stretches that open phases are in. */
void timeline_mark_phases(struct timeline *timeline);

#endif
