/* In which stretches of a timeline (timeline.h) each phase of the program was open: a bit for each. */
#include "report/page/timeline_types.h"

static void mark(struct followed_phase *phase, uint32_t first, uint32_t last)
{
    for (uint32_t cell = first; cell <= last; cell++)
        phase->is.cells[cell / 64] |= UINT64_C(1) << cell % 64;
}

static void ask(struct timeline *timeline, const struct ledger *ledger, struct followed_phase *phase)
{
    bool is_open = ledger_phase(ledger, phase->is.number).open > 0;
    if (is_open && !phase->is_open)
        phase->since = timeline->cell;
    if (is_open != phase->is_open)
        mark(phase, phase->since, timeline->cell);
    phase->is_open = is_open;
}

static void add_new_ones(struct timeline *timeline, const struct ledger *ledger)
{
    for (uint32_t i = timeline->phases.count; i < ledger_phase_count(ledger); i++) {
        struct followed_phase *phase = list_reach(&timeline->phases, i);
        if (!phase) {
            timeline->incomplete = true;
            return;
        }
        phase->is.number = i;
        phase->name = ledger_phase(ledger, i).name;
    }
}

void timeline_ask_all_phases(struct timeline *timeline, const struct ledger *ledger)
{
    add_new_ones(timeline, ledger);
    for (uint32_t i = 0; i < timeline->phases.count; i++)
        ask(timeline, ledger, list_at(&timeline->phases, i));
}

/* A beginning names its phase, an end only its range. */
void timeline_ask_phases(struct timeline *timeline, const struct ledger *ledger)
{
    const struct event *event = &timeline->event;
    add_new_ones(timeline, ledger);
    for (uint32_t i = 0; i < timeline->phases.count; i++) {
        struct followed_phase *phase = list_at(&timeline->phases, i);
        if (event->type == EVENT_PHASE_BEGIN ? phase->name == event->name : phase->is_open)
            ask(timeline, ledger, phase);
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
