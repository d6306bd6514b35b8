/*
 * From a captured stack to its number. The look-up of a stack seen before takes no lock; a new one is added
 * under the caller's. What an entry means can change when modules were unloaded: it is then handed out again
 * as unknown, once.
 */
#ifndef CAPTURE_STACK_TABLE_H
#define CAPTURE_STACK_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "capture/capture.h"

struct stack_table;

/* At most `limit_bytes` of `arena` are used; stacks beyond that are never remembered and cost the cold path
 * each. */
struct stack_table *stack_table_create(struct arena *arena, size_t limit_bytes);

/* The catalog's stack id, or CATALOG_NONE. No lock needed. */
uint32_t stack_table_find(const struct stack_table *table, const struct raw_stack *stack,
                          uint32_t generation);
/* Remembers `id` for `stack`; under the lock that covers the table. */
void stack_table_add(struct stack_table *table, const struct raw_stack *stack, uint32_t generation,
                     uint32_t id);

#endif
