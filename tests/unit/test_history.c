/* Histories (ledger/history.h) against an oracle that looks at all living bytes. */
#include "unit.h"

#include "ledger/history.h"

/* Living bytes over time, and for any stretch the least of them by looking at all. */
struct course {
    uint64_t times[3000], live[3000]; /* live from times[i] on */
    size_t count;
};

static uint64_t least_between(const struct course *course, uint64_t from, uint64_t to)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < course->count; i++) {
        uint64_t until = i + 1 < course->count ? course->times[i + 1] : UINT64_MAX;
        if (course->times[i] < to && until > from && course->live[i] < least)
            least = course->live[i];
    }
    return least;
}

static void test_a_history_holds_the_least_of_every_stretch(void **state)
{
    (void)state;
    static struct course course;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct history history;
        uint64_t random = seed, time = random_below(&random, 1000000), live = 1000;
        unsigned pace = (unsigned)random_below(&random, 40);
        course = (struct course){.times = {time}, .live = {live}, .count = 1};
        history_begin(&history, time, live);
        while (course.count < 60 + seed * 70) {
            time += 1 + random_below(&random, UINT64_C(1) << random_below(&random, pace + 1));
            uint64_t after = random_below(&random, 1000000);
            history_note(&history, time, live, after);
            live = after;
            course.times[course.count] = time;
            course.live[course.count++] = live;
        }
        uint64_t width = UINT64_C(1) << history.width_log2, origin = history.origin_ns;
        assert_int_equal(history.last, (time - origin) / width);
        assert_true(history.last < HISTORY_CELLS);
        assert_true(history.width_log2 == HISTORY_WIDTH_LOG2 || history.last >= HISTORY_CELLS / 2);
        for (uint32_t i = 0; i <= history.last; i++)
            assert_int_equal(history.floors[i],
                             least_between(&course, origin + i * width, origin + (i + 1) * width));
    }
}

static void test_a_history_takes_at_most_600_bytes(void **state)
{
    (void)state;
    assert_true(sizeof(struct history) <= 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_history_holds_the_least_of_every_stretch),
        cmocka_unit_test(test_a_history_takes_at_most_600_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
