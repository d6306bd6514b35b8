/* Sorted address ranges; see range_list.h. */
#include "symbols/range_list.h"

#include <string.h>

#include "base/sort.h"

/* How many ranges that start before an address, but end before it too, are passed over. */
#define NESTED_MAX 64

bool range_list_reserve(struct range_list *list, struct arena *arena, size_t count)
{
    struct range *ranges =
        count <= SIZE_MAX / sizeof(*ranges) ? arena_alloc(arena, count * sizeof(*ranges)) : NULL;
    if (!ranges)
        return false;
    if (list->count > 0)
        memcpy(ranges, list->ranges, list->count * sizeof(*ranges));
    list->ranges = ranges;
    list->room = count;
    return true;
}

void range_list_add(struct range_list *list, struct arena *arena, uint64_t start, uint64_t end, uint32_t id)
{
    if (start >= end)
        return;
    if (list->count == list->room && !range_list_reserve(list, arena, list->room ? list->room * 2 : 256))
        return;
    list->ranges[list->count++] = (struct range){start, end, id};
}

static int by_start(const void *a, const void *b, const void *context)
{
    const struct range *x = a, *y = b;
    (void)context;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end; /* the inner one last */
}

bool range_list_sort(struct range_list *list)
{
    if (sort_items(list->ranges, list->count, sizeof(*list->ranges), by_start, NULL))
        return true;
    list->count = 0;
    return false;
}

/* Ends at `end` every piece that is open and must be by then, the innermost first; returns how many stay
 * open. */
static size_t close_pieces(struct range_list *flat, struct arena *arena, const struct range **open,
                           size_t count, uint64_t *at, uint64_t end)
{
    while (count > 0 && *at < end) {
        const struct range *inner = open[count - 1];
        uint64_t until = inner->end < end ? inner->end : end;
        if (*at < until) {
            range_list_add(flat, arena, *at, until, inner->id);
            *at = until;
        }
        if (inner->end > end)
            break;
        count--;
    }
    return count;
}

bool range_list_flatten(struct range_list *list, struct arena *arena)
{
    struct range_list flat = {0};
    size_t open_bytes = list->count * sizeof(struct range *), count = 0;
    uint64_t at = 0;
    if (list->count == 0)
        return true;
    const struct range **open = range_list_sort(list) ? pages_alloc(open_bytes) : NULL;
    if (!open || !range_list_reserve(&flat, arena, 2 * list->count)) {
        if (open)
            pages_free(open, open_bytes);
        list->count = 0;
        return false;
    }
    for (size_t i = 0; i < list->count; i++) {
        count = close_pieces(&flat, arena, open, count, &at, list->ranges[i].start);
        at = list->ranges[i].start;
        open[count++] = &list->ranges[i];
    }
    close_pieces(&flat, arena, open, count, &at, UINT64_MAX);
    pages_free(open, open_bytes);
    *list = flat;
    return true;
}

const struct range *range_list_find(const struct range_list *list, uint64_t address)
{
    size_t low = 0, high = list->count; /* the first range that starts after the address */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i > 0 && low - i < NESTED_MAX; i--)
        if (address < list->ranges[i - 1].end)
            return &list->ranges[i - 1];
    return NULL;
}
