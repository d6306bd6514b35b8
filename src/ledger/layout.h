/*
 * How the memory that an allocator took from the driver is filled: its segments, the blocks that live in
 * them, and what is free between the blocks. At one moment: now, the device's fullest one
 * (ledger/segments.h), or when the device had no more to give.
 *
 * A segment is a driver's block in which the allocator ever had a block, or a run of mapped memory without a
 * gap ("expandable segment"). It goes back to the driver in pieces: a driver's block as a whole, a run
 * mapping by mapping. Of the free bytes of a segment,
 *   - those in pieces without a living block can be given back: releasable (in PyTorch by empty_cache());
 *   - the others a living block keeps: stranded.
 */
#ifndef LEDGER_LAYOUT_H
#define LEDGER_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct ledger;

#define LAYOUT_COLUMNS 64 /* of a segment's map */

struct layout_segment {
    uint64_t start, bytes;
    uint64_t allocated_bytes, releasable_bytes, stranded_bytes;
    uint64_t largest_free_bytes;
    uint64_t blocks;
    /* Each character a 64th of it: '.' all free, '-' under half, '+' half or more, '#' all allocated. */
    char map[LAYOUT_COLUMNS + 1];
};

/* What a site's living blocks strand. The stranded bytes of a piece are shared equally by the sites that have
 * blocks in it, so that all pinners together strand what is stranded. */
struct layout_pinner {
    uint32_t site;
    uint64_t stranded_bytes;
    uint64_t pieces, blocks; /* with stranded bytes in them; of the site's in those */
};

struct layout {
    uint32_t allocator; /* its name, a string of the catalog */
    int device;
    uint64_t time_ns; /* of the moment; 0 for now */
    uint64_t reserved_bytes, allocated_bytes, releasable_bytes, stranded_bytes;
    uint64_t largest_free_bytes; /* in one piece */
    uint64_t blocks;
    uint64_t outside_bytes; /* of living blocks that lie in no segment: memory that we did not see */
    size_t segment_count;   /* all */
    size_t listed_count;    /* in `segments`, most stranded bytes first */
    const struct layout_segment *segments;
    size_t pinner_count;
    const struct layout_pinner *pinners; /* most stranded bytes first */
};

enum layout_moment { LAYOUT_NOW, LAYOUT_FULLEST };

/* How many segments and pinners are listed at most. */
struct layout_limits {
    size_t segments, pinners;
};

/* One layout for each allocator that has or had segments on `device` at that moment, in `arena`. O(n log n)
 * in the blocks. False: memory ran out, and *count is 0. */
bool ledger_layouts(const struct ledger *ledger, int device, enum layout_moment moment,
                    const struct layout_limits *limits, struct arena *arena, const struct layout **layouts,
                    size_t *count);

#endif
