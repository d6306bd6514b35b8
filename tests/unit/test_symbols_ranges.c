/* Searching nested address ranges, against looking at every one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "symbols/range_list.h"

#define RANGES    200
#define ADDRESSES 300

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Of the ranges that hold the address: that which starts last, then the shorter, then the later one. */
static const struct range *naive(const struct range *ranges, size_t count, uint64_t address)
{
    const struct range *best = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct range *range = &ranges[i];
        if (address < range->start || address >= range->end)
            continue;
        if (!best || range->start > best->start || (range->start == best->start && range->end <= best->end))
            best = range;
    }
    return best;
}

static void check_flattened(const struct range *ranges, size_t count)
{
    struct arena arena = {0};
    struct range_list list = {0};
    for (size_t i = 0; i < count; i++)
        range_list_add(&list, &arena, ranges[i].start, ranges[i].end, ranges[i].id);
    assert_true(range_list_flatten(&list, &arena));
    for (uint64_t address = 0; address < ADDRESSES; address++) {
        const struct range *wanted = naive(ranges, count, address);
        const struct range *found = range_list_find(&list, address);
        assert_int_equal(found != NULL, wanted != NULL);
        if (wanted && found)
            assert_int_equal(found->id, wanted->id);
    }
    for (size_t i = 1; i < list.count; i++)
        assert_true(list.ranges[i - 1].end <= list.ranges[i].start);
    arena_release(&arena);
}

static void test_flattened_ranges_answer_as_all_of_them_do(void **state)
{
    struct range ranges[RANGES];
    uint64_t random = 7;
    (void)state;
    for (int round = 0; round < 300; round++) {
        size_t count = next_random(&random) % RANGES;
        for (size_t i = 0; i < count; i++) {
            uint64_t start = next_random(&random) % ADDRESSES;
            uint64_t bytes = 1 + next_random(&random) % (round % 2 ? 20 : ADDRESSES);
            ranges[i] = (struct range){.start = start, .end = start + bytes, .id = (uint32_t)i};
        }
        check_flattened(ranges, count);
    }
}

static void test_many_neighbours_do_not_hide_the_range_around_them(void **state)
{
    struct range ranges[RANGES];
    (void)state;
    ranges[0] = (struct range){.start = 0, .end = ADDRESSES, .id = 0};
    for (uint32_t i = 1; i < RANGES; i++)
        ranges[i] = (struct range){.start = i, .end = i + 1, .id = i};
    check_flattened(ranges, RANGES);
}

static void test_empty_and_backward_ranges_are_left_out(void **state)
{
    struct arena arena = {0};
    struct range_list list = {0};
    (void)state;
    assert_true(range_list_flatten(&list, &arena));
    assert_null(range_list_find(&list, 0));
    range_list_add(&list, &arena, 5, 5, 1);
    range_list_add(&list, &arena, 9, 3, 2);
    range_list_add(&list, &arena, UINT64_MAX - 1, UINT64_MAX, 3);
    assert_true(range_list_flatten(&list, &arena));
    assert_null(range_list_find(&list, 5));
    assert_null(range_list_find(&list, UINT64_MAX));
    assert_int_equal(range_list_find(&list, UINT64_MAX - 1)->id, 3);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flattened_ranges_answer_as_all_of_them_do),
        cmocka_unit_test(test_many_neighbours_do_not_hide_the_range_around_them),
        cmocka_unit_test(test_empty_and_backward_ranges_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
