/* The sections of a report, each by arithmetic: peaks, fragmentation, out of memory, the rest of the device.
 */
#include "unit.h"

#include "report_books.h"

struct extent {
    enum family family;
    uint64_t address, size;
};

static void check_fragmentation(const struct extent *extents, size_t count, uint64_t live, uint64_t granules,
                                uint64_t unplaced)
{
    struct books books;
    books_open(&books);
    for (size_t i = 0; i < count; i++)
        books_alloc(&books, books_site(&books, "api", extents[i].family, SPACE_DEVICE, 0, NULL, 0),
                    extents[i].address, extents[i].size, MS);
    json_t *json = books_json(&books);
    assert_int_equal(json_at(json, "fragmentation.0.granule_bytes"), 2 * MIB);
    assert_int_equal(json_at(json, "fragmentation.0.live_bytes"), live);
    assert_int_equal(json_at(json, "fragmentation.0.footprint_bytes"), granules * 2 * MIB + unplaced);
    assert_int_equal(json_at(json, "fragmentation.0.waste_bytes"), granules * 2 * MIB + unplaced - live);
    json_decref(json);
    books_close(&books);
}

static void test_footprint_counts_each_granule_once(void **state)
{
    (void)state;
    const uint64_t at = UINT64_C(0x7f1200000000);
    struct extent whole[] = {{FAMILY_PLAIN, at, 2 * MIB}, {FAMILY_PITCHED, at + 2 * MIB, 4 * MIB}};
    check_fragmentation(whole, 2, 6 * MIB, 3, 0);
    struct extent together[] = {
        {FAMILY_PLAIN, at + MIB, KIB}, {FAMILY_PLAIN, at, KIB}, {FAMILY_PLAIN, at + KIB, KIB}};
    check_fragmentation(together, 3, 3 * KIB, 1, 0);
    struct extent across[] = {{FAMILY_PLAIN, at + 2 * MIB - 1, 2}, {FAMILY_POOL, at + 4 * MIB, 1}};
    check_fragmentation(across, 2, 3, 3, 0);
    struct extent inside[] = {
        {FAMILY_PLAIN, at, 64 * MIB}, {FAMILY_PLAIN, at + 32 * MIB, KIB}, {FAMILY_PLAIN, at + 64 * MIB, KIB}};
    check_fragmentation(inside, 3, 64 * MIB + 2 * KIB, 33, 0);
    struct extent handles[] = {
        {FAMILY_VMM, 1, 2 * MIB}, {FAMILY_VMM, 2, 2 * MIB}, {FAMILY_ARRAY, 1, 300}, {FAMILY_PLAIN, at, KIB}};
    check_fragmentation(handles, 4, 4 * MIB + 300 + KIB, 1, 4 * MIB + 300);
}

static void test_peaks_are_one_for_each_space_that_had_any(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    uint32_t first = books_plain(&books, NULL, 0);
    uint32_t second = books_site(&books, "cuMemAlloc", FAMILY_PLAIN, SPACE_DEVICE, 1, NULL, 0);
    uint32_t pinned = books_site(&books, "cuMemHostAlloc", FAMILY_PINNED, SPACE_PINNED, -1, NULL, 0);
    uint32_t managed = books_site(&books, "cuMemAllocManaged", FAMILY_MANAGED, SPACE_MANAGED, 1, NULL, 0);
    books_alloc(&books, first, 2 * MIB, 10, 1 * MS);
    books_alloc(&books, second, 4 * MIB, 20, 2 * MS);
    books_free(&books, first, 2 * MIB, 3 * MS);
    books_alloc(&books, pinned, 6 * MIB, 30, 4 * MS);
    books_event(&books, (struct event){
                            .type = EVENT_FAILED, .site = managed, .size = 5, .error = 1, .time_ns = 5 * MS});
    json_t *json = books_json(&books);
    assert_int_equal(json_array_size(json_node(json, "peaks")), 3);
    assert_int_equal(json_at(json, "peaks.0.device"), 0);
    assert_int_equal(json_at(json, "peaks.0.bytes"), 10);
    assert_int_equal(json_at(json, "peaks.0.time_ns"), 1 * MS);
    assert_int_equal(json_at(json, "peaks.1.device"), 1);
    assert_int_equal(json_at(json, "peaks.1.bytes"), 20);
    assert_string_equal(json_text_at(json, "peaks.2.space"), "pinned");
    assert_true(json_is_null(json_node(json, "peaks.2.device")));
    assert_int_equal(json_at(json, "counters.failed_allocs"), 1);
    json_decref(json);
    books_close(&books);
}

static void test_rest_of_the_device_is_told_only_from_figures_of_one_moment(void **state)
{
    (void)state;
    static const struct {
        uint64_t time_ns, free_bytes;
        long long untracked; /* -1: null */
    } samples[] = {
        {5 * MS, 6 * GIB, (long long)(2 * GIB - 100 * MIB)},
        {1 * MS, 6 * GIB, -1},           /* before the allocation */
        {5 * MS, 8 * GIB - 50 * MIB, -1} /* less in use than we track: not comparable */
    };
    for (size_t i = 0; i < 3; i++) {
        struct books books;
        books_open(&books);
        books_alloc(&books, books_plain(&books, NULL, 0), 2 * MIB, 100 * MIB, 2 * MS);
        books_event(&books, (struct event){.type = EVENT_MEMORY,
                                           .device = 0,
                                           .time_ns = samples[i].time_ns,
                                           .free_bytes = samples[i].free_bytes,
                                           .total_bytes = 8 * GIB});
        json_t *json = books_json(&books);
        assert_int_equal(json_at(json, "memory_map.0.total_bytes"), 8 * GIB);
        assert_int_equal(json_at(json, "memory_map.0.free_bytes"), samples[i].free_bytes);
        assert_int_equal(json_at(json, "memory_map.0.tracked_bytes"), 100 * MIB);
        if (samples[i].untracked < 0)
            assert_true(json_is_null(json_node(json, "memory_map.0.untracked_bytes")));
        else
            assert_int_equal(json_at(json, "memory_map.0.untracked_bytes"), samples[i].untracked);
        json_decref(json);
        books_close(&books);
    }
}

static void test_memory_owned_elsewhere_and_inside_other_blocks_is_in_no_total(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    uint32_t frame = books_python(&books, "f", "/home/me/a.py", 1);
    uint32_t own = books_plain(&books, &frame, 1);
    uint32_t opened = books_site(&books, "cuIpcOpenMemHandle", FAMILY_IPC, SPACE_FOREIGN, 0, &frame, 1);
    uint32_t tensor = books_site(&books, "c10", FAMILY_TORCH, SPACE_DEVICE, 0, &frame, 1);
    books_alloc(&books, own, 0, 20 * MIB, MS);
    books_alloc(&books, opened, 64 * MIB, 5 * MIB, 2 * MS);
    books_alloc(&books, tensor, 0, 512, 3 * MS);

    json_t *json = books_json(&books);
    assert_int_equal(json_at(json, "leaks.live_bytes"), 20 * MIB);
    assert_int_equal(json_at(json, "leaks.live_blocks"), 1);
    assert_int_equal(json_array_size(json_node(json, "leaks.sites")), 1);
    assert_int_equal(json_array_size(json_node(json, "spaces")), 2);
    assert_int_equal(json_at(json, "spaces.0.live_bytes"), 20 * MIB);
    assert_string_equal(json_text_at(json, "spaces.1.space"), "foreign");
    assert_int_equal(json_at(json, "sites.1.live_bytes"), 5 * MIB);
    assert_string_equal(json_text_at(json, "sites.2.layer"), "framework");
    assert_int_equal(json_at(json, "fragmentation.0.live_bytes"), 20 * MIB);
    json_decref(json);
    books_close(&books);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_footprint_counts_each_granule_once),
        cmocka_unit_test(test_peaks_are_one_for_each_space_that_had_any),
        cmocka_unit_test(test_rest_of_the_device_is_told_only_from_figures_of_one_moment),
        cmocka_unit_test(test_memory_owned_elsewhere_and_inside_other_blocks_is_in_no_total),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
