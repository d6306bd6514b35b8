/*
 * Who has a device's memory (report/memory_map.c): parts that add up, that are unknown rather than wrong, and
 * never more than there is; and how it is told. Expected values are sums of what the books were given.
 */
#include "unit.h"

#include <stdlib.h>

#include "report_books.h"

/* 100 MiB allocated at 2 ms on device 0 of 8 GiB. */
static void open_with_a_block(struct books *books)
{
    books_open(books);
    books_alloc(books, books_plain(books, NULL, 0), 2 * MIB, 100 * MIB, 2 * MS);
}

static void sample(struct books *books, enum sample_reason reason, uint64_t time_ns, uint64_t used_bytes)
{
    books_event(books, (struct event){.type = EVENT_SAMPLE,
                                      .detail = reason,
                                      .time_ns = time_ns,
                                      .free_bytes = 8 * GIB - used_bytes,
                                      .total_bytes = 8 * GIB});
}

static void held(struct books *books, enum event_type of, uint32_t count, uint64_t bytes, enum basis basis)
{
    books_event(
        books, (struct event){.type = of, .time_ns = 3 * MS, .count = count, .size = bytes, .detail = basis});
}

static void processes(struct books *books, uint64_t own_bytes, uint64_t all_bytes)
{
    books_event(books,
                (struct event){
                    .type = EVENT_PROCESSES, .time_ns = 9 * MS, .size = own_bytes, .total_bytes = all_bytes});
}

/* Of the first row, in MiB; -1: null. */
static long long part(const json_t *json, const char *name)
{
    char path[80];
    snprintf(path, sizeof path, "memory_map.0.%s_bytes", name);
    return json_is_null(json_node(json, path)) ? -1 : json_at(json, path) / (long long)MIB;
}

static void assert_adds_up(const json_t *json)
{
    static const char *const parts[] = {"free",          "tracked",         "context",
                                        "modules",       "pool_unused",     "graph",
                                        "granule_waste", "other_processes", "untracked"};
    long long sum = 0;
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        long long bytes = part(json, parts[i]);
        sum += bytes > 0 ? bytes : 0;
    }
    assert_int_equal(sum, part(json, "total"));
}

static void test_parts_that_are_known_add_up_to_what_is_used(void **state)
{
    (void)state;
    struct books books;
    open_with_a_block(&books);
    held(&books, EVENT_CONTEXTS, 1, 256 * MIB, BASIS_PROCESS);
    held(&books, EVENT_CODE, 3, 40 * MIB, BASIS_DEVICE);
    books_event(&books, (struct event){.type = EVENT_POOL,
                                       .key = block_key(KEY_POOL, 1),
                                       .time_ns = 8 * MS,
                                       .free_bytes = 30 * MIB,
                                       .total_bytes = 30 * MIB});
    processes(&books, 500 * MIB, 1500 * MIB);
    sample(&books, SAMPLE_EXIT, 10 * MS, 1700 * MIB);
    json_t *json = books_json(&books);
    assert_int_equal(part(json, "tracked"), 100);
    assert_int_equal(part(json, "context"), 256);
    assert_int_equal(part(json, "modules"), 40);
    assert_int_equal(part(json, "pool_unused"), 30);
    assert_int_equal(part(json, "granule_waste"), 0);
    assert_int_equal(part(json, "other_processes"), 1000);
    assert_int_equal(part(json, "process"), 500);
    assert_int_equal(part(json, "untracked"), 1700 - 100 - 256 - 40 - 30 - 1000);
    assert_adds_up(json);
    assert_false(json_is_true(json_node(json, "memory_map.0.cut_to_fit")));
    json_decref(json);
    books_close(&books);
}

/* Others gave memory back while a context was measured, or took some: the difference is not the context's. */
static void test_parts_that_come_to_more_than_there_is_are_cut(void **state)
{
    (void)state;
    struct books books;
    open_with_a_block(&books);
    held(&books, EVENT_CONTEXTS, 1, 600 * MIB, BASIS_DEVICE);
    held(&books, EVENT_CODE, 3, 40 * MIB, BASIS_DEVICE);
    sample(&books, SAMPLE_EXIT, 10 * MS, 400 * MIB);
    json_t *json = books_json(&books);
    assert_int_equal(part(json, "context"), 300);
    assert_int_equal(part(json, "modules"), 0);
    assert_int_equal(part(json, "untracked"), 0);
    assert_true(json_is_true(json_node(json, "memory_map.0.cut_to_fit")));
    assert_adds_up(json);
    json_decref(json);
    char *text = books_text(&books, false);
    assert_has(text, "the parts are cut to fit");
    free(text);
    books_close(&books);
}

static void test_what_is_not_known_is_null_and_in_the_rest(void **state)
{
    (void)state;
    struct books books;
    open_with_a_block(&books);
    held(&books, EVENT_CONTEXTS, 1, 0, BASIS_UNKNOWN);
    sample(&books, SAMPLE_EXIT, 10 * MS, 900 * MIB);
    json_t *json = books_json(&books);
    static const char *const unknown[] = {"context", "modules", "other_processes", "process"};
    for (size_t i = 0; i < COUNT_OF(unknown); i++)
        assert_int_equal(part(json, unknown[i]), -1);
    assert_int_equal(part(json, "untracked"), 800);
    assert_adds_up(json);
    json_decref(json);
    char *text = books_text(&books, false);
    assert_has(text, "  contexts          unknown     1 context; what it took could not be measured");
    assert_has(text,
               "  not known         800.0 MiB   other processes, kernels loaded as they run, libraries");
    free(text);
    books_close(&books);
}

static void test_a_process_that_nvml_does_not_list_says_nothing_of_others(void **state)
{
    (void)state;
    struct books books;
    open_with_a_block(&books);
    processes(&books, 0, 700 * MIB);
    sample(&books, SAMPLE_EXIT, 10 * MS, 900 * MIB);
    json_t *json = books_json(&books);
    assert_int_equal(part(json, "other_processes"), -1);
    assert_int_equal(part(json, "untracked"), 800);
    json_decref(json);
    books_close(&books);
}

/* An allocation, and a free, after the last sample. */
static void test_figures_of_an_earlier_moment_are_told_as_such(void **state)
{
    (void)state;
    for (int with_free = 0; with_free < 2; with_free++) {
        struct books books;
        books_open(&books);
        uint32_t site = books_plain(&books, NULL, 0);
        books_alloc(&books, site, 2 * MIB, 100 * MIB, 2 * MS);
        held(&books, EVENT_CONTEXTS, 1, 256 * MIB, BASIS_PROCESS);
        sample(&books, SAMPLE_ALLOCATION, 10 * MS, 400 * MIB);
        if (with_free)
            books_free(&books, site, 2 * MIB, 20 * MS);
        else
            books_alloc(&books, site, 200 * MIB, 10 * MIB, 20 * MS);
        json_t *json = books_json(&books);
        assert_int_equal(part(json, "tracked"), with_free ? 0 : 110);
        assert_int_equal(part(json, "context"), 256);
        assert_int_equal(part(json, "untracked"), -1);
        assert_int_equal(part(json, "granule_waste"), -1);
        assert_int_equal(json_at(json, "memory_map.0.peak.rest_bytes"), 44 * MIB);
        json_decref(json);
        char *text = books_text(&books, false);
        assert_has(text, "Who has the memory of device 0 at 10 ms, when the driver was last asked");
        assert_has(text, "  allocations       100.0 MiB   recorded here");
        assert_has(text, "  not known         44.0 MiB");
        free(text);
        books_close(&books);
    }
}

static void test_only_a_sample_of_before_the_start_tells_nothing_of_the_end(void **state)
{
    (void)state;
    struct books books;
    open_with_a_block(&books);
    sample(&books, SAMPLE_START, 1 * MS, 900 * MIB);
    json_t *json = books_json(&books);
    assert_int_equal(part(json, "untracked"), -1);
    assert_int_equal(json_at(json, "memory_map.0.first.tracked_bytes"), 0);
    assert_int_equal(json_at(json, "memory_map.0.first.time_ns"), 0);
    json_decref(json);
    char *text = books_text(&books, false);
    assert_lacks(text, "Who has the memory");
    free(text);
    books_close(&books);
}

static void test_the_first_screen_tells_where_it_is_much(void **state)
{
    (void)state;
    static const struct {
        uint64_t used_bytes;
        const char *line; /* NULL: none */
    } cases[] = {
        {100 * MIB + 8 * GIB / 20, NULL},
        {2 * GIB, "The driver     Device 0: 2.00 GiB of 8.00 GiB used: 1.65 GiB not known, 256.0 MiB CUDA "
                  "contexts\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct books books;
        open_with_a_block(&books);
        held(&books, EVENT_CONTEXTS, 1, 256 * MIB, BASIS_PROCESS);
        sample(&books, SAMPLE_EXIT, 10 * MS, cases[i].used_bytes);
        char *text = books_text(&books, false);
        if (cases[i].line)
            assert_has(text, cases[i].line);
        else
            assert_lacks(text, "The driver  ");
        free(text);
        books_close(&books);
    }
}

static void test_a_framework_is_why_three_tools_disagree(void **state)
{
    (void)state;
    struct books books;
    open_with_a_block(&books);
    uint32_t tensor = books_site(&books, "pytorch", FAMILY_TORCH, SPACE_DEVICE, 0, NULL, 0);
    books_event(&books, (struct event){.type = EVENT_ALLOC,
                                       .site = tensor,
                                       .key = books_key(&books, tensor, 2 * MIB),
                                       .size = 60 * MIB,
                                       .time_ns = 4 * MS});
    held(&books, EVENT_CONTEXTS, 1, 256 * MIB, BASIS_PROCESS);
    processes(&books, 420 * MIB, 420 * MIB);
    sample(&books, SAMPLE_EXIT, 10 * MS, 450 * MIB);
    char *text = books_text(&books, false);
    assert_has(text, "recorded here; PyTorch: 100.0 MiB reserved, 60.0 MiB allocated");
    assert_has(text, "nvidia-smi shows 420.0 MiB for this process");
    assert_has(text, "torch.cuda.memory_reserved()");
    free(text);
    books_close(&books);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_that_are_known_add_up_to_what_is_used),
        cmocka_unit_test(test_parts_that_come_to_more_than_there_is_are_cut),
        cmocka_unit_test(test_what_is_not_known_is_null_and_in_the_rest),
        cmocka_unit_test(test_a_process_that_nvml_does_not_list_says_nothing_of_others),
        cmocka_unit_test(test_figures_of_an_earlier_moment_are_told_as_such),
        cmocka_unit_test(test_only_a_sample_of_before_the_start_tells_nothing_of_the_end),
        cmocka_unit_test(test_the_first_screen_tells_where_it_is_much),
        cmocka_unit_test(test_a_framework_is_why_three_tools_disagree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
