/*
 * A caching allocator after PyTorch's: small requests from 2 MiB segments, larger ones from 20 MiB or from a
 * segment of their own; best fit within a stream's own pool; blocks split and merge; emptying the cache gives
 * back what is wholly free. Expandable, it has one range of addresses for each stream and pool, and maps more
 * memory into it in chunks.
 *
 * It is its own oracle: its figures come from its own lists of segments and blocks.
 */
#ifndef CACHING_ALLOCATOR_H
#define CACHING_ALLOCATOR_H

#include <cstddef>
#include <cstdint>

/* Of one device at one moment, in bytes. */
struct Figures {
    uint64_t reserved, allocated, releasable, stranded, largest_free, segments;
};

extern "C" {
void allocator_expandable(int expandable);
/* nullptr when the device has no more even after the cache was emptied. */
void *allocator_malloc(int device, size_t bytes, int stream);
void allocator_free(void *address);
void allocator_empty_cache(int device);
void allocator_figures(int device, Figures *figures);
/* At the fullest moment so far: most reserved, and of those moments the one with most allocated. */
void allocator_peak(int device, Figures *figures);
/* At each refusal of the driver, in order, of any device; returns how many there were. */
size_t allocator_refusals(Figures *figures, int *devices, size_t most);
}

#endif
