/*
 * Where frameworks' blocks lie: the driver's blocks and mappings by address ("segments"), which allocators
 * ever had a block in each, and what every device looked like at its fullest moment.
 *
 * Costs nothing until a framework's first block. From then on a driver's block costs O(log n) more, and a
 * framework's block one search.
 *
 * The fullest moment of a device is when the driver's live bytes were highest, of those moments the one when
 * the frameworks' were, and of those the one when most was mapped, since memory is created first and mapped
 * then. Blocks and segments that are alive then and end later are kept until a fuller moment comes, so that
 * the moment can be looked at exactly; that is at most one kept for each that lived then.
 */
#ifndef LEDGER_SEGMENTS_H
#define LEDGER_SEGMENTS_H

#include "ledger/internal.h"

/* Allocators told apart by name within one segment; more of them share the last. */
#define FRAMEWORKS_MAX 32

struct segment {
    uint64_t start, size;
    uint32_t site;    /* of the block, or of the memory that is mapped there */
    uint32_t context; /* of the block */
    bool mapped;      /* a mapping: one piece with its neighbours */
    uint32_t users;   /* one bit a framework */
    /* What `users` was at the device's fullest moment, if it has changed since the moment of that event. */
    uint32_t users_then;
    uint64_t then;
    uint64_t birth; /* the number of the event that began it */
    struct segment *left, *right;
    struct segment *next; /* among those kept for the fullest moment */
};

/* The fullest moment of one device. */
struct fullest {
    int device;
    const struct space_record *driver, *framework;        /* NULL until they exist */
    uint64_t mapped_now;                                  /* bytes of all mappings on the device */
    uint64_t driver_bytes, framework_bytes, mapped_bytes; /* at the moment */
    uint64_t time_ns, event; /* when, and the number of the last event before it */
    struct block_entry *blocks;
    struct segment *segments; /* that ended since */
};

void segments_init(struct ledger *ledger);

/* After a block began, or `returned` because the driver refused its free, and was added to its site and
 * space. */
void segments_block_began(struct ledger *ledger, const struct block_entry *entry, struct site_record *site,
                          uint64_t time_ns, bool returned);
/* Before a block's entry is given back: false when the entry is kept for the fullest moment. */
bool segments_block_ends(struct ledger *ledger, struct block_entry *entry, const struct site_record *site);

bool segments_map(struct ledger *ledger, const struct event *event);
void segments_unmap(struct ledger *ledger, uint64_t address);

/* From now on segments are kept by address, whether a framework's block was seen or not. */
void segments_start(struct ledger *ledger);
/* The segment around an address; NULL for none. */
struct segment *segments_find(const struct ledger *ledger, uint64_t address);
/* The frameworks that had used a segment by the device's fullest moment. */
uint32_t segments_users_then(const struct segment *segment, const struct fullest *fullest);
/* The device's; NULL when there was none. */
const struct fullest *segments_fullest(const struct ledger *ledger, int device);
/* For restore.c. False when a living segment starts there already; without memory. */
bool segments_restore(struct ledger *ledger, struct segment *segment);
bool segments_restore_fullest(struct ledger *ledger, const struct fullest *fullest);
/* In the order of addresses. */
void segments_each(const struct ledger *ledger, void (*visit)(const struct segment *, void *), void *arg);

#endif
