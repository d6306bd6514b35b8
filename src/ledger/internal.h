/* What the ledger's files share; nobody else includes this. */
#ifndef LEDGER_INTERNAL_H
#define LEDGER_INTERNAL_H

#include "base/hash.h"
#include "base/list.h"
#include "ledger/history.h"
#include "ledger/ledger.h"
#include "ledger/summits.h"

struct block_entry {
    struct block block;
    uint64_t birth;           /* the number of the event that began it */
    struct block_entry *next; /* in its bucket, then among those kept for the fullest moment (segments.h) */
    struct block_entry *before, *after; /* of its context, while it lives (contexts.c) */
    struct block_entry *older, *newer;  /* of all that live */
};

/* Of blocks.c. */
struct blocks {
    struct block_entry **buckets;
    uint64_t mask; /* their number, which is a power of two, less one */
    uint64_t count;
    struct block_entry *oldest, *newest;
    struct pool pool;
};

struct space_record {
    struct ledger_space is; /* comes first */
    uint64_t epoch;         /* how often its peak was raised */
    bool in_whole;          /* its blocks are the whole's, too (struct ledger) */
    struct summits summits;
};

/* What a site held at a space's peak. */
struct share_at_peak {
    uint64_t epoch; /* of the space, when the others were noted */
    uint64_t bytes, blocks;
};

struct site_record {
    struct space_record *space; /* NULL until the site's first event */
    struct totals totals;
    enum layer layer;
    uint32_t user; /* a framework's: its bit in struct segment; 0 before its first block */
    struct share_at_peak at_peak, at_whole_peak;
    uint64_t failed, first_time_ns, last_time_ns;
    uint64_t ended_ns;       /* while there is no history: when its block ended; 0 while that lives */
    struct history *history; /* from the second allocation on; NULL before, and when memory ran out */
    uint64_t stamp, scratch; /* summits.c's own, while it works: nothing to be saved */
};

#define HISTORY_ROOMS 5 /* 4, 8, 16, 32 and HISTORY_CELLS cells */

/* Of segments.h. */
struct segments {
    bool active; /* a framework's block was seen */
    struct segment *tree;
    struct pool pool;
    struct list fullest;    /* struct fullest */
    struct list frameworks; /* uint32_t: string ids of the allocators' names, by number */
    uint64_t ended_start, ended_size;
    uint32_t ended_users; /* of the segment that ended last */
};

#define PHASES_ACTIVE 16 /* phases that are followed at once */

/* Of phases.h. */
struct phases {
    uint32_t active_count;          /* 0 while no phase is open, and all the time in most programs */
    uint32_t active[PHASES_ACTIVE]; /* phases that are open, by when they began */
    struct list records;            /* struct phase_record */
    struct phase_record *by_name;
    uint32_t open;      /* ranges */
    struct list ranges; /* struct phase_range, by when they began; those behind `open` mean nothing */
    struct list sites;  /* struct phase_site_record */
    struct phase_site_record *by_site;
    uint64_t steps;
    struct history *step_history; /* how many steps had ended by when; NULL before the first */
};

struct ledger {
    struct arena *arena;
    const struct catalog *catalog;
    struct ledger_counters counters;
    struct blocks blocks;
    struct list sites; /* struct site_record, by catalog id */
    struct pool histories[HISTORY_ROOMS];
    struct list spaces;                             /* struct space_record */
    struct context_blocks *contexts, *last_context; /* by context; the one that was looked for last */
    struct pool context_pool;
    /* The driver layer's device memory of all devices together, from the second device on. */
    struct space_record whole;
    uint64_t stamp;      /* the latest that summits.c gave */
    struct list ooms;    /* struct oom */
    uint32_t unanswered; /* of them: nothing of that size was granted since */
    struct list devices; /* struct device_figures */
    struct list pools;   /* struct pool_sample */
    struct segments segments;
    struct phases phases;
};

/* histories.c: what is kept of a site's history, in as much memory as it needs so far. */
void histories_init(struct ledger *ledger);
/* The history of a site that allocated once. */
void histories_first(const struct site_record *site, struct history *history);
/* Keeps that from now on; without memory there is none. */
void histories_begin(struct ledger *ledger, struct site_record *site);
/* history_note(), for a site that has one. Without memory it is kept no longer. */
void histories_note(struct ledger *ledger, struct site_record *site, uint64_t time_ns, uint64_t before,
                    uint64_t after);
/* A site's, from its first cells and what is before them. False without memory. */
bool histories_restore(struct ledger *ledger, struct site_record *site, const struct history *history);

/* spaces.c: the site's record, made at its first event; NULL for an id the catalog does not know, or without
 * memory. */
struct site_record *ledger_reach_site(struct ledger *ledger, uint32_t id);

/* blocks.c: the living blocks. blocks_init() and blocks_insert() fail without memory, and blocks_insert() is
 * for a key that is not there; blocks_find() is NULL for one that is not. blocks_remove(): the entry is no
 * longer to be used. */
bool blocks_init(struct ledger *ledger);
void blocks_destroy(struct ledger *ledger);
struct block_entry *blocks_insert(struct ledger *ledger, const struct block *block);
struct block_entry *blocks_find(const struct ledger *ledger, uint64_t key);
void blocks_remove(struct ledger *ledger, struct block_entry *entry, const struct site_record *site);

/* For restore.c, of a ledger to which no event was applied. NULL without memory, and for what cannot be: a
 * space that is there already, a site that the catalog does not know, a block whose key is taken. */
struct space_record *ledger_restore_space(struct ledger *ledger, const struct ledger_space *space);
/* The whole's, which needs two devices. */
struct space_record *ledger_restore_whole(struct ledger *ledger, const struct ledger_space *space);
struct block_entry *ledger_restore_block(struct ledger *ledger, const struct block *block, uint64_t birth);

/* contexts.c: the living blocks of each context but 0, which is none. contexts_add() is false without memory.
 * contexts_end() is for a context without blocks. */
void contexts_init(struct ledger *ledger);
void contexts_destroy(struct ledger *ledger);
bool contexts_add(struct ledger *ledger, struct block_entry *entry);
void contexts_remove(struct ledger *ledger, struct block_entry *entry);
struct block_entry *contexts_first(struct ledger *ledger, uint32_t context);
void contexts_end(struct ledger *ledger, uint32_t context);

/* What the driver says, as far as it can be. */
static inline uint64_t ledger_believed(uint64_t bytes)
{
    return bytes < LEDGER_LIVE_MAX ? bytes : LEDGER_LIVE_MAX;
}

/* Stops at the largest figure. */
static inline uint64_t ledger_sum(uint64_t left, uint64_t right)
{
    uint64_t sum;
    return __builtin_add_overflow(left, right, &sum) || sum > LEDGER_FIGURE_MAX ? LEDGER_FIGURE_MAX : sum;
}

/* `net` and what `after` is more than `before`; stops at the largest and the smallest figure. */
static inline int64_t ledger_net(int64_t net, uint64_t before, uint64_t after)
{
    int64_t sum, change = (int64_t)(after - before);
    if (__builtin_add_overflow(net, change, &sum))
        return change > 0 ? INT64_MAX : -INT64_MAX;
    return sum;
}

/* 0 where it would be less: figures that contradict each other. */
static inline uint64_t ledger_less(uint64_t from, uint64_t bytes)
{
    return from > bytes ? from - bytes : 0;
}

/* ooms.c: notes an out-of-memory moment with who held what; beyond LEDGER_OOMS_MAX it is only counted. */
bool ledger_add_oom(struct ledger *ledger, const struct event *event, const struct site_record *site);
/* After an allocation, while any is unanswered: it may be the answer. */
void ledger_answer_ooms(struct ledger *ledger, const struct site_record *site, uint64_t bytes,
                        uint64_t time_ns);

/* devices.c: the driver's figures of a device, and a memory pool's. False without room for another. */
bool ledger_apply_figures(struct ledger *ledger, const struct event *event, int device);
bool ledger_apply_pool(struct ledger *ledger, const struct event *event);
/* The device's, made where there are none; NULL without room. */
struct device_figures *ledger_reach_device(struct ledger *ledger, int device);
/* Reserved by a device's memory pools and in no block, as far as known. */
uint64_t ledger_unused_in_pools(const struct ledger *ledger, int device);

#endif
