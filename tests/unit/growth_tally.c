/* Counting who was named (growth_tally.h). */
#include "growth_tally.h"

#include "unit.h"

void print_tally(const char *what, const struct tally *tally)
{
    print_message("%s: ", what);
    if (tally->growers)
        print_message("%zu of %zu growers named (%.1f%%), ", tally->named_growers, tally->growers,
                      100.0 * (double)tally->named_growers / (double)tally->growers);
    print_message("%zu of %zu innocents named\n", tally->named_innocents, tally->innocents);
}

void add_tally(struct tally *sum, const struct tally *tally)
{
    sum->growers += tally->growers;
    sum->named_growers += tally->named_growers;
    sum->innocents += tally->innocents;
    sum->named_innocents += tally->named_innocents;
}
