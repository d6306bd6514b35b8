/*
 * How a site's living bytes went through the run, in a fixed size: for each of up to HISTORY_CELLS equal
 * stretches of time, the least that was alive. What a stretch's minimum rises to was not given back within
 * it, so scratch memory leaves no mark, however much of it comes and goes.
 *
 * Stretches are 2^width_log2 ns wide, counted from the site's first allocation. When time outgrows them, they
 * are merged in pairs: once that has happened, at least half of them are always in use. It depends on the
 * events alone, so the traced process and the reader of its recording keep the same history.
 */
#ifndef LEDGER_HISTORY_H
#define LEDGER_HISTORY_H

#include <stdint.h>

#define HISTORY_CELLS      64
#define HISTORY_WIDTH_LOG2 14 /* the first width, 16 µs: a run of a few milliseconds fills a history */

struct history {
    uint64_t origin_ns;
    uint32_t width_log2;
    uint16_t last; /* the cell that is being filled; later ones mean nothing */
    /* What is kept for a site has memory for so many cells (histories.c); elsewhere it means nothing. */
    uint16_t room;
    uint64_t floors[HISTORY_CELLS];
};

/* A whole one, of which `from` may be the part that means something. */
void history_copy(struct history *to, const struct history *from);

/* `live` bytes were alive at `origin_ns`, before whatever is noted first. */
void history_begin(struct history *history, uint64_t origin_ns, uint64_t live);
/* At `time_ns` the living bytes went from `before` to `after`. O(1), on average over many. Times of two
 * threads may be a little out of order: an earlier one counts for the newest cell. */
void history_note(struct history *history, uint64_t time_ns, uint64_t before, uint64_t after);

#endif
