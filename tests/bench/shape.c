/* Native frames for a benchmark: a stack of a chosen depth, and one of many such. A library of its own, since
 * captures leave out the frames of the one they are linked into. */
#include "shape.h"

/* Each call returns to an address of its own, so every bit of `path` makes another stack. The empty
 * statements are what keeps the calls apart, and from being jumps. */
__attribute__((noinline)) void shape_descend(unsigned frames, unsigned path, void (*function)(void *),
                                             void *arg)
{
    if (frames <= 1)
        function(arg);
    else if (path & 1)
        shape_descend(frames - 1, path >> 1, function, arg);
    else {
        shape_descend(frames - 1, path >> 1, function, arg);
        __asm__ volatile("# the other one" ::: "memory");
    }
    __asm__ volatile("" ::: "memory");
}
