/* Address ranges with a number each, to be searched by address. Ranges may nest; some may have an unknown
 * end. No malloc. */
#ifndef SYMBOLS_RANGE_LIST_H
#define SYMBOLS_RANGE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct range {
    uint64_t start, end; /* [start, end) */
    uint32_t id;
    bool open; /* `end` is a limit: it ends where the next one starts */
};

struct range_list {
    struct range *ranges;
    size_t count, room;
};

/* Room for `count` ranges at once; pages that stay unused cost nothing. False when there is no memory. */
bool range_list_reserve(struct range_list *list, struct arena *arena, size_t count);
/* Leaves out what is empty, and what there is no memory for. */
void range_list_add(struct range_list *list, struct arena *arena, uint64_t start, uint64_t end, uint32_t id);
/* A range whose end is unknown, though at most `limit`: it is only there for addresses that no other range
 * has from its start on. */
void range_list_add_open(struct range_list *list, struct arena *arena, uint64_t start, uint64_t limit,
                         uint32_t id);
/* Once, between the last addition and the first search. False when there is no memory: search nothing then.
 */
bool range_list_sort(struct range_list *list);
/* The same, and cuts ranges that nest into pieces that do not: each address keeps the range that started
 * last, so that however many there are, one comparison finds it. For ranges equal in all, the one that was
 * added last. Not for open ones. */
bool range_list_flatten(struct range_list *list, struct arena *arena);
/* The range that holds `address` and starts last; NULL when none does. */
const struct range *range_list_find(const struct range_list *list, uint64_t address);

#endif
