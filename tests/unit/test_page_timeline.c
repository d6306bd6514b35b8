/*
 * The page's timeline against a list of everything: after each of thousands of random events what every site
 * holds is written down, and at the end every stretch must have the moments that this list says it had.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "happenings.h"
#include "report/page/timeline.h"

#define EVENTS_COUNT 4000

/* After an event. */
struct entry {
    uint64_t time_ns;
    uint64_t newest_ns; /* the latest time so far: an earlier event counts for that one's stretch */
    uint64_t bytes[HAPPENINGS_SITES];
};

struct run {
    struct trace_books books;
    struct recording recording; /* the same catalog, and a ledger that is one event behind */
    struct happenings happenings;
    struct timeline *timeline;
    size_t count;
    struct entry entries[EVENTS_COUNT + 1]; /* the first: before anything */
};

static struct run run;

static void note(struct entry *entry, const struct entry *before, const struct event *event)
{
    entry->time_ns = event->time_ns;
    entry->newest_ns = event->time_ns > before->newest_ns ? event->time_ns : before->newest_ns;
    for (uint32_t i = 0; i < HAPPENINGS_SITES; i++)
        entry->bytes[i] = ledger_site(run.recording.ledger, run.happenings.sites[i]).totals.live_bytes;
}

static void start(uint64_t seed)
{
    memset(&run, 0, sizeof run);
    trace_books_open(&run.books, NULL);
    happenings_start(&run.happenings, &run.books, seed);
    run.recording.catalog = run.books.catalog;
    run.recording.ledger = ledger_create(&run.recording.arena, run.books.catalog);
    run.timeline = timeline_create();
    assert_non_null(run.recording.ledger);
    assert_non_null(run.timeline);
}

static void go_on(size_t events, uint64_t pause_ns)
{
    for (size_t i = 0; i < events; i++) {
        struct event event;
        struct block ended;
        happenings_next(&run.happenings, &event, &ended);
        run.happenings.time_ns += pause_ns;
        timeline_see(&run.recording, &event, run.timeline);
        ledger_apply(run.recording.ledger, &event, NULL);
        run.count++;
        note(&run.entries[run.count], &run.entries[run.count - 1], &event);
    }
    run.recording.process.duration_ns = run.entries[run.count].newest_ns;
}

static void finish(void)
{
    timeline_destroy(run.timeline);
    ledger_destroy(run.recording.ledger);
    arena_release(&run.recording.arena);
    trace_books_close(&run.books);
}

static bool is_in(const struct timeline_space *space, uint32_t site)
{
    const struct site_key *key = catalog_site(run.books.catalog, run.happenings.sites[site]);
    return family_infos[key->family].layer == space->layer && (enum space_kind)key->space == space->kind &&
           key->device == space->device;
}

static uint64_t total(const struct timeline_space *space, size_t entry)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < HAPPENINGS_SITES; i++)
        bytes += is_in(space, i) ? run.entries[entry].bytes[i] : 0;
    return bytes;
}

static bool changed(const struct timeline_space *space, size_t entry)
{
    for (uint32_t i = 0; i < HAPPENINGS_SITES; i++)
        if (is_in(space, i) && run.entries[entry].bytes[i] != run.entries[entry - 1].bytes[i])
            return true;
    return false;
}

static uint64_t cell_of(size_t entry)
{
    return (run.entries[entry].newest_ns - timeline_origin_ns(run.timeline)) /
           timeline_width_ns(run.timeline);
}

static void expect_moment(const struct timeline_space *space, const struct moment *moment, size_t entry)
{
    uint32_t holders = 0;
    assert_non_null(moment);
    assert_int_equal(moment->time_ns, run.entries[entry].time_ns);
    assert_int_equal(moment->bytes, total(space, entry));
    for (uint32_t i = 0; i < HAPPENINGS_SITES; i++)
        holders += is_in(space, i) && run.entries[entry].bytes[i] > 0;
    assert_int_equal(moment->count, holders);
    for (uint32_t i = 0; i < moment->count; i++) {
        uint32_t site = 0;
        while (run.happenings.sites[site] != moment->shares[i].site)
            site++;
        assert_true(is_in(space, site));
        assert_int_equal(moment->shares[i].bytes, run.entries[entry].bytes[site]);
        assert_true(i == 0 || moment->shares[i].bytes <= moment->shares[i - 1].bytes);
    }
}

static void expect_stretch(const struct timeline_space *space, uint32_t cell)
{
    const struct stretch *stretch = &space->stretches[cell];
    size_t fullest = 0, last = 0;
    uint64_t least = 0;
    for (size_t i = 1; i <= run.count; i++) {
        if (cell_of(i) != cell || !changed(space, i))
            continue;
        if (last == 0)
            least = total(space, i - 1);
        least = total(space, i) < least ? total(space, i) : least;
        if (fullest == 0 || total(space, i) > total(space, fullest))
            fullest = i;
        last = i;
    }
    if (last == 0) {
        assert_null(stretch->fullest);
        assert_null(stretch->last);
        return;
    }
    expect_moment(space, stretch->fullest, fullest);
    expect_moment(space, stretch->last, last);
    assert_int_equal(stretch->least_bytes, least);
}

static void expect_all(void)
{
    const struct timeline_space *space;
    uint32_t spaces = 0;
    timeline_finish(run.timeline, &run.recording);
    assert_false(timeline_is_incomplete(run.timeline));
    assert_int_equal(timeline_cell_count(run.timeline), cell_of(run.count) + 1);
    for (; (space = timeline_space(run.timeline, spaces)); spaces++)
        for (uint32_t cell = 0; cell < TIMELINE_CELLS; cell++)
            expect_stretch(space, cell);
    assert_true(spaces >= 6);
}

static void test_every_stretch_has_its_fullest_and_its_last_moment(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        start(seed);
        go_on(EVENTS_COUNT, 0);
        expect_all();
        finish();
    }
}

/* A long pause merges everything before it into few stretches. */
static void test_pauses_merge_stretches_and_lose_no_moment(void **state)
{
    (void)state;
    for (uint64_t seed = 10; seed < 13; seed++) {
        start(seed);
        go_on(500, 0);
        go_on(20, UINT64_C(3600) * 1000000000);
        go_on(500, 0);
        expect_all();
        finish();
    }
}

static const struct moment *fullest_of(const struct timeline_space *space)
{
    const struct moment *fullest = NULL;
    for (uint32_t cell = 0; cell < TIMELINE_CELLS; cell++) {
        const struct moment *moment = space->stretches[cell].fullest;
        if (moment && (!fullest || moment->bytes > fullest->bytes))
            fullest = moment;
    }
    return fullest;
}

static void test_the_peak_is_the_ledgers(void **state)
{
    (void)state;
    start(21);
    go_on(EVENTS_COUNT, 1000);
    timeline_finish(run.timeline, &run.recording);
    for (size_t i = 0; i < ledger_space_count(run.recording.ledger); i++) {
        const struct ledger_space *known = ledger_space(run.recording.ledger, i);
        const struct timeline_space *space;
        uint32_t number = 0;
        while ((space = timeline_space(run.timeline, number)) &&
               (space->layer != known->layer || space->kind != known->kind || space->device != known->device))
            number++;
        if (known->totals.peak_bytes == 0)
            continue;
        assert_non_null(space);
        assert_int_equal(fullest_of(space)->bytes, known->totals.peak_bytes);
        assert_int_equal(fullest_of(space)->time_ns, known->totals.peak_time_ns);
    }
    finish();
}

/* The reader begins anew when a process overwrote what was being read. */
static void test_a_null_event_forgets_everything(void **state)
{
    (void)state;
    start(30);
    go_on(300, 0);
    timeline_see(&run.recording, NULL, run.timeline);
    assert_null(timeline_space(run.timeline, 0));
    finish();
}

/* A recording that begins in the middle: what is alive then is there from its first moment. */
static void test_what_was_alive_before_the_recording_begins_is_in_it(void **state)
{
    (void)state;
    start(40);
    struct event event;
    struct block ended;
    for (int i = 0; i < 200; i++) {
        happenings_next(&run.happenings, &event, &ended);
        ledger_apply(run.recording.ledger, &event, NULL);
    }
    run.recording.events_since_ns = event.time_ns;
    note(&run.entries[0], &run.entries[0], &event);
    go_on(200, 0);
    timeline_finish(run.timeline, &run.recording);
    assert_int_equal(timeline_origin_ns(run.timeline), run.recording.events_since_ns);
    const struct timeline_space *space;
    for (uint32_t i = 0; (space = timeline_space(run.timeline, i)); i++) {
        uint64_t most = 0;
        for (size_t k = 0; k <= run.count; k++)
            most = total(space, k) > most ? total(space, k) : most;
        assert_int_equal(fullest_of(space)->bytes, most);
    }
    finish();
}

static void happen(const struct event *event)
{
    timeline_see(&run.recording, event, run.timeline);
    assert_true(ledger_apply(run.recording.ledger, event, NULL));
    run.recording.process.duration_ns = event->time_ns;
}

/* Every stretch that the phase was open in, at any time of it. */
static void expect_open(uint32_t number, const uint64_t (*periods)[2], size_t count)
{
    const struct timeline_phase *phase = timeline_phase(run.timeline, number);
    uint64_t width = timeline_width_ns(run.timeline);
    assert_non_null(phase);
    assert_int_equal(phase->number, number);
    for (uint64_t cell = 0; cell < TIMELINE_CELLS; cell++) {
        bool open = false;
        for (size_t i = 0; i < count; i++)
            open |= cell >= periods[i][0] / width && cell <= periods[i][1] / width;
        assert_int_equal(phase->cells[cell / 64] >> cell % 64 & 1, open);
    }
}

static void test_phases_are_open_where_they_were(void **state)
{
    (void)state;
    /* Of one range inside another of the same name, the outer counts; the last one never ends. */
    static const struct {
        uint64_t us;
        enum event_type type;
        const char *name;
        uint32_t range;
    } steps[] = {
        {5, EVENT_PHASE_BEGIN, "epoch", 1},  {20, EVENT_PHASE_BEGIN, "step", 2},
        {25, EVENT_PHASE_END, "", 2},        {100, EVENT_PHASE_BEGIN, "epoch", 3},
        {300, EVENT_PHASE_END, "", 3},       {400, EVENT_PHASE_END, "", 1},
        {500, EVENT_PHASE_BEGIN, "step", 4}, {501, EVENT_PHASE_END, "", 4},
        {600, EVENT_PHASE_BEGIN, "step", 5},
    };
    static const uint64_t epochs[][2] = {{5000, 400000}};
    for (uint64_t pause_us = 0; pause_us < 100000;
         pause_us = 10 * pause_us + 99) { /* without and with merges */
        start(50);
        for (size_t i = 0; i < COUNT_OF(steps); i++) {
            struct event event = {
                .type = steps[i].type, .range = steps[i].range, .time_ns = steps[i].us * 1000};
            event.name = trace_books_text(&run.books, steps[i].name);
            happen(&event);
        }
        uint64_t end = (600 + pause_us) * 1000;
        happen(&(struct event){.type = EVENT_STEP, .size = 1, .time_ns = end});
        const uint64_t steps_open[][2] = {{20000, 25000}, {500000, 501000}, {600000, end}};
        timeline_finish(run.timeline, &run.recording);
        expect_open(0, epochs, COUNT_OF(epochs));
        expect_open(1, steps_open, COUNT_OF(steps_open));
        assert_null(timeline_phase(run.timeline, 2));
        finish();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_stretch_has_its_fullest_and_its_last_moment),
        cmocka_unit_test(test_pauses_merge_stretches_and_lose_no_moment),
        cmocka_unit_test(test_the_peak_is_the_ledgers),
        cmocka_unit_test(test_a_null_event_forgets_everything),
        cmocka_unit_test(test_what_was_alive_before_the_recording_begins_is_in_it),
        cmocka_unit_test(test_phases_are_open_where_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
