/*
 * When the driver is asked again how much is free (preload/sampling.h): never often, and near every peak.
 */
#include "unit.h"

#include "preload/sampling.h"

#define MIB UINT64_C(1048576)
#define MS  UINT64_C(1000000)

static void test_the_first_allocation_is_sampled_and_then_a_tenth_of_a_second_passes(void **state)
{
    (void)state;
    struct sampling sampling = {0};
    assert_true(sampling_due(&sampling, 5 * MS, 64 * MIB));
    assert_false(sampling_due(&sampling, 6 * MS, 64 * MIB));
    assert_false(sampling_due(&sampling, 104 * MS, 1 * MIB));
    assert_true(sampling_due(&sampling, 105 * MS, 1 * MIB));
    assert_false(sampling_due(&sampling, 106 * MS, 1 * MIB));
}

static void test_a_rise_of_an_eighth_above_all_before_is_sampled_at_once(void **state)
{
    (void)state;
    struct sampling sampling = {0};
    assert_true(sampling_due(&sampling, 0, 80 * MIB));
    assert_false(sampling_due(&sampling, 1, 90 * MIB - 1));
    assert_true(sampling_due(&sampling, 2, 90 * MIB));
    assert_false(sampling_due(&sampling, 3, 10 * MIB));
    assert_false(sampling_due(&sampling, 4, 95 * MIB)); /* the same height again, nearly */
    assert_true(sampling_due(&sampling, 5, 102 * MIB));
}

/* From 1 MiB to 64 GiB in steps of 1 MiB within a millisecond: each eighth once, log(65536) / log(9/8) = 94.
 */
static void test_rises_are_few_however_many_allocations(void **state)
{
    (void)state;
    struct sampling sampling = {0};
    int samples = 0;
    for (uint64_t mib = 1; mib <= 65536; mib++)
        samples += sampling_due(&sampling, mib, mib * MIB);
    assert_true(samples > 40 && samples <= 95);
    for (uint64_t mib = 65536; mib > 0; mib--)
        assert_false(sampling_due(&sampling, 65536 + mib, mib * MIB));
}

static void test_a_slow_driver_is_asked_less_often(void **state)
{
    (void)state;
    struct sampling sampling = {0};
    assert_true(sampling_due(&sampling, 0, MIB));
    sampling_took(&sampling, 0, 2 * MS); /* 2 ms in 2 s: a thousandth */
    assert_false(sampling_due(&sampling, 1999 * MS, MIB));
    assert_true(sampling_due(&sampling, 2000 * MS, MIB));
    sampling_took(&sampling, 2000 * MS, 1000); /* quick: the tenth of a second stays */
    assert_false(sampling_due(&sampling, 2099 * MS, MIB));
    assert_true(sampling_due(&sampling, 2100 * MS, MIB));
    sampling_took(&sampling, 2100 * MS, UINT64_MAX);
    assert_false(sampling_due(&sampling, 99999 * MS, MIB));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_allocation_is_sampled_and_then_a_tenth_of_a_second_passes),
        cmocka_unit_test(test_a_rise_of_an_eighth_above_all_before_is_sampled_at_once),
        cmocka_unit_test(test_rises_are_few_however_many_allocations),
        cmocka_unit_test(test_a_slow_driver_is_asked_less_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
