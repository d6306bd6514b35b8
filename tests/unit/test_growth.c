/* Growth by arithmetic: at what rate, since when, and when the device is full; what one might take for
 * growth; and what a report says of it. */
#include "unit.h"

#include <math.h>
#include <stdlib.h>

#include "books.h"
#include "ledger/growth.h"
#include "ledger/history.h"
#include "report_books.h"

/* ---- rates ---- */

/* `count` blocks of `size` bytes, one every `gap_ns`; what a site keeps rises by size/gap. */
static bool judge_line(uint64_t count, uint64_t size, uint64_t gap_ns, struct growth *growth)
{
    struct history history;
    history_begin(&history, gap_ns, size);
    for (uint64_t i = 2; i <= count; i++)
        history_note(&history, i * gap_ns, (i - 1) * size, i * size);
    return growth_judge(&history, count * size, count * gap_ns, growth);
}

static void assert_about(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * fabs(expected)))
        fail_msg("%g is not about %g", value, expected);
}

static void test_rates_are_right_from_milliseconds_to_days_and_from_30_blocks_to_ten_million(void **state)
{
    (void)state;
    static const struct {
        uint64_t count, size, gap_ns;
        double tolerance;
    } lines[] = {
        {30, 512, 5 * MS / 30, 0.05},
        {1000, 64 * KIB, 5000, 0.02},
        {400, 256 * KIB, 2 * MS, 0.02},
        {10000000, 256, 900, 0.02},
        {30, 64 * MIB, 6 * 86400 * (SEC / 30), 0.05},
        {10000000, 4 * KIB, 6 * 86400 * SEC / 10000000, 0.02},
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct growth growth;
        assert_true(judge_line(lines[i].count, lines[i].size, lines[i].gap_ns, &growth));
        assert_about(growth.bytes_per_second, (double)lines[i].size * 1e9 / (double)lines[i].gap_ns,
                     lines[i].tolerance);
        assert_true(growth.confidence > 0.85 && growth.confidence <= 1);
        assert_true(growth.since_ns <= lines[i].gap_ns * lines[i].count / 10);
    }
}

/* Each of 20 teeth climbs by 100 MiB and falls back to 1 MiB more than the one before, every 50 ms. */
static void test_the_rate_of_a_saw_is_that_of_its_floor(void **state)
{
    (void)state;
    enum { TEETH = 20, CLIMB = 100 };
    struct history history;
    struct growth growth;
    uint64_t live = 0;
    history_begin(&history, 0, 0);
    for (uint64_t i = 0; i < TEETH * CLIMB; i++) {
        uint64_t after = i % CLIMB == 0 ? i / CLIMB * MIB : live + MIB;
        history_note(&history, i * (MS / 2), live, after);
        live = after;
    }
    assert_true(growth_judge(&history, live, TEETH * 50 * MS, &growth));
    assert_about(growth.bytes_per_second, (double)MIB / 0.05, 0.1);
    assert_about((double)growth.risen_bytes, (TEETH - 1) * (double)MIB, 0.1);
}

static void test_confidence_falls_with_evenness(void **state)
{
    (void)state;
    struct growth even, uneven;
    struct history history;
    uint64_t seed = 1, live = 0;
    assert_true(judge_line(200, MIB, MS, &even));
    history_begin(&history, 0, 0);
    for (uint64_t time = 0; time < 200 * MS; time += MS) { /* sizes from 0 to 2 MiB, a third of them 0 */
        uint64_t size = random_below(&seed, 3) ? random_below(&seed, 3 * MIB) : 0;
        history_note(&history, time, live, live + size);
        live += size;
    }
    assert_true(growth_judge(&history, live, 200 * MS, &uneven));
    assert_true(uneven.confidence < even.confidence);
}

/* ---- the end of a run ---- */

static void let_grow(struct trace_books *books, uint32_t site, uint64_t from, uint64_t to)
{
    for (uint64_t i = 0; i < 100; i++) {
        struct event event = {.type = EVENT_ALLOC,
                              .site = site,
                              .time_ns = from + (to - from) * i / 100,
                              .key = block_key(KEY_ADDRESS, from + i + 1),
                              .size = MIB};
        assert_true(trace_books_apply(books, &event, NULL));
    }
}

static bool grows(const struct trace_books *books, uint32_t site, uint64_t duration_ns)
{
    struct growth growth;
    return ledger_growth(books->ledger, site, growth_end(books->ledger, duration_ns), &growth);
}

static void test_a_quiet_end_of_up_to_a_third_is_left_out(void **state)
{
    (void)state;
    struct trace_books books;
    trace_books_open(&books, NULL);
    uint32_t site = trace_books_site(&books, 0, FAMILY_PLAIN, SPACE_DEVICE, 0);
    let_grow(&books, site, 0, 7 * SEC);
    assert_true(grows(&books, site, 7 * SEC));
    assert_true(grows(&books, site, 10 * SEC));
    assert_false(grows(&books, site, 14 * SEC)); /* loaded, and then worked with */
    trace_books_close(&books);
}

/* An interpreter takes milliseconds to exit, and the program was done in two. */
static void test_the_exit_of_a_short_program_that_worked_in_turns_is_left_out(void **state)
{
    (void)state;
    for (uint64_t turns = 0; turns <= 100; turns += 100) {
        struct trace_books books;
        trace_books_open(&books, NULL);
        uint32_t kept = trace_books_site(&books, 0, FAMILY_PLAIN, SPACE_DEVICE, 0);
        uint32_t scratch = trace_books_site(&books, 1, FAMILY_PLAIN, SPACE_DEVICE, 0);
        let_grow(&books, kept, 0, 2 * MS);
        for (uint64_t i = 0; i < turns; i++) {
            struct event event = {
                .type = EVENT_ALLOC, .site = scratch, .time_ns = i * MS / 50, .key = 1, .size = MIB};
            assert_true(trace_books_apply(&books, &event, NULL));
            event.type = EVENT_FREE;
            assert_true(trace_books_apply(&books, &event, NULL));
        }
        assert_int_equal(grows(&books, kept, 9 * MS), turns > 0);
        assert_false(grows(&books, kept, 90 * MS));
        assert_false(grows(&books, scratch, 9 * MS));
        trace_books_close(&books);
    }
}

/* Where others allocate on, what stopped has stopped. */
static void test_growth_that_stops_while_the_program_goes_on_is_not_named(void **state)
{
    (void)state;
    struct trace_books books;
    trace_books_open(&books, NULL);
    uint32_t site = trace_books_site(&books, 0, FAMILY_PLAIN, SPACE_DEVICE, 0);
    uint32_t other = trace_books_site(&books, 1, FAMILY_PLAIN, SPACE_DEVICE, 0);
    let_grow(&books, site, 0, 6 * SEC);
    struct event event = {.type = EVENT_ALLOC, .site = other, .time_ns = 10 * SEC, .key = 1, .size = 1};
    assert_true(trace_books_apply(&books, &event, NULL));
    assert_false(grows(&books, site, 10 * SEC));
    assert_false(grows(&books, other, 10 * SEC));
    trace_books_close(&books);
}

static void test_memory_that_goes_with_the_program_grew_all_the_same(void **state)
{
    (void)state;
    struct trace_books books;
    trace_books_open(&books, NULL);
    uint32_t site = trace_books_site(&books, 0, FAMILY_PLAIN, SPACE_DEVICE, 0);
    let_grow(&books, site, 0, 10 * SEC);
    for (uint64_t i = 0; i < 100; i++) {
        struct event event = {.type = EVENT_FREE, .time_ns = 11 * SEC, .key = block_key(KEY_ADDRESS, i + 1)};
        assert_true(trace_books_apply(&books, &event, NULL));
    }
    assert_true(grows(&books, site, 11 * SEC));
    trace_books_close(&books);
}

/* ---- what one might take for growth ---- */

/* Rises all the time; at each of `ends`, parts of 1000 of the run, but for the last it falls to nothing. */
static bool judge_saw(const uint64_t *ends, size_t count)
{
    struct history history;
    struct growth growth;
    uint64_t live = 0, tooth = 0;
    history_begin(&history, 0, 0);
    for (uint64_t time = 1; time <= 1000; time++) {
        bool falls = time == ends[tooth] && tooth + 1 < count;
        history_note(&history, time * MS, live, falls ? 0 : live + MIB);
        live = falls ? 0 : live + MIB;
        tooth += falls;
    }
    return growth_judge(&history, live, 1000 * MS, &growth);
}

static void test_the_last_tooth_of_a_saw_is_no_growth(void **state)
{
    (void)state;
    assert_true(judge_saw((const uint64_t[]){1000}, 1));
    assert_false(judge_saw((const uint64_t[]){500, 1000}, 2));
    assert_false(judge_saw((const uint64_t[]){300, 600, 1000}, 3));
    assert_false(judge_saw((const uint64_t[]){550, 1000}, 2));
    assert_false(judge_saw((const uint64_t[]){600, 1000}, 2));
    assert_false(judge_saw((const uint64_t[]){100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}, 10));
}

/* 700 MiB in a straight line, 400 of them given back at once, and on as before: for 400 ms it held what it
 * kept in the end. */
static void test_what_is_given_back_later_was_no_growth(void **state)
{
    (void)state;
    struct history history;
    struct growth growth;
    uint64_t live = 0;
    history_begin(&history, 0, 0);
    for (uint64_t time = 0; time < 1000; time++) {
        uint64_t after = time == 700 ? live - 400 * MIB : live + MIB;
        history_note(&history, time * MS, live, after);
        live = after;
    }
    assert_false(growth_judge(&history, live, 1000 * MS, &growth));
}

/* Growth that ended, though other sites allocate to the end: up to 8/10 of the run one can tell. */
static void test_growth_that_ended_is_not_named(void **state)
{
    (void)state;
    for (uint64_t end = 100; end <= 800; end += 100) {
        struct history history;
        struct growth growth;
        history_begin(&history, 0, 0);
        for (uint64_t i = 0; i < end; i++)
            history_note(&history, i * MS, i * MIB, (i + 1) * MIB);
        assert_false(growth_judge(&history, end * MIB, 1000 * MS, &growth));
        assert_true(growth_judge(&history, end * MIB, end * MS, &growth));
    }
}

static void test_a_phase_of_growth_at_the_end_is_too_short_to_tell(void **state)
{
    (void)state;
    struct growth growth;
    for (uint64_t begin = 0; begin < 1000; begin += 100) {
        struct history history;
        history_begin(&history, begin * MS, 0);
        for (uint64_t i = 0; begin + i < 1000; i++)
            history_note(&history, (begin + i) * MS, i * MIB, (i + 1) * MIB);
        bool named = growth_judge(&history, (1000 - begin) * MIB, 1000 * MS, &growth);
        assert_int_equal(named, begin < 700); /* 3/10 is the least, and its first step is not counted */
    }
}

/* ---- reports ---- */

/* 1 MiB a second at train.py:7 for 100 s and twice that, in the same time, of pinned memory. When 4 MiB were
 * allocated, 1004 MiB of the device were free: 908 MiB now, but for the 100th. */
static void add_growth(struct books *books)
{
    uint32_t frame = books_python(books, "step", "/home/me/train.py", 7);
    uint32_t device = books_plain(books, &frame, 1);
    uint32_t pinned = books_site(books, "cuMemAllocHost", FAMILY_PINNED, SPACE_PINNED, -1, &frame, 1);
    uint32_t mapped = books_site(books, "cuIpcOpenMemHandle", FAMILY_IPC, SPACE_FOREIGN, 0, &frame, 1);
    books->process.duration_ns = 100 * SEC;
    for (uint64_t i = 0; i < 100; i++) {
        books_alloc(books, device, 0x10000000 + i, MIB, i * SEC + 1);
        books_alloc(books, pinned, 0x20000000 + i, 2 * MIB, i * SEC + 2);
        books_alloc(books, mapped, 0x30000000 + i, 4 * MIB, i * SEC + 3);
        if (i == 3)
            books_event(books, (struct event){.type = EVENT_MEMORY,
                                              .time_ns = i * SEC + 4,
                                              .free_bytes = 1004 * MIB,
                                              .total_bytes = 2048 * MIB});
    }
}

static void test_the_json_report_lists_what_grows_fastest_first(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    add_growth(&books);
    json_t *json = books_json(&books);
    assert_int_equal(json_array_size(json_node(json, "growth")),
                     2); /* what is owned elsewhere is not listed */
    assert_int_equal(json_at(json, "growth.0.site"), 1);
    assert_int_equal(json_at(json, "growth.1.site"), 0);
    double fast = json_number_value(json_node(json, "growth.0.bytes_per_second"));
    double slow = json_number_value(json_node(json, "growth.1.bytes_per_second"));
    assert_about(fast, 2 * (double)MIB, 0.02);
    assert_about(slow, (double)MIB, 0.02);
    assert_true(json_is_null(json_node(json, "growth.0.bytes_per_step")));
    assert_true(json_is_null(json_node(json, "growth.0.exhausted_in_seconds"))); /* host memory */
    assert_about(json_number_value(json_node(json, "growth.1.exhausted_in_seconds")),
                 908 * (double)MIB / slow, 0.001);
    double confidence = json_number_value(json_node(json, "growth.1.confidence"));
    assert_true(confidence > 0.9 && confidence <= 1);
    json_decref(json);
    books_close(&books);
}

static void test_the_text_report_says_what_grows_and_how_that_is_told(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    add_growth(&books);
    char *text = books_text(&books, false);
    assert_has(text, "Growing by 2.0 MiB/s: train.py:7 in step\n");
    assert_has(text, "/s, device 0 is full in 15 min "); /* 908 s */
    assert_has(text, "How this is told  What a site, or all sites of a line together, keeps");
    free(text);
    books_close(&books);
}

static void test_a_report_without_growth_says_nothing_of_it(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    uint32_t frame = books_python(&books, "load", "/home/me/train.py", 3);
    books_alloc(&books, books_plain(&books, &frame, 1), 0x1000, MIB, SEC);
    char *text = books_text(&books, true);
    assert_lacks(text, "Growing");
    assert_lacks(text, "grows");
    free(text);
    json_t *json = books_json(&books);
    assert_int_equal(json_array_size(json_node(json, "growth")), 0);
    json_decref(json);
    books_close(&books);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates_are_right_from_milliseconds_to_days_and_from_30_blocks_to_ten_million),
        cmocka_unit_test(test_the_rate_of_a_saw_is_that_of_its_floor),
        cmocka_unit_test(test_confidence_falls_with_evenness),
        cmocka_unit_test(test_a_quiet_end_of_up_to_a_third_is_left_out),
        cmocka_unit_test(test_the_exit_of_a_short_program_that_worked_in_turns_is_left_out),
        cmocka_unit_test(test_growth_that_stops_while_the_program_goes_on_is_not_named),
        cmocka_unit_test(test_memory_that_goes_with_the_program_grew_all_the_same),
        cmocka_unit_test(test_the_last_tooth_of_a_saw_is_no_growth),
        cmocka_unit_test(test_what_is_given_back_later_was_no_growth),
        cmocka_unit_test(test_growth_that_ended_is_not_named),
        cmocka_unit_test(test_a_phase_of_growth_at_the_end_is_too_short_to_tell),
        cmocka_unit_test(test_the_json_report_lists_what_grows_fastest_first),
        cmocka_unit_test(test_the_text_report_says_what_grows_and_how_that_is_told),
        cmocka_unit_test(test_a_report_without_growth_says_nothing_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
