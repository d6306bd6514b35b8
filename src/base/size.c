/*
 * Sizes are made from integers alone: printf's %f follows the traced program's setlocale(), and would print a
 * comma in half of the world.
 */
#include "base/size.h"

#include <stddef.h>
#include <stdio.h>

/* Smallest first: unit, its size as a power of two, and the digits after the point that users are used to. */
static const struct unit {
    const char *name;
    int bits, digits;
} units[] = {{"KiB", 10, 1}, {"MiB", 20, 1}, {"GiB", 30, 2}, {"TiB", 40, 2}, {"PiB", 50, 2}, {"EiB", 60, 2}};
#define UNIT_COUNT (sizeof units / sizeof units[0])

const char *size_text(char text[SIZE_TEXT_MAX], uint64_t bytes)
{
    if (bytes < 1024) {
        snprintf(text, SIZE_TEXT_MAX, "%u B", (unsigned)bytes);
        return text;
    }
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        unsigned scale = units[i].digits == 2 ? 100 : 10;
        unsigned __int128 half = (unsigned __int128)1 << (units[i].bits - 1);
        uint64_t rounded = (uint64_t)(((unsigned __int128)bytes * scale + half) >> units[i].bits);
        if (rounded >= 1024 * scale) /* 1023.96 KiB is 1.0 MiB */
            continue;
        snprintf(text, SIZE_TEXT_MAX, "%u.%0*u %s", (unsigned)rounded / scale, units[i].digits,
                 (unsigned)rounded % scale, units[i].name);
        break;
    }
    return text;
}
