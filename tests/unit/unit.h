/* What every unit test needs: cmocka with the headers it wants first, and numbers that are random but the
 * same in every run. */
#ifndef UNIT_UNIT_H
#define UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* splitmix64 (Steele, Lea and Flood, 2014): any seed will do, 0 too. */
static inline uint64_t random_next(uint64_t *seed)
{
    uint64_t mixed = *seed += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

static inline uint64_t random_below(uint64_t *seed, uint64_t bound)
{
    return random_next(seed) % bound;
}

#endif
