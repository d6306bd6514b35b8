/* The minima of a site's living bytes, cell by cell (history.h). */
#include "ledger/history.h"

#include <stddef.h>
#include <string.h>

static uint64_t lesser(uint64_t left, uint64_t right)
{
    return left < right ? left : right;
}

void history_begin(struct history *history, uint64_t origin_ns, uint64_t live)
{
    history->origin_ns = origin_ns;
    history->width_log2 = HISTORY_WIDTH_LOG2;
    history->last = 0;
    history->floors[0] = live;
}

void history_copy(struct history *to, const struct history *from)
{
    memcpy(to, from, offsetof(struct history, floors) + (from->last + 1u) * sizeof *from->floors);
}

/* Cells twice as wide. The newest one may be half of a cell that is not over: what is noted next is in it. */
static void merge_pairs(struct history *history)
{
    for (uint32_t i = 0; i <= history->last; i += 2) {
        uint64_t floor = history->floors[i];
        history->floors[i / 2] = i < history->last ? lesser(floor, history->floors[i + 1]) : floor;
    }
    history->last /= 2;
    history->width_log2++;
}

void history_note(struct history *history, uint64_t time_ns, uint64_t before, uint64_t after)
{
    uint64_t age = time_ns > history->origin_ns ? time_ns - history->origin_ns : 0;
    while (age >> history->width_log2 >= HISTORY_CELLS)
        merge_pairs(history);
    uint32_t cell = (uint32_t)(age >> history->width_log2);
    while (history->last < cell)
        history->floors[++history->last] = before;
    history->floors[history->last] = lesser(history->floors[history->last], after);
}
