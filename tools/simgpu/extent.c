/*
 * Extents in bins. A bin holds sizes of one eighth of a power of two; its list is searched a few steps for an
 * extent that is large enough, then the next bin that is not empty serves.
 */
#include "extent.h"

#include <stdlib.h>
#include <string.h>

#define SEARCH_LIMIT 16      /* extents looked at in the request's own bin */
#define SLAB_BYTES   0x10000 /* taken from malloc at a time, never given back */

static struct slab extent_slab = {.size = sizeof(struct extent)};

void *slab_take_blank(struct slab *slab)
{
    if (!slab->free) {
        char *memory = calloc(1, SLAB_BYTES);
        if (!memory)
            return NULL;
        size_t size = (slab->size + 15) & ~(size_t)15;
        size_t at = SLAB_BYTES / size;
        do {
            void **object = (void **)(memory + --at * size);
            *object = slab->free;
            slab->free = object;
        } while (at);
    }
    void **object = slab->free;
    slab->free = *object;
    *object = NULL;
    return object;
}

void *slab_take(struct slab *slab)
{
    void *object = slab_take_blank(slab);
    return object ? memset(object, 0, slab->size) : NULL;
}

void slab_give(struct slab *slab, void *object)
{
    *(void **)object = slab->free;
    slab->free = object;
}

static unsigned bin_of(uint64_t size)
{
    unsigned power = 63 - (unsigned)__builtin_clzll(size);
    if (power < 3)
        return (unsigned)size;
    return power * HEAP_STEPS + (unsigned)((size >> (power - 3)) & (HEAP_STEPS - 1));
}

static void bin_insert(struct heap *heap, struct extent *extent)
{
    unsigned bin = bin_of(extent->size);
    extent->free = true;
    extent->bin = &heap->bins[bin];
    extent->bin_next = heap->bins[bin];
    if (extent->bin_next)
        extent->bin_next->bin = &extent->bin_next;
    heap->bins[bin] = extent;
    heap->filled[bin / 64] |= 1ull << (bin % 64);
}

static void bin_remove(struct heap *heap, struct extent *extent)
{
    *extent->bin = extent->bin_next;
    if (extent->bin_next)
        extent->bin_next->bin = extent->bin;
    unsigned bin = bin_of(extent->size);
    if (!heap->bins[bin])
        heap->filled[bin / 64] &= ~(1ull << (bin % 64));
    extent->free = false;
}

struct extent *heap_add(struct heap *heap, uint64_t start, uint64_t size)
{
    struct extent *extent = slab_take(&extent_slab);
    if (!extent)
        return NULL;
    extent->start = start;
    extent->size = size;
    bin_insert(heap, extent);
    return extent;
}

static struct extent *find(struct heap *heap, uint64_t size)
{
    unsigned bin = bin_of(size);
    struct extent *extent = heap->bins[bin];
    for (int i = 0; extent && i < SEARCH_LIMIT; i++, extent = extent->bin_next)
        if (extent->size >= size)
            return extent;
    for (unsigned word = ++bin / 64; word < HEAP_BINS / 64; word++) {
        uint64_t bits = heap->filled[word];
        if (word == bin / 64)
            bits &= ~0ull << (bin % 64);
        if (bits)
            return heap->bins[word * 64 + (unsigned)__builtin_ctzll(bits)];
    }
    while (extent && extent->size < size) /* what the first search left out of the own bin */
        extent = extent->bin_next;
    return extent;
}

struct extent *heap_take(struct heap *heap, uint64_t size)
{
    struct extent *extent = find(heap, size);
    if (!extent)
        return NULL;
    bin_remove(heap, extent);
    if (extent->size > size) {
        struct extent *rest = slab_take(&extent_slab);
        if (!rest) {
            bin_insert(heap, extent);
            return NULL;
        }
        rest->start = extent->start + size;
        rest->size = extent->size - size;
        rest->before = extent;
        rest->after = extent->after;
        if (rest->after)
            rest->after->before = rest;
        extent->after = rest;
        extent->size = size;
        bin_insert(heap, rest);
    }
    return extent;
}

/* `right` goes into `left`. */
static void merge(struct extent *left, struct extent *right)
{
    left->size += right->size;
    left->after = right->after;
    if (left->after)
        left->after->before = left;
    slab_give(&extent_slab, right);
}

struct extent *heap_give(struct heap *heap, struct extent *extent)
{
    struct extent *before = extent->before, *after = extent->after;
    if (after && after->free) {
        bin_remove(heap, after);
        merge(extent, after);
    }
    if (before && before->free) {
        bin_remove(heap, before);
        merge(before, extent);
        extent = before;
    }
    bin_insert(heap, extent);
    return extent;
}

void heap_remove(struct heap *heap, struct extent *extent)
{
    bin_remove(heap, extent);
    slab_give(&extent_slab, extent);
}
