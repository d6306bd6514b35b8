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

static void add(struct range_list *list, struct arena *arena, struct range range)
{
    if (range.start >= range.end)
        return;
    if (list->count == list->room && !range_list_reserve(list, arena, list->room ? list->room * 2 : 256))
        return;
    list->ranges[list->count++] = range;
}

void range_list_add(struct range_list *list, struct arena *arena, uint64_t start, uint64_t end, uint32_t id)
{
    add(list, arena, (struct range){.start = start, .end = end, .id = id});
}

void range_list_add_open(struct range_list *list, struct arena *arena, uint64_t start, uint64_t limit,
                         uint32_t id)
{
    add(list, arena, (struct range){.start = start, .end = limit, .id = id, .open = true});
}

static int by_start(const void *a, const void *b, const void *context)
{
    const struct range *x = a, *y = b;
    (void)context;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end; /* the inner one last */
}

/* Where the ranges behind number `i` that start there too end: another start, or the list. Tells whether one
 * of them has an end of its own. */
static size_t same_start(const struct range_list *list, size_t i, bool *has_end)
{
    size_t end = i;
    *has_end = false;
    for (; end < list->count && list->ranges[end].start == list->ranges[i].start; end++)
        *has_end |= !list->ranges[end].open;
    return end;
}

/* Gives open ranges their ends, and leaves out those that start where another range is. */
static void close_ranges(struct range_list *list)
{
    size_t kept = 0, end;
    uint64_t covered = 0; /* by ranges with an end of their own */
    for (size_t i = 0; i < list->count; i = end) {
        bool has_end;
        end = same_start(list, i, &has_end);
        bool hidden = has_end || list->ranges[i].start < covered;
        for (size_t k = i; k < end; k++) {
            struct range range = list->ranges[k];
            if (range.open && hidden)
                continue;
            if (range.open && end < list->count && list->ranges[end].start < range.end)
                range.end = list->ranges[end].start;
            if (!range.open && range.end > covered)
                covered = range.end;
            list->ranges[kept++] = range;
        }
    }
    list->count = kept;
}

bool range_list_sort(struct range_list *list)
{
    if (sort_items(list->ranges, list->count, sizeof(*list->ranges), by_start, NULL)) {
        close_ranges(list);
        return true;
    }
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
