/*
 * Small numbers for context handles (recorder.h), so that a block can say whose end takes it along. Looking a
 * known handle up takes no lock; there are a handful of them in a process.
 */
#include "preload/recorder.h"
#include "preload/state.h"

static struct context_slot *find_slot(const void *context)
{
    uint32_t slots = atomic_load_explicit(&preload.context_slots, memory_order_acquire);
    for (uint32_t i = 0; i < slots; i++) {
        if (atomic_load_explicit(&preload.contexts[i].handle, memory_order_acquire) == context)
            return &preload.contexts[i];
    }
    return NULL;
}

/* Under the lock: a slot given back by an ended context, else a new one; NULL when all are in use. */
static struct context_slot *free_slot(void)
{
    struct context_slot *slot = find_slot(NULL);
    uint32_t slots = atomic_load_explicit(&preload.context_slots, memory_order_relaxed);
    if (slot != NULL || slots == CONTEXTS_MAX)
        return slot;
    atomic_store_explicit(&preload.contexts[slots].handle, NULL, memory_order_relaxed);
    atomic_store_explicit(&preload.context_slots, slots + 1, memory_order_release);
    return &preload.contexts[slots];
}

/* The handle's slot, with that number or (0) a new one where it has none. */
static struct context_slot *reach_slot(const void *context, uint32_t number)
{
    struct context_slot *slot = find_slot(context);
    if (slot != NULL || !preload_lock())
        return slot;
    slot = find_slot(context);
    if (slot == NULL && (slot = free_slot()) != NULL) {
        atomic_store_explicit(&slot->id, number != 0 ? number : ++preload.context_count,
                              memory_order_relaxed);
        atomic_store_explicit(&slot->handle, context, memory_order_release);
    }
    preload_unlock();
    return slot;
}

uint32_t recorder_context(const void *context)
{
    const struct context_slot *slot = context == NULL ? NULL : reach_slot(context, 0);
    return slot == NULL ? 0 : atomic_load_explicit(&slot->id, memory_order_relaxed);
}

uint32_t recorder_context_parts(const void *context)
{
    struct context_slot *slot = context == NULL ? NULL : find_slot(context);
    if (slot == NULL)
        return 0;
    uint32_t id = atomic_load_explicit(&slot->id, memory_order_relaxed);
    atomic_store_explicit(&slot->handle, NULL, memory_order_release);
    return id;
}

void recorder_context_stays(const void *context, uint32_t number)
{
    struct context_slot *slot = number == 0 ? NULL : reach_slot(context, number);
    if (slot != NULL)
        atomic_store_explicit(&slot->id, number, memory_order_relaxed);
}
