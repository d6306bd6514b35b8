/* In which stretches of a timeline (timeline.h) each phase of the program was open: a bit for each. */
#include "report/page/timeline_types.h"

static void mark(struct followed_phase *phase, uint32_t first, uint32_t last)
{
    for (uint32_t cell = first; cell <= last; cell++)
        phase->is.cells[cell / 64] |= UINT64_C(1) << cell % 64;
}

/* O(phases); there are at most PHASES_MAX, and mostly a handful. */
void timeline_ask_phases(struct timeline *timeline, const struct ledger *ledger, uint64_t time_ns)
{
    timeline_advance(timeline, time_ns);
    for (uint32_t i = 0; i < ledger_phase_count(ledger); i++) {
        struct followed_phase *phase = list_reach(&timeline->phases, i);
        if (!phase) {
            timeline->incomplete = true;
            return;
        }
        bool is_open = ledger_phase(ledger, i).open > 0;
        phase->is.number = i;
        if (is_open && !phase->is_open)
            phase->since = timeline->cell;
        if (is_open != phase->is_open)
            mark(phase, phase->since, timeline->cell);
        phase->is_open = is_open;
    }
}

void timeline_mark_phases(struct timeline *timeline)
{
    for (uint32_t i = 0; i < timeline->phases.count; i++) {
        struct followed_phase *phase = list_at(&timeline->phases, i);
        if (phase->is_open)
            mark(phase, phase->since, timeline->cell);
    }
}

void timeline_merge_phases(struct timeline *timeline)
{
    for (uint32_t i = 0; i < timeline->phases.count; i++) {
        struct followed_phase *phase = list_at(&timeline->phases, i);
        for (uint32_t cell = 0; cell < TIMELINE_CELLS; cell++) {
            uint64_t bit = phase->is.cells[cell / 64] >> cell % 64 & 1;
            phase->is.cells[cell / 64] &= ~(UINT64_C(1) << cell % 64);
            phase->is.cells[cell / 2 / 64] |= bit << cell / 2 % 64;
        }
        phase->since /= 2;
    }
}
