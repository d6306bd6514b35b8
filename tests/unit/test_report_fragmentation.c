/* What a report says of memory pools and of frameworks' segments, in words, in a picture and in JSON. */
#include "unit.h"

#include <stdlib.h>

#include "report_books.h"

#define SEGMENT UINT64_C(0x200000000000)
#define OTHER   (SEGMENT + 64 * MIB)

static int set_up(void **state)
{
    static struct books books;
    books_open(&books);
    *state = &books;
    return 0;
}

static int tear_down(void **state)
{
    books_close(*state);
    return 0;
}

static uint32_t tensor_site(struct books *books, const char *function, int line)
{
    uint32_t frame = books_python(books, function, "/home/me/train.py", line);
    return books_site(books, "pytorch", FAMILY_TORCH, SPACE_DEVICE, 0, &frame, 1);
}

/* Two segments; weights and a metric stay in the first, scratch of the second goes after the peak. */
static void train(struct books *books)
{
    uint32_t frame = books_python(books, "train", "/home/me/train.py", 10);
    uint32_t driver = books_site(books, "cudaMalloc", FAMILY_PLAIN, SPACE_DEVICE, 0, &frame, 1);
    uint32_t weights = tensor_site(books, "weights", 20), metric = tensor_site(books, "metric", 30);
    uint32_t scratch = tensor_site(books, "scratch", 40);
    books_alloc(books, driver, SEGMENT, 64 * MIB, 1 * SEC);
    books_alloc(books, driver, OTHER, 32 * MIB, 2 * SEC);
    books_alloc(books, weights, SEGMENT, 16 * MIB, 3 * SEC);
    books_alloc(books, metric, SEGMENT + 40 * MIB, 1 * MIB, 3 * SEC);
    books_alloc(books, scratch, OTHER, 31 * MIB, 4 * SEC);
    books_free(books, scratch, OTHER, 5 * SEC);
}

/* All white space as one space each: how a sentence is broken into lines is no matter here. */
static char *flow(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if ((*from != ' ' && *from != '\n') || (to > text && to[-1] != ' '))
            *to++ = *from == '\n' ? ' ' : *from;
    *to = '\0';
    return text;
}

static void test_the_first_screen_tells_the_moment_when_more_is_stranded(void **state)
{
    struct books *books = *state;
    train(books);
    char *text = flow(books_text(books, false));
    /* At the peak 47 + 1 MiB, at exit 47 and 32 MiB that can go. */
    assert_has(text,
               "PyTorch Device 0 at its peak: 96.0 MiB reserved, 48.0 MiB allocated, 48.0 MiB free: 0 B "
               "releasable by torch.cuda.empty_cache(), 48.0 MiB stranded; largest free block 24.0 MiB; "
               "stranded by ");
    free(text);
}

static void test_each_moment_is_listed_and_drawn(void **state)
{
    struct books *books = *state;
    train(books);
    char *text = books_text(books, false);
    assert_has(text, "Memory of PyTorch on device 0 at the device's peak, at 4.0 s\n"
                     "  reserved          96.0 MiB in 2 segments\n"
                     "  allocated         48.0 MiB in 3 blocks\n");
    assert_has(text, "Memory of PyTorch on device 0 at exit\n"
                     "  reserved          96.0 MiB in 2 segments\n"
                     "  allocated         17.0 MiB in 2 blocks\n"
                     "  free              79.0 MiB; the largest free block is 32.0 MiB, 59.5% is not in it\n"
                     "  releasable        32.0 MiB by torch.cuda.empty_cache()\n"
                     "  stranded          47.0 MiB in segments that living blocks keep\n"
                     "  stranded by       23.5 MiB   train.py:20 in weights, 1 block\n"
                     "                    23.5 MiB   train.py:30 in metric, 1 block\n"
                     "  segments, most stranded first: # allocated, + half and more, - less, . free\n"
                     "  0x200000000000  64.0 MiB   "
                     "[################........................#.......................]\n"
                     "                    and 1 more\n");
    assert_lacks(text, "0x200004000000  32.0 MiB   [....");
    free(text);
}

static void test_json_has_both_moments(void **state)
{
    struct books *books = *state;
    train(books);
    json_t *json = books_json(books);
    const json_t *framework = json_node(json, "fragmentation.0.frameworks.0");
    assert_string_equal(json_text_at(framework, "name"), "pytorch");
    static const struct {
        const char *path;
        long long value;
    } wanted[] = {
        {"reserved_bytes", 96 * MIB},
        {"allocated_bytes", 17 * MIB},
        {"free_bytes", 79 * MIB},
        {"releasable_bytes", 32 * MIB},
        {"stranded_bytes", 47 * MIB},
        {"largest_free_bytes", 32 * MIB},
        {"segment_count", 2},
        {"segments.0.address", SEGMENT},
        {"segments.0.stranded_bytes", 47 * MIB},
        {"segments.1.releasable_bytes", 32 * MIB},
        {"at_peak.time_ns", 4 * SEC},
        {"at_peak.allocated_bytes", 48 * MIB},
        {"at_peak.releasable_bytes", 0},
        {"at_peak.largest_free_bytes", 24 * MIB},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_int_equal(json_at(framework, wanted[i].path), wanted[i].value);
    double ratio = json_real_value(json_node(framework, "external_fragmentation"));
    assert_true(ratio > 1 - 32.0 / 79 - 1e-6 && ratio < 1 - 32.0 / 79 + 1e-6);
    long long weights = json_at(framework, "pinners.0");
    assert_string_equal(
        json_text_at(json_array_get(json_object_get(json, "sites"), (size_t)weights), "title"),
        "train.py:20 in weights");
    json_decref(json);
}

static void test_tensors_have_a_peak_of_their_own(void **state)
{
    struct books *books = *state;
    train(books);
    char *text = books_text(books, true);
    assert_has(text, "Peak of tensors, device 0: 48.0 MiB at 4.0 s, held by\n"
                     "    31.0 MiB   64.6%  train.py:40 in scratch, 1 block; without it 17.0 MiB\n");
    json_t *json = books_json(books);
    assert_int_equal(json_at(json, "peaks.0.bytes"), 96 * MIB);
    assert_int_equal(json_at(json, "framework_peaks.0.bytes"), 48 * MIB);
    assert_int_equal(json_at(json, "framework_peaks.0.sites.0.bytes"), 31 * MIB);
    json_decref(json);
    free(text);
}

static void test_another_allocator_is_told_by_its_name(void **state)
{
    struct books *books = *state;
    uint32_t frame = books_python(books, "load", "/home/me/table.py", 5);
    uint32_t driver = books_plain(books, &frame, 1);
    uint32_t rmm = books_site(books, "rmm", FAMILY_ALLOCATOR, SPACE_DEVICE, 0, &frame, 1);
    books_alloc(books, driver, SEGMENT, 8 * MIB, 1 * SEC);
    books_event(books, (struct event){.type = EVENT_ALLOC,
                                      .site = rmm,
                                      .key = block_key(KEY_ALLOCATOR, SEGMENT),
                                      .size = 8 * MIB,
                                      .time_ns = 2 * SEC});
    char *text = flow(books_text(books, false));
    assert_has(text, "rmm Device 0 at exit: 8.0 MiB reserved, 8.0 MiB allocated, nothing free");
    assert_has(text, "Memory of rmm on device 0 at exit");
    assert_lacks(text, "empty_cache");
    free(text);
}

static void sample_pool(struct books *books, uint64_t reserved, uint64_t unused, uint64_t threshold)
{
    books_event(books, (struct event){.type = EVENT_POOL,
                                      .key = block_key(KEY_POOL, 0x77),
                                      .size = threshold,
                                      .total_bytes = reserved,
                                      .free_bytes = unused,
                                      .time_ns = 3 * SEC});
}

static void test_a_pool_is_worth_a_line_when_it_keeps_something(void **state)
{
    struct books *books = *state;
    uint32_t frame = books_python(books, "load", "/home/me/table.py", 5);
    books_alloc(books, books_site(books, "cudaMallocAsync", FAMILY_POOL, SPACE_DEVICE, 0, &frame, 1), SEGMENT,
                10 * MIB, 1 * SEC);
    sample_pool(books, 64 * MIB, 54 * MIB, 40 * MIB);
    char *text = flow(books_text(books, false));
    assert_has(text, "Memory pool Device 0: 64.0 MiB reserved, 10.0 MiB used; its release threshold keeps "
                     "40.0 MiB unused that cuMemPoolTrimTo() would give back");
    json_t *json = books_json(books);
    assert_int_equal(json_at(json, "fragmentation.0.pools.0.used_bytes"), 10 * MIB);
    assert_int_equal(json_at(json, "fragmentation.0.pools.0.trimmable_bytes"), 54 * MIB);
    assert_int_equal(json_at(json, "fragmentation.0.pools.0.kept_bytes"), 40 * MIB);
    json_decref(json);
    free(text);
}

static void test_a_pool_that_keeps_nothing_is_in_json_only(void **state)
{
    struct books *books = *state;
    uint32_t frame = books_python(books, "load", "/home/me/table.py", 5);
    books_alloc(books, books_site(books, "cudaMallocAsync", FAMILY_POOL, SPACE_DEVICE, 0, &frame, 1), SEGMENT,
                10 * MIB, 1 * SEC);
    sample_pool(books, 64 * MIB, 54 * MIB, 0);
    char *text = books_text(books, true);
    assert_lacks(text, "Memory pool");
    free(text);
    json_t *json = books_json(books);
    assert_int_equal(json_at(json, "fragmentation.0.pools.0.kept_bytes"), 0);
    json_decref(json);
}

#define WITH_BOOKS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BOOKS(test_the_first_screen_tells_the_moment_when_more_is_stranded),
        WITH_BOOKS(test_each_moment_is_listed_and_drawn),
        WITH_BOOKS(test_json_has_both_moments),
        WITH_BOOKS(test_tensors_have_a_peak_of_their_own),
        WITH_BOOKS(test_another_allocator_is_told_by_its_name),
        WITH_BOOKS(test_a_pool_is_worth_a_line_when_it_keeps_something),
        WITH_BOOKS(test_a_pool_that_keeps_nothing_is_in_json_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
