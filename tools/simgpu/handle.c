/*
 * The handles that live: a set of their addresses, so that a handle which is stale, foreign or garbage is
 * told apart without reading what it points to. Freed objects go to lists by size and come back first, as a
 * real driver's do.
 */
#include "simgpu.h"

#include <stdlib.h>

#define FIRST_SIZE   1024
#define SIZE_CLASSES 64 /* of 32 bytes each */
#define CLASS_BYTES  32

static struct {
    struct handle **slots;
    size_t size, used; /* size is a power of two */
} live;
static struct slab slabs[SIZE_CLASSES];

static size_t home_of(const void *object)
{
    return (size_t)(((uint64_t)object >> 4) * 0x9e3779b97f4a7c15ull >> 20) & (live.size - 1);
}

static void insert(struct handle *handle)
{
    size_t at = home_of(handle);
    while (live.slots[at])
        at = (at + 1) & (live.size - 1);
    live.slots[at] = handle;
}

static bool grow(void)
{
    struct handle **old = live.slots;
    size_t old_size = live.size, size = old_size ? old_size * 2 : FIRST_SIZE;
    struct handle **slots = calloc(size, sizeof *slots);
    if (!slots)
        return false;
    live.slots = slots;
    live.size = size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i])
            insert(old[i]);
    free(old);
    return true;
}

/* Where it stands in the set, or the empty slot that ended the search. */
static size_t place_of(const void *object)
{
    size_t at = home_of(object);
    while (live.slots[at] && live.slots[at] != object)
        at = (at + 1) & (live.size - 1);
    return at;
}

static void forget(const void *object)
{
    size_t hole = place_of(object), mask = live.size - 1;
    for (size_t at = (hole + 1) & mask; live.slots[at]; at = (at + 1) & mask) {
        /* An entry moves into the hole unless its home lies after the hole. */
        if (((at - home_of(live.slots[at])) & mask) >= ((at - hole) & mask)) {
            live.slots[hole] = live.slots[at];
            hole = at;
        }
    }
    live.slots[hole] = NULL;
    live.used--;
}

static struct slab *slab_of(size_t size)
{
    struct slab *slab = &slabs[(size - 1) / CLASS_BYTES];
    slab->size = ((size - 1) / CLASS_BYTES + 1) * CLASS_BYTES;
    return slab;
}

void *handle_new(enum handle_type type, size_t size, struct context *context)
{
    if (live.used * 2 >= live.size && !grow())
        return NULL;
    bool small = size <= (size_t)SIZE_CLASSES * CLASS_BYTES;
    struct handle *handle = small ? slab_take(slab_of(size)) : calloc(1, size);
    if (!handle)
        return NULL;
    handle->type = type;
    handle->context = context;
    if (context) {
        handle->next = context->handles;
        handle->before = &context->handles;
        if (handle->next)
            handle->next->before = &handle->next;
        context->handles = handle;
    }
    insert(handle);
    live.used++;
    return handle;
}

void *handle_get(const void *object, enum handle_type type)
{
    if (!live.size || !object)
        return NULL;
    struct handle *handle = live.slots[place_of(object)];
    return handle && handle->type == type ? handle : NULL;
}

void handle_end(void *object, size_t size)
{
    struct handle *handle = object;
    if (handle->before) {
        *handle->before = handle->next;
        if (handle->next)
            handle->next->before = handle->before;
    }
    forget(handle);
    if (size <= (size_t)SIZE_CLASSES * CLASS_BYTES)
        slab_give(slab_of(size), handle);
    else
        free(handle);
}
