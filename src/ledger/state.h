/*
 * All that a ledger knows, as lists of numbers: what a checkpoint in a recording is made of. A ledger that is
 * given what another one saved gives the same answers, and goes on from there like it.
 *
 * An item is a kind and its values. A reader takes 0 for values that are not there and leaves alone kinds and
 * values that it does not know, so that either may be added. Items come in the order of the kinds below, but
 * that what belongs to one item follows it: a HISTORY its SITE, the lists of an OOM and of a LAYOUT theirs.
 */
#ifndef LEDGER_STATE_H
#define LEDGER_STATE_H

#include <stdint.h>

#include "ledger/event.h"

struct block_entry;
struct ledger;
struct segment;
struct summits;

/* X(symbol, code in the recording). The values, in their order; a device is stored plus one, 0 for none:
 *
 * - COUNTERS: struct ledger_counters, field by field
 * - SPACE: layer, space, device; struct totals, field by field; how many phases at the peak, and which
 * - SITE: site, totals, failed, first and last time, bytes and blocks at its space's peak, framework's bit,
 *   bytes and blocks at the peak of all devices, when its only block ended
 * - HISTORY: site, origin, width_log2, the number of its last cell, then its cells
 * - BLOCK: key, size, born, site, context, references, birth; the oldest first
 * - MEMORY: device; of its contexts and of its code count, bytes and basis; NVML's time, own and all bytes;
 *   the first, the latest and the fullest sample, and the last of each reason: struct memory_sample without
 *   its device
 * - POOL: handle, device, time, reserved, used, threshold, peak reserved bytes
 * - OOM: time, site, error (32 bits), requested, free, total, live, unused pool bytes, shares, layouts,
 *   driver's bytes, time of the answer, freed and ended bytes, contexts' bytes, NVML's own and all bytes
 * - SHARE: site, bytes, blocks
 * - LAYOUT: allocator, device, time, reserved, allocated, releasable, stranded, largest free bytes, blocks,
 *   outside bytes, segments in all, and how many segments and pinners follow
 * - LAYOUT_SEGMENT: start, bytes, allocated, releasable, stranded, largest free bytes, blocks, map (2)
 * - PINNER: site, stranded bytes, pieces, blocks
 * - SEGMENTS: 1: they are kept; of the one that ended last: start, size, users
 * - FRAMEWORK: name
 * - FULLEST: device, driver's and framework's bytes, time, event, mapped bytes then and now
 * - SEGMENT: 0, or 1 + the number of the FULLEST it is kept for; start, size, site, context, 1: mapped,
 *   users, users then, then, birth
 * - KEPT_BLOCK: 1 + the number of the FULLEST it is kept for, then as BLOCK
 * - PHASE: name, parent plus one or 0, ranges, open ranges, periods, when first, time in all, peak and net
 *   bytes of each layer, when the period began, bytes then of each layer
 * - RANGE: range, phase
 * - PHASE_SITE: phase, site, most and net bytes, period, bytes at its beginning
 * - STEPS: how many, origin, width_log2, the number of the last cell, then the cells of their history
 * - WHOLE: all devices together, as SPACE; behind the spaces
 * - SUMMITS: number of the space, as they come, or how many there are for the whole; room, floor, 1: rising,
 *   when it rose; behind the sites
 * - SUMMIT: the changes and marks of the last SUMMITS, up to SUMMITS_AT_ONCE: 0 and a time plus one, or site
 * plus one and twice its change, or one less than twice what it fell by
 */
#define LEDGER_STATES(X)                                                                                     \
    X(COUNTERS, 1)                                                                                           \
    X(SPACE, 2)                                                                                              \
    X(SITE, 3)                                                                                               \
    X(HISTORY, 4)                                                                                            \
    X(BLOCK, 5)                                                                                              \
    X(MEMORY, 6)                                                                                             \
    X(POOL, 7)                                                                                               \
    X(OOM, 8)                                                                                                \
    X(SHARE, 9)                                                                                              \
    X(LAYOUT, 10)                                                                                            \
    X(LAYOUT_SEGMENT, 11)                                                                                    \
    X(PINNER, 12)                                                                                            \
    X(SEGMENTS, 13)                                                                                          \
    X(FRAMEWORK, 14)                                                                                         \
    X(FULLEST, 15)                                                                                           \
    X(SEGMENT, 16)                                                                                           \
    X(KEPT_BLOCK, 17)                                                                                        \
    X(PHASE, 18)                                                                                             \
    X(RANGE, 19)                                                                                             \
    X(PHASE_SITE, 20)                                                                                        \
    X(STEPS, 21)                                                                                             \
    X(WHOLE, 22)                                                                                             \
    X(SUMMITS, 23)                                                                                           \
    X(SUMMIT, 24)

#define AS_STATE(symbol, code) STATE_##symbol = code,
enum ledger_state_kind { LEDGER_STATES(AS_STATE) };
#undef AS_STATE

/* Of a MEMORY: where its samples begin, the values of one, and of all. */
#define MEMORY_SAMPLES_AT 10
#define SAMPLE_VALUES     9
#define MEMORY_VALUES     (MEMORY_SAMPLES_AT + (3 + SAMPLE_REASON_COUNT) * SAMPLE_VALUES)

#define LEDGER_STATE_VALUES_MAX 128 /* of one item */
#define SUMMITS_AT_ONCE         60
#define LAYOUT_MAP_CHARACTERS   ".-+#" /* of struct layout_segment: two bits a character, 32 in a value */

typedef void ledger_put_state(void *arg, enum ledger_state_kind kind, const uint64_t *values, uint32_t count);

/* Calls `put` for each item. Allocates nothing. */
void ledger_save(const struct ledger *ledger, ledger_put_state *put, void *arg);

/* What is being restored; all zero at the start. Nothing of it is of use to the caller. */
struct ledger_restoring {
    uint64_t sum; /* of what all sites hold and held, so far */
    struct oom *oom;
    struct share *shares;
    uint32_t shares_left;
    struct layout *layouts, *layout;
    uint32_t layouts_left;
    struct layout_segment *segments;
    uint32_t segments_left;
    struct layout_pinner *pinners;
    uint32_t pinners_left;
    struct block_entry **kept_block; /* the end of the list that is being made */
    struct segment **kept_segment;
    struct summits *summits;
    uint32_t kept_blocks_of, kept_segments_of; /* 1 + the FULLEST whose lists those are */
};

/* Adds one item to a ledger to which no event was applied. NULL, or what is wrong with the item: values come
 * from a file that nobody need trust, and any may be given. `values` are LEDGER_STATE_VALUES_MAX, zeros where
 * the item has fewer. */
const char *ledger_restore(struct ledger *ledger, struct ledger_restoring *restoring, unsigned kind,
                           const uint64_t *values);

#endif
