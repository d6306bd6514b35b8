/*
 * A hash table of stacks, chained, that grows by entries alone: the bucket array is sized for the memory
 * limit, and untouched pages of it cost nothing. Readers follow the chains while a writer, of whom there is
 * one at a time, puts finished entries in front. Entries never go away; what they mean is one word, changed
 * in one store.
 */
#include "capture/stack_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define TYPICAL_ENTRY_BYTES 512
#define BUCKETS_MIN         64
#define BUCKETS_MAX         (1u << 20)

/* What python_frame holds, without its padding. 32 bits of the fingerprint do beside the address they belong
 * to. */
struct python_key {
    const void *code;
    uint32_t fingerprint;
    int32_t byte_offset;
};

struct entry {
    struct entry *next;
    uint64_t hash;
    _Atomic uint64_t meaning; /* generation << 32 | id */
    uint32_t native_count, python_count;
    /* python_count python_keys, then native_count addresses */
};

struct stack_table {
    struct arena *arena;
    size_t limit_bytes, used_bytes;
    uint64_t mask;
    _Atomic(struct entry *) buckets[];
};

static struct python_key *python_keys(const struct entry *entry)
{
    return (struct python_key *)(entry + 1);
}

static uintptr_t *native_keys(const struct entry *entry)
{
    return (uintptr_t *)(python_keys(entry) + entry->python_count);
}

struct stack_table *stack_table_create(struct arena *arena, size_t limit_bytes)
{
    size_t buckets = BUCKETS_MIN;
    while (buckets < BUCKETS_MAX && buckets * TYPICAL_ENTRY_BYTES < limit_bytes)
        buckets *= 2;
    size_t bytes = sizeof(struct stack_table) + buckets * sizeof(struct entry *);
    struct stack_table *table = arena_alloc(arena, bytes);
    if (table == NULL)
        return NULL;
    table->arena = arena;
    table->limit_bytes = limit_bytes;
    table->used_bytes = bytes;
    table->mask = buckets - 1;
    return table;
}

static bool equals(const struct entry *entry, const struct raw_stack *stack)
{
    if (entry->hash != stack->hash || entry->native_count != stack->native_count ||
        entry->python_count != stack->python_count)
        return false;
    const struct python_key *keys = python_keys(entry);
    for (uint32_t i = 0; i < stack->python_count; i++)
        if (keys[i].code != stack->python[i].code || keys[i].byte_offset != stack->python[i].byte_offset ||
            keys[i].fingerprint != (uint32_t)stack->python[i].fingerprint)
            return false;
    return stack->native_count == 0 ||
           memcmp(native_keys(entry), stack->native, stack->native_count * sizeof(uintptr_t)) == 0;
}

static struct entry *find(const struct stack_table *table, const struct raw_stack *stack)
{
    struct entry *entry =
        atomic_load_explicit(&table->buckets[stack->hash & table->mask], memory_order_acquire);
    while (entry != NULL && !equals(entry, stack))
        entry = entry->next;
    return entry;
}

uint32_t stack_table_find(const struct stack_table *table, const struct raw_stack *stack, uint32_t generation)
{
    const struct entry *entry = find(table, stack);
    if (entry == NULL)
        return CATALOG_NONE;
    uint64_t meaning = atomic_load_explicit(&entry->meaning, memory_order_acquire);
    return meaning >> 32 == generation ? (uint32_t)meaning : CATALOG_NONE;
}

static struct entry *copy_stack(struct stack_table *table, const struct raw_stack *stack)
{
    size_t bytes = sizeof(struct entry) + stack->python_count * sizeof(struct python_key) +
                   stack->native_count * sizeof(uintptr_t);
    if (table->used_bytes >= table->limit_bytes || bytes > table->limit_bytes - table->used_bytes)
        return NULL;
    struct entry *entry = arena_alloc(table->arena, bytes);
    if (entry == NULL)
        return NULL;
    table->used_bytes += bytes;
    entry->hash = stack->hash;
    entry->native_count = stack->native_count;
    entry->python_count = stack->python_count;
    struct python_key *keys = python_keys(entry);
    for (uint32_t i = 0; i < stack->python_count; i++)
        keys[i] = (struct python_key){stack->python[i].code, (uint32_t)stack->python[i].fingerprint,
                                      stack->python[i].byte_offset};
    if (stack->native_count != 0)
        memcpy(native_keys(entry), stack->native, stack->native_count * sizeof(uintptr_t));
    return entry;
}

void stack_table_add(struct stack_table *table, const struct raw_stack *stack, uint32_t generation,
                     uint32_t id)
{
    uint64_t meaning = (uint64_t)generation << 32 | id;
    struct entry *entry = find(table, stack);
    if (entry != NULL) {
        atomic_store_explicit(&entry->meaning, meaning, memory_order_release);
        return;
    }
    entry = copy_stack(table, stack);
    if (entry == NULL)
        return;
    atomic_init(&entry->meaning, meaning);
    _Atomic(struct entry *) *bucket = &table->buckets[stack->hash & table->mask];
    entry->next = atomic_load_explicit(bucket, memory_order_relaxed);
    atomic_store_explicit(bucket, entry, memory_order_release);
}
