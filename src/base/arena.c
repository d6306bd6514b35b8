/* Memory straight from the kernel (arena.h): anonymous mappings, no malloc, no locks. */
#include "base/arena.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT   16
#define CHUNK_BYTES ((size_t)256 << 10)

struct arena_chunk {
    struct arena_chunk *next;
    size_t bytes;
};

struct pool_item {
    struct pool_item *next;
};

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static void *map_bytes(size_t bytes)
{
    void *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

static struct arena_chunk *add_chunk(struct arena *arena, size_t bytes)
{
    struct arena_chunk *chunk = map_bytes(bytes);
    if (chunk == NULL)
        return NULL;
    chunk->bytes = bytes;
    arena->mapped_bytes += bytes;
    return chunk;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    const size_t head = round_up(sizeof(struct arena_chunk), ALIGNMENT);
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = round_up(bytes, ALIGNMENT);
    if (bytes > CHUNK_BYTES / 4) {
        /* A chunk of its own, put behind the one that is being filled. */
        struct arena_chunk *chunk = add_chunk(arena, head + bytes);
        if (chunk == NULL)
            return NULL;
        if (arena->chunks == NULL) {
            arena->chunks = chunk;
            arena->used = arena->size = chunk->bytes;
        } else {
            chunk->next = arena->chunks->next;
            arena->chunks->next = chunk;
        }
        return (char *)chunk + head;
    }
    if (arena->size - arena->used < bytes) {
        struct arena_chunk *chunk = add_chunk(arena, CHUNK_BYTES);
        if (chunk == NULL)
            return NULL;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        arena->size = chunk->bytes;
        arena->used = head;
    }
    void *start = (char *)arena->chunks + arena->used;
    arena->used += bytes;
    return start;
}

char *arena_copy(struct arena *arena, const char *text, size_t bytes)
{
    char *copy = bytes < SIZE_MAX ? arena_alloc(arena, bytes + 1) : NULL;
    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}

void arena_release(struct arena *arena)
{
    struct arena_chunk *next;
    for (struct arena_chunk *chunk = arena->chunks; chunk != NULL; chunk = next) {
        next = chunk->next;
        munmap(chunk, chunk->bytes);
    }
    memset(arena, 0, sizeof *arena);
}

void pool_init(struct pool *pool, struct arena *arena, size_t object_bytes)
{
    pool->arena = arena;
    pool->object_bytes = object_bytes < sizeof(struct pool_item) ? sizeof(struct pool_item) : object_bytes;
    pool->free_items = NULL;
}

void *pool_get(struct pool *pool)
{
    struct pool_item *item = pool->free_items;
    if (item == NULL)
        return arena_alloc(pool->arena, pool->object_bytes);
    pool->free_items = item->next;
    return item;
}

void pool_put(struct pool *pool, void *object)
{
    struct pool_item *item = object;
    item->next = pool->free_items;
    pool->free_items = item;
}

void *pages_alloc(size_t bytes)
{
    return bytes == 0 ? NULL : map_bytes(bytes);
}

void pages_free(void *start, size_t bytes)
{
    if (start != NULL)
        munmap(start, bytes);
}
