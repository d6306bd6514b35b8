/*
 * What may happen in a program, at random: allocations, frees, refused frees, references, context ends and
 * failures of sites in several spaces, devices and layers. Equal seeds give equal happenings.
 */
#ifndef UNIT_HAPPENINGS_H
#define UNIT_HAPPENINGS_H

#include "books.h"

#define HAPPENINGS_SITES 14

struct happenings {
    struct trace_books *books;
    uint64_t seed, time_ns;
    uint32_t sites[HAPPENINGS_SITES];
    struct block freed; /* the last block that a free found; it may be taken back once */
    bool can_unfree;
};

void happenings_start(struct happenings *happenings, struct trace_books *books, uint64_t seed);
/* The next one, applied to the books, which must take it; *ended as ledger_apply() gives it. */
void happenings_next(struct happenings *happenings, struct event *event, struct block *ended);

#endif
