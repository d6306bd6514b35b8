/*
 * Free and taken ranges of an address range ("extents"), found by size in bins: constant time to take and to
 * give back, neighbours merged, and a range just given back is the first to be taken again. What a unit means
 * (a byte range of 512, a granule of 2 MiB) is the caller's. Not locked.
 */
#ifndef SIMGPU_EXTENT_H
#define SIMGPU_EXTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct extent {
    uint64_t start, size;           /* in units */
    struct extent *before, *after;  /* neighbours by address within one region; NULL at its ends */
    struct extent *bin_next, **bin; /* while free: the list it stands in */
    bool free;
};

#define HEAP_STEPS 8 /* bins per power of two */
#define HEAP_BINS  (64 * HEAP_STEPS)

struct heap {
    struct extent *bins[HEAP_BINS];
    uint64_t filled[HEAP_BINS / 64]; /* a bit for each bin that is not empty */
};

/* Gives the heap a new region, free as a whole; NULL when memory ran out. */
struct extent *heap_add(struct heap *heap, uint64_t start, uint64_t size);
/* Takes the first `size` units of a free extent that is large enough; NULL when there is none. */
struct extent *heap_take(struct heap *heap, uint64_t size);
/* Gives an extent back, merged with free neighbours; returns what it became. */
struct extent *heap_give(struct heap *heap, struct extent *extent);
/* Takes a free extent out of the heap altogether; only for one without neighbours (a whole region). */
void heap_remove(struct heap *heap, struct extent *extent);
static inline bool extent_is_whole_region(const struct extent *extent)
{
    return extent->free && !extent->before && !extent->after;
}

/* Objects of one size, reused last in first out, so that handles come back as quickly as a real driver's. */
struct slab {
    size_t size; /* of an object, at least a pointer */
    void *free;
};
void *slab_take(struct slab *slab); /* zeroed; NULL when memory ran out */
/* The same for objects that are given back zeroed: nothing is cleared. */
void *slab_take_blank(struct slab *slab);
void slab_give(struct slab *slab, void *object);

#endif
