/* Searching nested address ranges, against looking at every one of them. */
#include "unit.h"

#include <stdlib.h>

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

static void test_open_ranges_end_where_the_next_one_starts(void **state)
{
    struct arena arena = {0};
    struct range_list list = {0};
    static const struct {
        uint64_t address;
        int id; /* 0: none */
    } wanted[] = {{9, 0},  {10, 1}, {19, 1}, {20, 2}, {25, 2}, {29, 2}, {30, 0}, {40, 4},
                  {49, 4}, {50, 5}, {59, 5}, {60, 0}, {70, 7}, {79, 7}, {80, 0}};
    (void)state;
    range_list_add_open(&list, &arena, 10, 1000, 1);
    range_list_add(&list, &arena, 20, 30, 2);
    range_list_add_open(&list, &arena, 25, 1000, 3); /* a label inside a function */
    range_list_add_open(&list, &arena, 20, 1000, 3); /* another name where one has an end of its own */
    range_list_add_open(&list, &arena, 40, 1000, 4);
    range_list_add_open(&list, &arena, 50, 60, 5); /* its section ends */
    range_list_add_open(&list, &arena, 65, 65, 6); /* where the section ends */
    range_list_add(&list, &arena, 70, 80, 7);
    assert_true(range_list_sort(&list));
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const struct range *found = range_list_find(&list, wanted[i].address);
        assert_int_equal(found ? (int)found->id : 0, wanted[i].id);
    }
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flattened_ranges_answer_as_all_of_them_do),
        cmocka_unit_test(test_many_neighbours_do_not_hide_the_range_around_them),
        cmocka_unit_test(test_open_ranges_end_where_the_next_one_starts),
        cmocka_unit_test(test_empty_and_backward_ranges_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
