/*
 * The moments at which a space held nearly as much as at its peak, with who held what: from them it can be
 * told what the peak would have been, had some sites held nothing (ledger_peak_without).
 *
 * Kept is a log of changes with marks in it, each where the space began to fall after it had risen. Whatever
 * sites are taken away, the highest that is left was at such a mark, or is now. When the log is full, marks
 * are left out where they hardly matter, at up to half of the peak; and where they cannot matter, because
 * every site held no more than at another mark, which a loop's turns do. What is left is small in programs
 * that repeat themselves. Where it is not, the lowest marks go, and `floor` says up to where the log may be
 * incomplete.
 *
 * A change costs O(1), on average over many: the log is tidied whenever it is full. It depends on the events
 * alone, so that the traced process and the reader of its recording come to the same answer.
 */
#ifndef LEDGER_SUMMITS_H
#define LEDGER_SUMMITS_H

#include <stdbool.h>
#include <stdint.h>

struct ledger;
struct space_record;

#define SUMMITS_ROOM_MIN 512
#define SUMMITS_ROOM     2048 /* more only where a single moment has that many sites */
#define SUMMITS_ROOM_MAX (UINT32_C(1) << 20)
#define SUMMIT_MARK      UINT32_MAX /* instead of a site */

struct summit_entry {
    uint64_t bytes; /* by how much the site changed, modulo 2^64; the time of a mark */
    uint32_t site;
};

struct summits {
    struct summit_entry *entries;
    uint32_t count, room;
    bool rising;      /* since the last change */
    uint64_t rose_ns; /* when it rose last */
    uint64_t floor;   /* marks that are not higher may be missing; UINT64_MAX: nothing is known */
};

/* Before the space changes by `bytes` (modulo 2^64), because of that site. */
void summits_note(struct ledger *ledger, struct space_record *space, uint32_t site, uint64_t bytes,
                  bool rises, uint64_t time_ns);
/* Room for as many entries as `from` has, and those. False without memory: nothing is known from then on. */
bool summits_copy(struct ledger *ledger, struct summits *to, const struct summits *from);

#endif
