/*
 * Memory straight from the kernel, for code that must never enter the traced program's malloc: a hook can run
 * inside a malloc replacement, in a forked child, or while the program holds any lock of its own.
 *
 * An arena hands out zeroed memory that is returned all at once. A pool hands out objects of one size and
 * takes them back singly. Neither locks: the owner's lock covers them. All functions return NULL when the
 * kernel refuses.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks;
    size_t used, size;   /* within the newest chunk */
    size_t mapped_bytes; /* all chunks, for the report of our own cost */
};

/* Zeroed, aligned to 16 bytes; alive until arena_release(). */
void *arena_alloc(struct arena *arena, size_t bytes);
/* A copy of `bytes` bytes and a terminating NUL. */
char *arena_copy(struct arena *arena, const char *text, size_t bytes);
/* Unmaps everything; the arena is empty and usable again. */
void arena_release(struct arena *arena);

struct pool_item;

struct pool {
    struct arena *arena;
    size_t object_bytes;
    struct pool_item *free_items;
};

void pool_init(struct pool *pool, struct arena *arena, size_t object_bytes);
/* Contents are undefined. */
void *pool_get(struct pool *pool);
void pool_put(struct pool *pool, void *object);

/* Large tables that grow by moving (hash buckets): mapped singly, so that the old table goes back to the
 * kernel. Zeroed. `bytes` of pages_free() must be what was asked of pages_alloc(); of NULL there is nothing
 * to free. */
void *pages_alloc(size_t bytes);
void pages_free(void *start, size_t bytes);

#endif
