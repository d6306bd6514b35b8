/*
 * A hash table of stacks, chained. Of a stack it keeps 128 bits of hash and not the stack, which would be
 * half of what a site takes: two of a million stacks are one to it with a chance of 1 in 10^26, or 1 in 10^7
 * where they differ in one Python frame alone, before Python 3.12.
 *
 * Readers follow the chains while a writer, of whom there is one at a time, puts finished entries in front.
 * Entries never go away; what they mean is one word, changed in one store. When the buckets become too few,
 * the entries are chained once more, by other links, for a reader may be on the way along these. One that
 * sleeps until its links are used again may miss what it looks for, and sees that the buckets are others.
 */
#include "capture/stack_table.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/hash.h"

#define BUCKETS_MIN 512

struct entry {
    _Atomic(struct entry *) next[2]; /* by struct buckets, `links` */
    uint64_t hash, other_hash;
    _Atomic uint64_t meaning; /* generation << 32 | id */
};

struct buckets {
    uint64_t mask;
    unsigned links;
    _Atomic(struct entry *) first[];
};

struct stack_table {
    struct arena *arena;
    size_t limit_bytes, used_bytes;
    uint64_t count;
    _Atomic(struct buckets *) buckets;
};

static void *take(struct stack_table *table, size_t bytes)
{
    if (bytes > table->limit_bytes - table->used_bytes)
        return NULL;
    void *taken = arena_alloc(table->arena, bytes);
    if (taken != NULL)
        table->used_bytes += bytes;
    return taken;
}

static struct buckets *make_buckets(struct stack_table *table, uint64_t count, unsigned links)
{
    struct buckets *buckets = take(table, sizeof *buckets + count * sizeof *buckets->first);
    if (buckets != NULL) {
        buckets->mask = count - 1;
        buckets->links = links;
    }
    return buckets;
}

struct stack_table *stack_table_create(struct arena *arena, size_t limit_bytes)
{
    struct stack_table *table = arena_alloc(arena, sizeof *table);
    if (table == NULL)
        return NULL;
    table->arena = arena;
    table->limit_bytes = limit_bytes;
    struct buckets *buckets = make_buckets(table, BUCKETS_MIN, 0);
    atomic_init(&table->buckets, buckets);
    return buckets == NULL ? NULL : table;
}

/* Of all that the stack's own hash is of, by other means. In two lanes, which do not wait for each other. */
static uint64_t hash_otherwise(const struct raw_stack *stack)
{
    uint64_t a = stack->native_count, b = stack->python_count;
    for (uint32_t i = 0; i < stack->python_count; i++) {
        const struct python_frame *frame = &stack->python[i];
        a = hash_mix(a ^ (uintptr_t)frame->code);
        b = hash_mix(b ^ frame->fingerprint ^ (uint64_t)(uint32_t)frame->byte_offset << 32);
    }
    uint32_t i = 0;
    for (; i + 2 <= stack->native_count; i += 2) {
        a = hash_mix(a ^ stack->native[i]);
        b = hash_mix(b ^ stack->native[i + 1]);
    }
    if (i < stack->native_count)
        a = hash_mix(a ^ stack->native[i]);
    return hash_mix(a ^ (b << 32 | b >> 32));
}

static void put_in_front(struct buckets *buckets, struct entry *entry)
{
    _Atomic(struct entry *) *first = &buckets->first[entry->hash & buckets->mask];
    atomic_store_explicit(&entry->next[buckets->links], atomic_load_explicit(first, memory_order_relaxed),
                          memory_order_release);
    atomic_store_explicit(first, entry, memory_order_release);
}

static struct entry *find_in(const struct buckets *buckets, uint64_t hash, uint64_t other_hash)
{
    struct entry *entry = atomic_load_explicit(&buckets->first[hash & buckets->mask], memory_order_acquire);
    while (entry != NULL && (entry->hash != hash || entry->other_hash != other_hash))
        entry = atomic_load_explicit(&entry->next[buckets->links], memory_order_acquire);
    return entry;
}

static struct entry *find(const struct stack_table *table, uint64_t hash, uint64_t other_hash)
{
    const struct buckets *buckets = atomic_load_explicit(&table->buckets, memory_order_acquire), *looked_in;
    struct entry *entry;
    do {
        looked_in = buckets;
        entry = find_in(buckets, hash, other_hash);
        buckets = atomic_load_explicit(&table->buckets, memory_order_acquire);
    } while (entry == NULL && buckets != looked_in);
    return entry;
}

uint32_t stack_table_find(const struct stack_table *table, const struct raw_stack *stack, uint32_t generation)
{
    const struct entry *entry = find(table, stack->hash, hash_otherwise(stack));
    if (entry == NULL)
        return CATALOG_NONE;
    uint64_t meaning = atomic_load_explicit(&entry->meaning, memory_order_acquire);
    return meaning >> 32 == generation ? (uint32_t)meaning : CATALOG_NONE;
}

/* Without memory the chains grow longer. */
static void grow(struct stack_table *table, const struct buckets *old)
{
    struct buckets *buckets = make_buckets(table, (old->mask + 1) * 2, 1 - old->links);
    if (buckets == NULL)
        return;
    for (uint64_t i = 0; i <= old->mask; i++) {
        struct entry *entry = atomic_load_explicit(&old->first[i], memory_order_relaxed);
        for (; entry != NULL; entry = atomic_load_explicit(&entry->next[old->links], memory_order_relaxed))
            put_in_front(buckets, entry);
    }
    atomic_store_explicit(&table->buckets, buckets, memory_order_release);
}

void stack_table_add(struct stack_table *table, const struct raw_stack *stack, uint32_t generation,
                     uint32_t id)
{
    uint64_t meaning = (uint64_t)generation << 32 | id, other_hash = hash_otherwise(stack);
    struct entry *entry = find(table, stack->hash, other_hash);
    if (entry != NULL) {
        atomic_store_explicit(&entry->meaning, meaning, memory_order_release);
        return;
    }
    entry = take(table, sizeof *entry);
    if (entry == NULL)
        return;
    entry->hash = stack->hash;
    entry->other_hash = other_hash;
    atomic_init(&entry->meaning, meaning);
    struct buckets *buckets = atomic_load_explicit(&table->buckets, memory_order_relaxed);
    put_in_front(buckets, entry);
    if (++table->count > buckets->mask)
        grow(table, buckets);
}
