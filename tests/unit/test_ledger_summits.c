/*
 * What a peak would have been without some sites, against pictures of who held what after every event, at
 * which the same is added up the simple way.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "books.h"

#define SITES       12
#define MOMENTS_MAX 60000
#define MIB         (UINT64_C(1) << 20)

struct play {
    struct trace_books books;
    uint32_t sites[SITES];
    uint64_t live[SITES], time_ns, address;
    size_t moments;
    uint64_t (*pictures)[SITES];
};

static struct play play;

static void start(int second_device_from)
{
    trace_books_open(&play.books, NULL);
    for (int i = 0; i < SITES; i++) {
        play.sites[i] =
            trace_books_site(&play.books, (uint32_t)i, FAMILY_PLAIN, SPACE_DEVICE, i >= second_device_from);
        play.live[i] = 0;
    }
    play.time_ns = play.moments = play.address = 0;
    play.pictures = calloc(MOMENTS_MAX, sizeof *play.pictures);
    assert_non_null(play.pictures);
}

static void stop(void)
{
    trace_books_close(&play.books);
    free(play.pictures);
}

static void take_picture(void)
{
    assert_true(play.moments < MOMENTS_MAX);
    memcpy(play.pictures[play.moments++], play.live, sizeof play.live);
}

static uint64_t allocate(int site, uint64_t bytes)
{
    uint64_t key = block_key(KEY_ADDRESS, 0x1000 + play.address++);
    struct event event = {
        .type = EVENT_ALLOC, .site = play.sites[site], .key = key, .size = bytes, .time_ns = ++play.time_ns};
    assert_true(trace_books_apply(&play.books, &event, NULL));
    play.live[site] += bytes;
    take_picture();
    return key;
}

static void release(int site, uint64_t key)
{
    struct block ended;
    struct event event = {.type = EVENT_FREE, .key = key, .time_ns = ++play.time_ns};
    assert_true(trace_books_apply(&play.books, &event, &ended));
    play.live[site] -= ended.size;
    take_picture();
}

static uint64_t held_at(size_t moment, unsigned without)
{
    uint64_t held = 0;
    for (unsigned i = 0; i < SITES; i++)
        held += without >> i & 1 ? 0 : play.pictures[moment][i];
    return held;
}

static uint64_t naive_peak(unsigned without)
{
    uint64_t peak = 0;
    for (size_t i = 0; i < play.moments; i++) {
        uint64_t held = held_at(i, without);
        peak = held > peak ? held : peak;
    }
    return peak;
}

static struct peak_without ask(const struct ledger_space *space, unsigned without, uint64_t *bytes)
{
    bool absent[SITES] = {false};
    assert_int_equal(ledger_site_limit(play.books.ledger), SITES);
    for (unsigned i = 0; i < SITES; i++)
        absent[play.sites[i]] = without >> i & 1;
    return ledger_peak_without(play.books.ledger, space, absent, bytes);
}

/* True when the answer is exact; it is checked in either case. */
static bool check(const struct ledger_space *space, unsigned without)
{
    uint64_t bytes[SITES], expected = naive_peak(without), held = 0;
    struct peak_without peak = ask(space, without, bytes);
    if (!peak.exact) {
        assert_true(expected <= peak.bytes && peak.bytes <= space->totals.peak_bytes);
        return false;
    }
    assert_int_equal(peak.bytes, expected);
    for (unsigned i = 0; i < SITES; i++)
        held += without >> i & 1 ? 0 : bytes[play.sites[i]];
    assert_int_equal(held, expected);
    if (without == (1U << SITES) - 1)
        return true;
    assert_true(peak.time_ns > 0 && peak.time_ns <= play.moments);
    assert_int_equal(held_at(peak.time_ns - 1, without), expected); /* event n is at time n */
    return true;
}

static const struct ledger_space *device(void)
{
    return ledger_space(play.books.ledger, 0);
}

static void start_with_every_site(int second_device_from)
{
    start(second_device_from);
    for (int i = 0; i < SITES; i++)
        release(i, allocate(i, 1));
}

/* Blocks come and go at random. */
static void walk(uint64_t *seed, int events, int most)
{
    struct {
        int site;
        uint64_t key;
    } blocks[64];
    int living = 0;
    for (int i = 0; i < events; i++) {
        if (living == 0 || (living < most && random_below(seed, 2))) {
            int site = (int)random_below(seed, SITES);
            blocks[living].site = site;
            blocks[living++].key = allocate(site, random_below(seed, 6) * MIB);
        } else {
            int which = (int)random_below(seed, (uint64_t)living);
            release(blocks[which].site, blocks[which].key);
            blocks[which] = blocks[--living];
        }
    }
}

static void test_without_any_sites_the_peak_is_what_pictures_say(void **state)
{
    (void)state;
    size_t exact = 0, asked = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        uint64_t random = seed;
        int events = seed % 20 == 0 ? 50000 : 50 + (int)random_below(&random, 3000);
        start_with_every_site(SITES);
        walk(&random, events, 4 + (int)random_below(&random, 60));
        for (int i = 0; i < 30; i++) {
            unsigned without = (unsigned)random_below(&random, 1U << SITES);
            uint64_t expected = naive_peak(without);
            bool is_exact = check(device(), without);
            if (2 * expected > device()->totals.peak_bytes) {
                asked++;
                exact += is_exact;
            }
        }
        assert_true(check(device(), 0));
        assert_true(check(device(), (1U << SITES) - 1));
        stop();
    }
    print_message("%zu of %zu answers above half of the peak are exact\n", exact, asked);
    assert_true(asked > 1000);
    assert_true(exact * 100 >= asked * 80); /* walks at random repeat nothing: some are not */
}

/* Of all devices together, whenever the second one comes. */
static void test_all_devices_together_have_summits_of_their_own(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        uint64_t random = seed;
        start(SITES / 2);
        for (int i = 0; i < SITES / 2; i++) { /* the first device has a past */
            uint64_t key = allocate(i, (1 + random_below(&random, 40)) * MIB);
            if (random_below(&random, 2))
                release(i, key);
        }
        assert_null(ledger_whole(play.books.ledger));
        for (int i = SITES / 2; i < SITES; i++)
            release(i, allocate(i, 1));
        walk(&random, 400, 30);
        const struct ledger_space *whole = ledger_whole(play.books.ledger);
        assert_non_null(whole);
        assert_int_equal(whole->totals.peak_bytes, naive_peak(0));
        for (int i = 0; i < 30; i++)
            check(whole, (unsigned)random_below(&random, 1U << SITES));
        assert_true(check(whole, 0));
        stop();
    }
}

/* ---- programs as people write them ---- */

enum { WEIGHTS, GRADIENTS, STATE, LEAK, SCRATCH, ACTIVATIONS };

/* Forward, backward and the optimizer's step: the activations are highest at the turn, the scratch memory of
 * the optimizer comes when they are gone. */
static void train(int steps, uint64_t leak)
{
    uint64_t kept[6];
    allocate(WEIGHTS, 100 * MIB);
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < 6; i++) {
            kept[i] = allocate(ACTIVATIONS + i, 20 * MIB);
            release(SCRATCH, allocate(SCRATCH, 5 * MIB));
        }
        uint64_t gradients = allocate(GRADIENTS, 50 * MIB);
        for (int i = 5; i >= 0; i--)
            release(ACTIVATIONS + i, kept[i]);
        if (step == 0)
            allocate(STATE, 30 * MIB);
        release(SCRATCH, allocate(SCRATCH, 70 * MIB));
        release(GRADIENTS, gradients);
        if (leak > 0)
            allocate(LEAK, leak);
    }
}

static void test_a_loop_of_any_length_stays_exact(void **state)
{
    (void)state;
    for (int steps = 2; steps <= 1200; steps *= 7) {
        start_with_every_site(SITES);
        train(steps, 0);
        /* At the turn 100 + 30 + 120 + 50, at the optimizer 100 + 30 + 50 + 70. */
        uint64_t bytes[SITES];
        assert_int_equal(ask(device(), 0, bytes).bytes, 300 * MIB);
        unsigned activations = 0;
        for (int i = 0; i < 6; i++)
            activations |= 1U << (ACTIVATIONS + i);
        struct peak_without peak = ask(device(), activations, bytes);
        assert_true(peak.exact);
        assert_int_equal(peak.bytes, 250 * MIB);
        assert_int_equal(bytes[play.sites[SCRATCH]], 70 * MIB);
        assert_int_equal(ask(device(), activations | 1U << SCRATCH, bytes).bytes, 180 * MIB);
        for (unsigned site = 0; site < SITES; site++)
            assert_true(check(device(), 1U << site));
        stop();
    }
}

/* Each step is higher than the one before, and none is like it. */
static void test_a_loop_that_leaks_stays_exact(void **state)
{
    (void)state;
    for (int steps = 2; steps <= 1200; steps *= 7) {
        start_with_every_site(SITES);
        train(steps, MIB / 4);
        for (unsigned site = 0; site < SITES; site++)
            check(device(), 1U << site);
        assert_true(check(device(), 1U << LEAK));
        assert_true(check(device(), 1U << SCRATCH));
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_any_sites_the_peak_is_what_pictures_say),
        cmocka_unit_test(test_all_devices_together_have_summits_of_their_own),
        cmocka_unit_test(test_a_loop_of_any_length_stays_exact),
        cmocka_unit_test(test_a_loop_that_leaks_stays_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
