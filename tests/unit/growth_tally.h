/* How many of those that grow were named, and how many of those that do not. */
#ifndef UNIT_GROWTH_TALLY_H
#define UNIT_GROWTH_TALLY_H

#include <stddef.h>

struct tally {
    size_t growers, named_growers, innocents, named_innocents;
};

void print_tally(const char *what, const struct tally *tally);
void add_tally(struct tally *sum, const struct tally *tally);

#endif
