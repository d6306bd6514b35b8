/* Layouts (ledger/layout.h) by hand: what is in none, what lies outside, what lists leave out, and what an
 * out-of-memory moment keeps. */
#include "unit.h"

#include "books.h"

static struct trace_books books;

static int set_up(void **state)
{
    trace_books_open(&books, NULL);
    *state = &books;
    return 0;
}

static int tear_down(void **state)
{
    trace_books_close(*state);
    return 0;
}

static void event_at(enum event_type type, uint32_t site, uint64_t key, uint64_t size)
{
    static uint64_t time_ns;
    struct event event = {.type = type, .site = site, .key = key, .size = size};
    event.time_ns = ++time_ns;
    assert_true(trace_books_apply(&books, &event, NULL));
}

static void driver_block(uint64_t start, uint64_t size, int device)
{
    event_at(EVENT_ALLOC, trace_books_site(&books, 1, FAMILY_PLAIN, SPACE_DEVICE, device),
             block_key(KEY_ADDRESS, start), size);
}

static void tensor(uint32_t number, uint64_t start, uint64_t size, int device)
{
    event_at(EVENT_ALLOC, trace_books_site(&books, number, FAMILY_TORCH, SPACE_DEVICE, device),
             block_key(KEY_FRAMEWORK, start), size);
}

static struct layout only_layout(struct arena *arena, int device, size_t segments, size_t pinners)
{
    const struct layout_limits limits = {segments, pinners};
    const struct layout *layouts;
    size_t count;
    assert_true(ledger_layouts(books.ledger, device, LAYOUT_NOW, &limits, arena, &layouts, &count));
    assert_int_equal(count, 1);
    return layouts[0];
}

static void test_memory_that_no_allocator_used_is_in_no_layout(void **state)
{
    struct arena arena = {0};
    const struct layout *layouts;
    size_t count;
    (void)state;
    driver_block(0x10000, 4096, 0);
    driver_block(0x20000, 4096, 0);
    driver_block(0x30000, 4096, 1);
    assert_true(
        ledger_layouts(books.ledger, 0, LAYOUT_NOW, &(struct layout_limits){9, 9}, &arena, &layouts, &count));
    assert_int_equal(count, 0);
    tensor(5, 0x20000, 1024, 0);
    assert_int_equal(only_layout(&arena, 0, 9, 9).reserved_bytes, 4096);
    assert_true(
        ledger_layouts(books.ledger, 1, LAYOUT_NOW, &(struct layout_limits){9, 9}, &arena, &layouts, &count));
    assert_int_equal(count, 0);
    arena_release(&arena);
}

static void test_a_block_outside_everything_known_is_said_to_be(void **state)
{
    struct arena arena = {0};
    (void)state;
    driver_block(0x10000, 4096, 0);
    tensor(5, 0x10000, 1024, 0);
    tensor(6, 0x11000, 512, 0); /* just behind it */
    struct layout layout = only_layout(&arena, 0, 9, 9);
    assert_int_equal(layout.allocated_bytes, 1024);
    assert_int_equal(layout.outside_bytes, 512);
    assert_int_equal(layout.stranded_bytes, 3072);
    arena_release(&arena);
}

static void test_lists_keep_what_strands_most(void **state)
{
    struct arena arena = {0};
    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t mixed = i * 7 % 20; /* segment and site `mixed` strand mixed × 1024 bytes */
        driver_block(0x100000 * (mixed + 1), 1024 * (mixed + 1), 0);
        tensor(100 + mixed, 0x100000 * (mixed + 1), 1024, 0);
    }
    struct layout layout = only_layout(&arena, 0, 4, 3);
    assert_int_equal(layout.segment_count, 20);
    assert_int_equal(layout.listed_count, 4);
    assert_int_equal(layout.pinner_count, 3);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(layout.segments[i].stranded_bytes, (19 - i) * 1024);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(layout.pinners[i].stranded_bytes, (19 - i) * 1024);
        assert_int_equal(layout.pinners[i].site,
                         trace_books_site(&books, 100 + 19 - i, FAMILY_TORCH, SPACE_DEVICE, 0));
    }
    arena_release(&arena);
}

static void test_an_out_of_memory_moment_keeps_its_layout(void **state)
{
    (void)state;
    uint32_t site = trace_books_site(&books, 1, FAMILY_PLAIN, SPACE_DEVICE, 0);
    driver_block(0x10000, 4096, 0);
    tensor(5, 0x10400, 1024, 0);
    event_at(EVENT_POOL, 0, block_key(KEY_POOL, 0x77), 0);
    trace_books_apply(&books,
                      &(struct event){.type = EVENT_POOL,
                                      .key = block_key(KEY_POOL, 0x77),
                                      .size = 5000,
                                      .free_bytes = 300,
                                      .total_bytes = 1000},
                      NULL);
    trace_books_apply(&books,
                      &(struct event){.type = EVENT_POOL,
                                      .key = block_key(KEY_POOL, 0x88),
                                      .device = 1,
                                      .free_bytes = 70,
                                      .total_bytes = 60},
                      NULL);
    event_at(EVENT_OOM, site, 0, 1 << 20);
    event_at(EVENT_FREE, 0, block_key(KEY_FRAMEWORK, 0x10400), 0);
    const struct oom *oom = ledger_oom(books.ledger, 0);
    assert_int_equal(oom->layout_count, 1);
    assert_int_equal(oom->layouts[0].stranded_bytes, 3072);
    assert_int_equal(oom->layouts[0].largest_free_bytes, 2048);
    assert_int_equal(oom->pool_unused_bytes, 300);
    assert_int_equal(ledger_pool_count(books.ledger), 2);
    assert_int_equal(ledger_pool(books.ledger, 0)->used_bytes, 700);
    assert_int_equal(ledger_pool(books.ledger, 0)->peak_reserved_bytes, 1000);
    assert_int_equal(ledger_pool(books.ledger, 0)->threshold_bytes, 5000);
    assert_int_equal(ledger_pool(books.ledger, 1)->used_bytes, 0); /* more unused than there is: all of it */
}

#define WITH_BOOKS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BOOKS(test_memory_that_no_allocator_used_is_in_no_layout),
        WITH_BOOKS(test_a_block_outside_everything_known_is_said_to_be),
        WITH_BOOKS(test_lists_keep_what_strands_most),
        WITH_BOOKS(test_an_out_of_memory_moment_keeps_its_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
