/*
 * Sites' histories (history.h), each in memory for a power of two of cells: most sites of a program that has
 * many are done with after a moment, and a whole history is half of what a site takes.
 */
#include <stddef.h>

#include "ledger/internal.h"

#define ROOM_MIN 4
_Static_assert(ROOM_MIN << (HISTORY_ROOMS - 1) == HISTORY_CELLS, "the largest is whole");

static size_t bytes_of(uint32_t room)
{
    return offsetof(struct history, floors) + room * sizeof(uint64_t);
}

static struct pool *pool_of(struct ledger *ledger, uint32_t room)
{
    return &ledger->histories[__builtin_ctz(room / ROOM_MIN)];
}

void histories_init(struct ledger *ledger)
{
    for (uint32_t i = 0; i < HISTORY_ROOMS; i++)
        pool_init(&ledger->histories[i], ledger->arena, bytes_of(ROOM_MIN << i));
}

/* Room for cell number `last`. */
static struct history *get(struct ledger *ledger, uint64_t last)
{
    uint32_t room = ROOM_MIN;
    while (room <= last && room < HISTORY_CELLS)
        room *= 2;
    struct history *history = pool_get(pool_of(ledger, room));
    if (history != NULL)
        history->room = (uint16_t)room;
    return history;
}

static void copy(struct history *to, const struct history *from)
{
    uint16_t room = to->room;
    history_copy(to, from);
    to->room = room;
}

void histories_first(const struct site_record *site, struct history *history)
{
    history_begin(history, site->first_time_ns, site->totals.peak_bytes);
    if (site->ended_ns > 0)
        history_note(history, site->ended_ns, site->totals.peak_bytes, 0);
}

bool histories_restore(struct ledger *ledger, struct site_record *site, const struct history *history)
{
    site->history = get(ledger, history->last);
    if (site->history != NULL)
        copy(site->history, history);
    return site->history != NULL;
}

void histories_begin(struct ledger *ledger, struct site_record *site)
{
    struct history first;
    histories_first(site, &first);
    histories_restore(ledger, site, &first);
}

static void make_room(struct ledger *ledger, struct site_record *site, uint64_t last)
{
    struct history *old = site->history;
    site->history = get(ledger, last);
    if (site->history != NULL)
        copy(site->history, old);
    pool_put(pool_of(ledger, old->room), old);
}

void histories_note(struct ledger *ledger, struct site_record *site, uint64_t time_ns, uint64_t before,
                    uint64_t after)
{
    const struct history *history = site->history;
    uint64_t age = time_ns > history->origin_ns ? time_ns - history->origin_ns : 0;
    if (history->room < HISTORY_CELLS && age >> history->width_log2 >= history->room)
        make_room(ledger, site, age >> history->width_log2);
    if (site->history != NULL)
        history_note(site->history, time_ns, before, after);
}
