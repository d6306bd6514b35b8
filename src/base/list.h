/*
 * A growing array whose elements never move: chunks of doubling size from an arena, all zeroed. Elements may
 * be read without a lock by whoever learnt their index after they were written.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define LIST_FIRST_CHUNK 64 /* elements; a power of two */
#define LIST_CHUNKS      26
/* Their sum: just under 2^32. */
#define LIST_ELEMENTS_MAX (((uint64_t)LIST_FIRST_CHUNK << LIST_CHUNKS) - LIST_FIRST_CHUNK)

struct list {
    struct arena *arena;
    size_t element_bytes;
    uint32_t count;
    void *chunks[LIST_CHUNKS];
};

void list_init(struct list *list, struct arena *arena, size_t element_bytes);
/* Makes element `index` and all before it exist, zeroed. NULL when memory ran out, or past the last there can
 * be. */
void *list_reach(struct list *list, uint32_t index);

/* NULL beyond the end. */
static inline void *list_at(const struct list *list, uint32_t index)
{
    if (index >= list->count)
        return NULL;
    uint64_t shifted = (uint64_t)index + LIST_FIRST_CHUNK;
    int log2 = 63 - __builtin_clzll(shifted);
    int chunk = log2 - __builtin_ctz(LIST_FIRST_CHUNK);
    return (char *)list->chunks[chunk] + (shifted - (UINT64_C(1) << log2)) * list->element_bytes;
}

#endif
