/*
 * Which sites grow: whose living bytes keep rising, in a way that would fill the device if the run went on.
 * Asked once, at the end, of the histories that the ledger keeps (history.h). To name an innocent is worse
 * than to miss a grower, so every doubt is decided for the site. How it is decided, in plain words:
 *
 *  1. Only what is kept counts: for each moment the least that was alive from then on to the end. What is
 *     given back later was never growth. So scratch memory, turns and sawteeth with a level floor vanish, and
 *     sawteeth with a rising floor become a staircase.
 *  2. The staircase must have several steps, and they and the pauses between them (and before the end) must
 *     be even: "steadiness" is how many standard deviations the rise is away from none, going by its own
 *     unevenness. So allocations at the start, an arena that doubled, and bursts drop out.
 *  3. The rate must not fall off. "Lean" is the centre of the rise, from -1 (all of it at the beginning) to
 *     +1 (all at the end): 0 for a straight line, -0.3 and less for what levels off, a saturating or a
 *     logarithmic cache. An uneven rise must keep further away from that.
 *  4. Where memory is given back, too, the rise must not be what chance makes of allocations and frees that
 *     balance: nearly nothing of what rose fell back; or the floors scatter closely around a straight line;
 *     or they are sawteeth whose lowest points all rise; or the steadiness is beyond chance.
 *
 * The time looked at is the site's whole life, or, where that does not do because a beginning is different
 * from what follows, its last 7/8 or 3/4 (a warm-up) or 1/2 (growth that begins late); but the rise must take
 * at least 3/10 of the run. The program's own quiet end, without an allocation at any site, is left out
 * when it takes up to a third of the run, or up to 50 ms in a program that works in turns: an interpreter
 * that exits takes longer than a short run did. What rose before a longer quiet end was a program that loads.
 */
#ifndef LEDGER_GROWTH_H
#define LEDGER_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/ledger.h"

struct history;

struct growth {
    double bytes_per_second; /* the middle of the slopes between any two moments far enough apart */
    /* s²/(s² + 10) × n/(n + 1) × (1 + lean, where that is below 0), with s the steadiness and n the rises:
     * 0.95 for a straight line, about 0.4 for the least that is named. */
    double confidence;
    uint64_t since_ns;    /* when the rise that was looked at began */
    uint64_t until_ns;    /* when it was looked at last: little before the end */
    uint64_t risen_bytes; /* by how much it rose between them */
    uint32_t rises;       /* in how many stretches of time it rose: the steps of the staircase */
};

/* When the program stopped allocating: its end, or its last allocation where only a short quiet time
 * followed. */
uint64_t growth_end(const struct ledger *ledger, uint64_t duration_ns);

/* True when the site grows; `end_ns` from growth_end(). */
bool ledger_growth(const struct ledger *ledger, uint32_t site, uint64_t end_ns, struct growth *growth);

/* The same for several sites as if they were one: what reaches a line of code by many ways may grow though
 * none of them does so often enough to be told. `end_ns` from growth_end(). */
bool ledger_growth_together(const struct ledger *ledger, const uint32_t *sites, size_t count, uint64_t end_ns,
                            struct growth *growth);

/* The same for one history of a site that has `live_bytes` at the end. */
bool growth_judge(const struct history *history, uint64_t live_bytes, uint64_t end_ns, struct growth *growth);

#endif
