/* Phases and steps in the ledger: small examples by arithmetic, and random programs against a second, slow
 * bookkeeping; also across a ledger that is saved and restored in the middle. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "books.h"
#include "ledger/state.h"

#define MIB (UINT64_C(1) << 20)

static struct trace_books books;
static uint64_t now_ns;

static int set_up(void **state)
{
    now_ns = 0;
    trace_books_open(&books, NULL);
    *state = &books;
    return 0;
}

static int tear_down(void **state)
{
    trace_books_close(*state);
    return 0;
}

static void happen(struct event event)
{
    event.time_ns = now_ns += 10;
    trace_books_apply(&books, &event, NULL);
}

static void begin(const char *name, uint32_t range)
{
    happen((struct event){.type = EVENT_PHASE_BEGIN, .name = trace_books_text(&books, name), .range = range});
}

static void end(uint32_t range)
{
    happen((struct event){.type = EVENT_PHASE_END, .range = range});
}

static void allocate(uint32_t site, uint64_t number, uint64_t size)
{
    happen((struct event){
        .type = EVENT_ALLOC, .site = site, .key = block_key(KEY_ADDRESS, number), .size = size});
}

static void release(uint64_t number)
{
    happen((struct event){.type = EVENT_FREE, .key = block_key(KEY_ADDRESS, number)});
}

static struct program_phase phase_called(const char *name)
{
    uint32_t string = trace_books_text(&books, name);
    for (size_t i = 0; i < ledger_phase_count(books.ledger); i++)
        if (ledger_phase(books.ledger, i).name == string)
            return ledger_phase(books.ledger, i);
    fail_msg("no phase %s", name);
    return (struct program_phase){0};
}

static void expect(const char *name, uint64_t ranges, uint64_t peak, int64_t net)
{
    struct program_phase phase = phase_called(name);
    assert_int_equal(phase.ranges, ranges);
    assert_int_equal(phase.layers[LAYER_DRIVER].peak_bytes, peak);
    assert_int_equal(phase.layers[LAYER_DRIVER].net_bytes, net);
}

static void test_a_phase_has_the_peak_while_it_lasts_and_what_it_left(void **state)
{
    (void)state;
    uint32_t site = trace_books_site(&books, 1, FAMILY_PLAIN, SPACE_DEVICE, 0);
    uint32_t other = trace_books_site(&books, 2, FAMILY_PLAIN, SPACE_DEVICE, 1);
    allocate(site, 1, 10 * MIB);
    begin("epoch", 1);
    begin("forward", 2);
    allocate(site, 2, 5 * MIB);
    allocate(other, 3, 3 * MIB); /* of another device: all count */
    release(2);
    end(2);
    begin("backward", 3);
    release(1);
    end(3);
    allocate(site, 4, MIB);
    end(1);
    allocate(site, 5, 100 * MIB); /* after all of them */
    expect("epoch", 1, 18 * MIB, -6 * (int64_t)MIB);
    expect("forward", 1, 18 * MIB, 3 * MIB);
    expect("backward", 1, 13 * MIB, -10 * (int64_t)MIB);
    assert_int_equal(phase_called("epoch").parent, PHASE_NONE);
    assert_int_equal(ledger_phase(books.ledger, phase_called("backward").parent).name,
                     phase_called("epoch").name);
    assert_int_equal(phase_called("forward").time_ns, 40); /* four events after its beginning */
}

static void test_ranges_of_one_name_at_once_are_one_period(void **state)
{
    (void)state;
    uint32_t site = trace_books_site(&books, 1, FAMILY_PLAIN, SPACE_DEVICE, 0);
    begin("load", 1); /* of two threads */
    allocate(site, 1, 2 * MIB);
    begin("load", 2);
    allocate(site, 2, 3 * MIB);
    end(1);
    allocate(site, 3, 4 * MIB);
    assert_int_equal(phase_called("load").open, 1);
    expect("load", 2, 9 * MIB, 9 * MIB); /* so far */
    end(2);
    expect("load", 2, 9 * MIB, 9 * MIB);
    assert_int_equal(phase_called("load").periods, 1);
    end(2); /* a second time, and one never begun */
    end(77);
    expect("load", 2, 9 * MIB, 9 * MIB);
}

static void test_only_device_memory_is_in_a_phase_by_layer(void **state)
{
    (void)state;
    uint32_t pinned = trace_books_site(&books, 1, FAMILY_PINNED, SPACE_PINNED, -1);
    uint32_t tensor = trace_books_site(&books, 2, FAMILY_TORCH, SPACE_DEVICE, 0);
    begin("step", 1);
    allocate(pinned, 1, 50 * MIB);
    happen((struct event){
        .type = EVENT_ALLOC, .site = tensor, .key = block_key(KEY_FRAMEWORK, 1), .size = 7 * MIB});
    end(1);
    expect("step", 1, 0, 0);
    assert_int_equal(phase_called("step").layers[LAYER_FRAMEWORK].peak_bytes, 7 * MIB);
    assert_int_equal(phase_called("step").layers[LAYER_FRAMEWORK].net_bytes, 7 * MIB);
    assert_int_equal(ledger_phase_site_count(books.ledger), 1);
}

static void test_the_peak_knows_the_phases_it_was_in(void **state)
{
    (void)state;
    uint32_t site = trace_books_site(&books, 1, FAMILY_PLAIN, SPACE_DEVICE, 0);
    begin("epoch", 1);
    begin("forward", 2);
    allocate(site, 1, 2 * MIB);
    end(2);
    release(1);
    const struct ledger_space *space = ledger_space(books.ledger, 0);
    assert_int_equal(space->peak_phase_count, 2);
    assert_int_equal(ledger_phase(books.ledger, space->peak_phases[0]).name, phase_called("epoch").name);
    assert_int_equal(ledger_phase(books.ledger, space->peak_phases[1]).name, phase_called("forward").name);
    end(1);
    allocate(site, 1, 3 * MIB);
    assert_int_equal(space->peak_phase_count, 0);
}

static void test_more_names_and_ranges_than_there_is_room_for_are_counted_as_lost(void **state)
{
    (void)state;
    char name[32];
    for (uint32_t i = 0; i < 1030; i++) {
        snprintf(name, sizeof name, "phase %u", i);
        begin(name, i + 1);
    }
    assert_int_equal(ledger_phase_count(books.ledger), 1024);
    assert_int_equal(ledger_counters(books.ledger)->dropped_events, 6);
    for (uint32_t i = 0; i < 1030; i++)
        end(i + 1);
    for (uint32_t i = 0; i < 1024; i++)
        assert_int_equal(ledger_phase(books.ledger, i).open, 0);
}

static void test_steps_are_counted_by_time(void **state)
{
    (void)state;
    assert_int_equal(ledger_steps(books.ledger), 0);
    for (uint64_t i = 1; i <= 1000; i++)
        trace_books_apply(
            &books, &(struct event){.type = EVENT_STEP, .size = i, .time_ns = i * UINT64_C(1000000)}, NULL);
    assert_int_equal(ledger_steps(books.ledger), 1000);
    assert_int_equal(ledger_steps_between(books.ledger, 0, UINT64_MAX), 1000);
    /* A history has at least 32 cells in use: a cell is at most a thirty-second of the time. */
    uint64_t middle = UINT64_C(500500000);
    uint64_t first = ledger_steps_between(books.ledger, 0, middle);
    assert_true(first >= 500 - 1000 / 32 && first <= 500 + 1000 / 32);
    assert_int_equal(ledger_steps_between(books.ledger, middle, UINT64_MAX), 1000 - first);
    assert_int_equal(ledger_steps_between(books.ledger, UINT64_C(5000000000), UINT64_MAX), 0);
}

/* ---- against a second bookkeeping ---- */

enum { SITES = 5, NAMES = 4, RANGES = 12, BLOCKS = 40, EVENTS = 600, SEEDS = 150 };

static struct {
    uint64_t live[SITES];
    struct {
        uint32_t name, number; /* number 0: not open */
    } ranges[RANGES];
    struct {
        bool alive;
        uint32_t site;
        uint64_t size;
    } blocks[BLOCKS];
    struct {
        uint64_t ranges, open, peak, at_begin, site_at_begin[SITES], rise[SITES];
        int64_t net, site_net[SITES];
    } phases[NAMES];
    uint32_t last_number;
} naive;

static uint64_t seed;

static uint32_t choose(uint32_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(seed >> 33) % below;
}

static uint64_t naive_total(void)
{
    uint64_t total = 0;
    for (int i = 0; i < SITES; i++)
        total += naive.live[i];
    return total;
}

static void naive_look(void)
{
    for (int i = 0; i < NAMES; i++) {
        if (naive.phases[i].open == 0)
            continue;
        if (naive_total() > naive.phases[i].peak)
            naive.phases[i].peak = naive_total();
        for (int k = 0; k < SITES; k++)
            if (naive.live[k] > naive.phases[i].site_at_begin[k] + naive.phases[i].rise[k])
                naive.phases[i].rise[k] = naive.live[k] - naive.phases[i].site_at_begin[k];
    }
}

static void naive_close(uint32_t name, bool for_good)
{
    naive.phases[name].net += (int64_t)(naive_total() - naive.phases[name].at_begin);
    for (int k = 0; k < SITES; k++)
        naive.phases[name].site_net[k] += (int64_t)(naive.live[k] - naive.phases[name].site_at_begin[k]);
    if (for_good)
        naive.phases[name].open = 0;
}

static void some_range(void)
{
    static const char *const names[NAMES] = {"a", "b", "c", "d"};
    uint32_t slot = choose(RANGES);
    if (naive.ranges[slot].number == 0) {
        uint32_t name = choose(NAMES);
        naive.ranges[slot].name = name;
        naive.ranges[slot].number = ++naive.last_number;
        naive.phases[name].ranges++;
        if (naive.phases[name].open++ == 0) {
            naive.phases[name].at_begin = naive_total();
            memcpy(naive.phases[name].site_at_begin, naive.live, sizeof naive.live);
        }
        begin(names[name], naive.last_number);
    } else {
        uint32_t name = naive.ranges[slot].name;
        if (--naive.phases[name].open == 0)
            naive_close(name, true);
        end(naive.ranges[slot].number);
        naive.ranges[slot].number = 0;
    }
}

static void some_block(const uint32_t *sites)
{
    uint32_t slot = choose(BLOCKS);
    if (!naive.blocks[slot].alive) {
        uint32_t site = choose(SITES);
        uint64_t size = 1 + choose(1000);
        naive.blocks[slot].alive = true;
        naive.blocks[slot].site = site;
        naive.blocks[slot].size = size;
        naive.live[site] += size;
        allocate(sites[site], slot + 1, size);
    } else {
        naive.blocks[slot].alive = false;
        naive.live[naive.blocks[slot].site] -= naive.blocks[slot].size;
        release(slot + 1);
    }
}

struct restoring {
    struct ledger *ledger;
    struct ledger_restoring restoring;
};

static void restore(void *arg, enum ledger_state_kind kind, const uint64_t *values, uint32_t count)
{
    struct restoring *restoring = arg;
    uint64_t padded[LEDGER_STATE_VALUES_MAX] = {0};
    memcpy(padded, values, count * sizeof *values);
    const char *wrong = ledger_restore(restoring->ledger, &restoring->restoring, kind, padded);
    if (wrong != NULL)
        fail_msg("%s", wrong);
}

/* Goes on with a ledger that was given what the first one saved. */
static void change_ledgers(void)
{
    struct restoring restoring = {.ledger = ledger_create(&books.arena, books.catalog)};
    assert_non_null(restoring.ledger);
    ledger_save(books.ledger, restore, &restoring);
    assert_ledgers_equal(books.catalog, books.ledger, restoring.ledger);
    ledger_destroy(books.ledger);
    books.ledger = restoring.ledger;
}

static void compare_with_naive(const uint32_t *sites)
{
    static const char *const names[NAMES] = {"a", "b", "c", "d"};
    for (uint32_t i = 0; i < NAMES; i++) {
        if (naive.phases[i].ranges == 0)
            continue;
        if (naive.phases[i].open > 0)
            naive_close(i, false);
        expect(names[i], naive.phases[i].ranges, naive.phases[i].peak, naive.phases[i].net);
    }
    uint64_t found = 0, wanted = 0;
    for (size_t i = 0; i < ledger_phase_site_count(books.ledger); i++) {
        struct phase_site pair = ledger_phase_site(books.ledger, i);
        uint32_t name = 0, site = 0;
        while (trace_books_text(&books, names[name]) != ledger_phase(books.ledger, pair.phase).name)
            name++;
        while (sites[site] != pair.site)
            site++;
        assert_int_equal(pair.rise_bytes, naive.phases[name].rise[site]);
        assert_int_equal(pair.net_bytes, naive.phases[name].site_net[site]);
        found += pair.rise_bytes > 0;
    }
    for (int i = 0; i < NAMES; i++)
        for (int k = 0; k < SITES; k++)
            wanted += naive.phases[i].rise[k] > 0;
    assert_int_equal(found, wanted);
}

static void test_random_programs_give_what_a_second_bookkeeping_gives(void **state)
{
    (void)state;
    for (uint64_t number = 1; number <= SEEDS; number++) {
        uint32_t sites[SITES];
        seed = number;
        memset(&naive, 0, sizeof naive);
        trace_books_close(&books);
        trace_books_open(&books, NULL);
        for (uint32_t i = 0; i < SITES; i++)
            sites[i] = trace_books_site(&books, i, FAMILY_PLAIN, SPACE_DEVICE, (int)(i % 2));
        for (int i = 0; i < EVENTS; i++) {
            if (choose(4) == 0)
                some_range();
            else
                some_block(sites);
            naive_look();
            if (i == EVENTS / 2)
                change_ledgers();
        }
        compare_with_naive(sites);
    }
}

int main(void)
{
#define ON_BOOKS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ON_BOOKS(test_a_phase_has_the_peak_while_it_lasts_and_what_it_left),
        ON_BOOKS(test_ranges_of_one_name_at_once_are_one_period),
        ON_BOOKS(test_only_device_memory_is_in_a_phase_by_layer),
        ON_BOOKS(test_the_peak_knows_the_phases_it_was_in),
        ON_BOOKS(test_more_names_and_ranges_than_there_is_room_for_are_counted_as_lost),
        ON_BOOKS(test_steps_are_counted_by_time),
        ON_BOOKS(test_random_programs_give_what_a_second_bookkeeping_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
