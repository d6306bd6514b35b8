/* What each event does to the ledger (ledger/ledger.h, ledger/event.h), by small examples. */
#include "unit.h"

#include <string.h>

#include "books.h"
#include "kernel.h"

#define KEY(number) block_key(KEY_ADDRESS, (number))

static struct trace_books books;
static uint64_t now_ns;

static int set_up(void **state)
{
    now_ns = 0;
    trace_books_open(&books, NULL);
    *state = &books;
    return 0;
}

static int tear_down(void **state)
{
    trace_books_close(*state);
    return 0;
}

static uint32_t device_site(uint32_t number)
{
    return trace_books_site(&books, number, FAMILY_PLAIN, SPACE_DEVICE, 0);
}

static bool happen(struct event event)
{
    event.time_ns = now_ns += 10;
    return trace_books_apply(&books, &event, NULL);
}

static bool allocate(uint32_t site, uint64_t number, uint64_t size)
{
    return happen((struct event){.type = EVENT_ALLOC, .site = site, .key = KEY(number), .size = size});
}

static bool release(uint64_t number, struct block *ended)
{
    struct event event = {.type = EVENT_FREE, .key = KEY(number), .time_ns = now_ns += 10};
    return trace_books_apply(&books, &event, ended);
}

static const struct ledger_space *space(size_t index)
{
    return ledger_space(books.ledger, index);
}

static void test_an_empty_ledger_answers_nothing(void **state)
{
    (void)state;
    static const struct ledger_counters none;
    struct site_totals totals = ledger_site(books.ledger, 7), zero = {0};
    assert_memory_equal(ledger_counters(books.ledger), &none, sizeof none);
    assert_memory_equal(&totals, &zero, sizeof zero);
    assert_int_equal(ledger_space_count(books.ledger), 0);
    assert_null(ledger_space(books.ledger, 0));
    assert_null(ledger_oom(books.ledger, 0));
    assert_null(ledger_memory(books.ledger, SIZE_MAX));
    assert_null(ledger_find(books.ledger, KEY(1)));
}

static void test_the_peak_keeps_what_every_site_held_then(void **state)
{
    (void)state;
    uint32_t early = device_site(0), late = device_site(1), idle = device_site(2);
    allocate(early, 1, 100); /* 100 */
    allocate(early, 2, 50);  /* 150 */
    allocate(late, 3, 30);   /* 180, the peak, at 30 ns */
    release(1, NULL);        /* 80 */
    allocate(idle, 4, 100);  /* 180 again: no new peak */
    assert_int_equal(space(0)->totals.peak_bytes, 180);
    assert_int_equal(space(0)->totals.peak_time_ns, 30);
    assert_int_equal(ledger_site(books.ledger, early).bytes_at_peak, 150);
    assert_int_equal(ledger_site(books.ledger, early).blocks_at_peak, 2);
    assert_int_equal(ledger_site(books.ledger, late).bytes_at_peak, 30);
    assert_int_equal(ledger_site(books.ledger, idle).bytes_at_peak, 0);
    assert_int_equal(ledger_site(books.ledger, idle).totals.peak_bytes, 100);
    allocate(late, 5, 1); /* 181, and everybody's share is what they hold now */
    assert_int_equal(ledger_site(books.ledger, early).bytes_at_peak, 50);
    assert_int_equal(ledger_site(books.ledger, late).blocks_at_peak, 2);
    assert_int_equal(ledger_site(books.ledger, idle).bytes_at_peak, 100);
}

static void test_spaces_devices_and_layers_have_their_own_totals(void **state)
{
    (void)state;
    static const struct {
        enum family family;
        enum space_kind space;
        int device;
        enum layer layer;
    } kinds[] = {{FAMILY_PLAIN, SPACE_DEVICE, 0, LAYER_DRIVER},
                 {FAMILY_PLAIN, SPACE_DEVICE, 1, LAYER_DRIVER},
                 {FAMILY_MANAGED, SPACE_MANAGED, 0, LAYER_DRIVER},
                 {FAMILY_PINNED, SPACE_PINNED, -1, LAYER_DRIVER},
                 {FAMILY_TORCH, SPACE_DEVICE, 0, LAYER_FRAMEWORK}};
    for (uint32_t i = 0; i < COUNT_OF(kinds); i++)
        allocate(trace_books_site(&books, i, kinds[i].family, kinds[i].space, kinds[i].device), i, 1000 + i);
    allocate(trace_books_site(&books, 99, FAMILY_POOL, SPACE_DEVICE, 0), 99, 5);
    assert_int_equal(ledger_space_count(books.ledger), COUNT_OF(kinds));
    for (uint32_t i = 0; i < COUNT_OF(kinds); i++) {
        assert_int_equal(space(i)->kind, kinds[i].space);
        assert_int_equal(space(i)->device, kinds[i].device);
        assert_int_equal(space(i)->layer, kinds[i].layer);
        assert_int_equal(space(i)->totals.live_bytes, 1000 + i + (i == 0 ? 5 : 0));
    }
    /* A framework's blocks are inside driver blocks: never added to the counters. */
    assert_int_equal(ledger_counters(books.ledger)->allocs, 5);
}

static void test_a_free_hands_the_block_back(void **state)
{
    (void)state;
    uint32_t site = device_site(0);
    struct block ended;
    happen((struct event){.type = EVENT_ALLOC, .site = site, .key = KEY(1), .size = 64, .context = 3});
    assert_non_null(ledger_find(books.ledger, KEY(1)));
    assert_true(release(1, &ended));
    assert_true(ended.key == KEY(1) && ended.size == 64 && ended.site == site && ended.context == 3 &&
                ended.born_ns == 10 && ended.references == 1);
    assert_null(ledger_find(books.ledger, KEY(1)));
    assert_false(release(1, &ended)); /* again: no such block */
    assert_int_equal(ledger_counters(books.ledger)->frees, 1);
    assert_int_equal(ledger_counters(books.ledger)->dropped_events, 0);
}

static void test_equal_numbers_of_two_key_spaces_are_two_blocks(void **state)
{
    (void)state;
    uint32_t site = device_site(0);
    for (int i = 0; i < KEY_SPACE_COUNT; i++) {
        uint64_t key = block_key((enum key_space)i, 0x1234);
        assert_int_equal(block_key_space(key), i);
        assert_int_equal(block_key_number(key), 0x1234);
        happen((struct event){.type = EVENT_ALLOC, .site = site, .key = key, .size = 1});
    }
    assert_int_equal(space(0)->totals.live_blocks, KEY_SPACE_COUNT);
    assert_int_equal(ledger_counters(books.ledger)->replaced_blocks, 0);
}

static void test_a_refused_free_leaves_no_trace(void **state)
{
    (void)state;
    uint32_t site = device_site(0);
    struct block ended;
    allocate(site, 1, 64);
    struct site_totals before = ledger_site(books.ledger, site);
    release(1, &ended);
    happen((struct event){.type = EVENT_UNFREE,
                          .key = ended.key,
                          .site = ended.site,
                          .size = ended.size,
                          .context = ended.context,
                          .born_ns = ended.born_ns});
    struct site_totals after = ledger_site(books.ledger, site);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(ledger_counters(books.ledger)->frees, 0);
    assert_int_equal(ledger_find(books.ledger, KEY(1))->born_ns, 10);
}

static void test_a_retained_block_ends_with_its_last_reference(void **state)
{
    (void)state;
    uint32_t site = device_site(0);
    struct block ended;
    allocate(site, 1, 64);
    assert_true(happen((struct event){.type = EVENT_RETAIN, .key = KEY(1)}));
    assert_true(release(1, &ended));
    assert_int_equal(ended.references, 2); /* another remains */
    assert_int_equal(space(0)->totals.live_bytes, 64);
    assert_int_equal(ledger_counters(books.ledger)->frees, 0);
    /* The driver refuses a reference's free: it is back, and two frees are needed again. */
    happen((struct event){.type = EVENT_UNFREE, .key = KEY(1), .site = site, .size = 64, .born_ns = 10});
    assert_true(release(1, NULL));
    assert_true(release(1, &ended));
    assert_int_equal(ended.references, 1);
    assert_int_equal(ledger_counters(books.ledger)->frees, 1);
    assert_int_equal(space(0)->totals.live_blocks, 0);
    assert_false(happen((struct event){.type = EVENT_RETAIN, .key = KEY(1)}));
}

static void test_memory_behind_a_handle_is_as_large_as_it_turns_out_to_be(void **state)
{
    (void)state;
    uint32_t site = device_site(0);
    uint64_t handle = block_key(KEY_HANDLE, 1);
    allocate(site, 1, 64);
    happen((struct event){.type = EVENT_ALLOC, .site = site, .key = handle});
    assert_true(happen((struct event){.type = EVENT_RESIZE, .key = handle, .size = 4096}));
    assert_int_equal(space(0)->totals.live_bytes, 4160);
    assert_int_equal(space(0)->totals.allocated_bytes, 4160);
    assert_int_equal(space(0)->totals.peak_bytes, 4160);
    assert_int_equal(space(0)->totals.live_blocks, 2);
    assert_int_equal(ledger_counters(books.ledger)->allocs, 2);
    assert_true(happen((struct event){.type = EVENT_FREE, .key = handle}));
    assert_int_equal(space(0)->totals.live_bytes, 64);
    /* What has an address keeps its size, and what is not there has none. */
    assert_false(happen((struct event){.type = EVENT_RESIZE, .key = KEY(1), .size = 4096}));
    assert_false(happen((struct event){.type = EVENT_RESIZE, .key = handle, .size = 4096}));
    assert_int_equal(space(0)->totals.live_bytes, 64);
}

static void test_a_context_takes_its_blocks_with_it_and_no_others(void **state)
{
    (void)state;
    uint32_t site = device_site(0);
    for (uint64_t i = 0; i < 1000; i++)
        happen((struct event){
            .type = EVENT_ALLOC, .site = site, .key = KEY(i), .size = 1, .context = (uint32_t)(i % 4)});
    happen((struct event){.type = EVENT_RETAIN, .key = KEY(1)}); /* references do not hold it */
    assert_true(happen((struct event){.type = EVENT_TEARDOWN, .context = 1}));
    assert_int_equal(space(0)->totals.live_blocks, 750);
    assert_int_equal(space(0)->totals.teardown_frees, 250);
    assert_int_equal(space(0)->totals.frees, 0);
    assert_int_equal(ledger_counters(books.ledger)->teardown_frees, 250);
    assert_null(ledger_find(books.ledger, KEY(1)));
    assert_non_null(ledger_find(books.ledger, KEY(2)));
    /* 0 is no context: what belongs to none stays. */
    happen((struct event){.type = EVENT_TEARDOWN, .context = 0});
    assert_int_equal(space(0)->totals.live_blocks, 750);
}

static void test_an_address_handed_out_twice_ends_the_older_block(void **state)
{
    (void)state;
    uint32_t older = device_site(0), newer = device_site(1);
    allocate(older, 1, 100);
    allocate(newer, 1, 40);
    assert_int_equal(ledger_counters(books.ledger)->replaced_blocks, 1);
    assert_int_equal(ledger_counters(books.ledger)->allocs, 2);
    assert_int_equal(ledger_counters(books.ledger)->frees, 1);
    assert_int_equal(ledger_site(books.ledger, older).totals.live_blocks, 0);
    assert_int_equal(space(0)->totals.live_bytes, 40);
    assert_int_equal(space(0)->totals.peak_bytes, 100); /* they never lived together */
}

static void test_refused_allocations_are_counted_and_change_nothing_else(void **state)
{
    (void)state;
    uint32_t site = device_site(0), torch = trace_books_site(&books, 1, FAMILY_TORCH, SPACE_DEVICE, 0);
    happen((struct event){.type = EVENT_FAILED, .site = site, .size = 10, .error = 1});
    happen((struct event){.type = EVENT_FAILED, .site = torch, .size = 10, .error = 1});
    happen((struct event){.type = EVENT_FOREIGN_FREE, .key = KEY(9)});
    assert_int_equal(ledger_site(books.ledger, site).failed, 1);
    assert_int_equal(ledger_site(books.ledger, torch).failed, 1);
    assert_int_equal(ledger_counters(books.ledger)->failed_allocs, 1);
    assert_int_equal(ledger_counters(books.ledger)->foreign_frees, 1);
    assert_int_equal(ledger_counters(books.ledger)->allocs + ledger_counters(books.ledger)->frees, 0);
    assert_int_equal(ledger_oom_count(books.ledger), 0);
}

static void test_out_of_memory_names_the_holders_most_bytes_first(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {30, 10, 50, 10, 20};
    static const uint32_t order[] = {2, 0, 4, 1, 3};
    for (uint32_t i = 0; i < COUNT_OF(sizes); i++)
        allocate(device_site(i), i, sizes[i]);
    allocate(trace_books_site(&books, 50, FAMILY_PLAIN, SPACE_DEVICE, 1), 50, 1000); /* of another device */
    allocate(device_site(60), 60, 7);
    release(60, NULL); /* holds nothing any more */
    struct event event = {.type = EVENT_OOM, .site = device_site(70), .size = 999, .error = 2};
    event.free_bytes = 5;
    event.total_bytes = 125;
    happen(event);
    const struct oom *oom = ledger_oom(books.ledger, 0);
    assert_int_equal(oom->time_ns, now_ns);
    assert_int_equal(oom->error, 2);
    assert_true(oom->requested_bytes == 999 && oom->free_bytes == 5 && oom->total_bytes == 125);
    assert_int_equal(oom->live_bytes, 120);
    assert_int_equal(oom->share_count, COUNT_OF(order));
    for (uint32_t i = 0; i < COUNT_OF(order); i++) {
        assert_int_equal(oom->shares[i].site, device_site(order[i]));
        assert_int_equal(oom->shares[i].bytes, sizes[order[i]]);
        assert_int_equal(oom->shares[i].blocks, 1);
    }
    assert_int_equal(ledger_counters(books.ledger)->failed_allocs, 1);
}

/* What NVML said is of that moment, or is not known then; and a refusal is a sample of its device. */
static void test_out_of_memory_tells_who_else_has_memory_then(void **state)
{
    (void)state;
    struct event refusal = {
        .type = EVENT_OOM, .site = device_site(0), .size = 99, .free_bytes = 40, .total_bytes = 1000};
    happen((struct event){.type = EVENT_CONTEXTS, .size = 256, .count = 1, .detail = BASIS_PROCESS});
    happen((struct event){.type = EVENT_PROCESSES, .size = 300, .total_bytes = 900});
    happen(refusal);
    happen((struct event){.type = EVENT_PROCESSES, .size = 0, .total_bytes = 900}); /* not listed */
    happen(refusal);
    happen((struct event){.type = EVENT_PROCESSES, .size = 300, .total_bytes = 900});
    now_ns += UINT64_C(3000000000);
    happen(refusal);
    static const uint64_t own[] = {300, 0, 0};
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        const struct oom *oom = ledger_oom(books.ledger, i);
        assert_int_equal(oom->context_bytes, 256);
        assert_int_equal(oom->own_bytes, own[i]);
        assert_int_equal(oom->all_bytes, own[i] ? 900 : 0);
    }
    const struct memory_sample *sample = ledger_memory(books.ledger, 0);
    assert_int_equal(sample->reason, SAMPLE_OOM);
    assert_int_equal(sample->time_ns, now_ns);
    assert_true(sample->free_bytes == 40 && sample->context_bytes == 256);
}

/* A framework that retries without end must not fill memory, nor 10,000 sites make each try slow. */
static void test_out_of_memory_moments_are_bounded(void **state)
{
    (void)state;
    enum { SITES = 10000 };
    uint32_t site = device_site(0);
    for (uint32_t i = 0; i < SITES; i++)
        allocate(device_site(i), i, i + 1); /* rising: the worst order for an insertion */
    for (int i = 0; i < 2 * LEDGER_OOMS_MAX; i++)
        assert_true(happen((struct event){.type = EVENT_OOM, .site = site, .size = 1, .error = 2}));
    assert_int_equal(ledger_oom_count(books.ledger), LEDGER_OOMS_MAX);
    assert_int_equal(ledger_counters(books.ledger)->failed_allocs, 2 * LEDGER_OOMS_MAX);
    for (size_t i = 0; i < LEDGER_OOMS_MAX; i++) {
        const struct oom *oom = ledger_oom(books.ledger, i);
        assert_int_equal(oom->share_count, SITES);
        for (uint32_t j = 0; j < SITES; j++)
            assert_int_equal(oom->shares[j].bytes, SITES - j);
    }
}

static void test_the_latest_word_of_the_driver_is_kept_per_device(void **state)
{
    (void)state;
    for (int32_t i = 0; i < 6; i++)
        happen((struct event){
            .type = EVENT_MEMORY, .device = i % 2, .free_bytes = (uint64_t)i, .total_bytes = 100});
    assert_int_equal(ledger_memory_count(books.ledger), 2);
    assert_int_equal(ledger_memory(books.ledger, 0)->free_bytes, 4);
    assert_int_equal(ledger_memory(books.ledger, 1)->free_bytes, 5);
    assert_int_equal(ledger_memory(books.ledger, 1)->time_ns, 60);
}

static void test_an_event_of_an_unknown_site_is_dropped_and_counted(void **state)
{
    (void)state;
    assert_false(allocate(5, 1, 10));
    assert_false(allocate(CATALOG_NONE, 1, 10));
    assert_false(happen((struct event){.type = EVENT_OOM, .site = CATALOG_NONE, .size = 10}));
    assert_int_equal(ledger_counters(books.ledger)->dropped_events, 3);
    assert_int_equal(ledger_counters(books.ledger)->events, 3);
    assert_int_equal(ledger_counters(books.ledger)->allocs, 0);
    assert_null(ledger_find(books.ledger, KEY(1)));
}

static bool count_to_three(const struct block *block, void *arg)
{
    int *seen = arg;
    assert_int_equal(block->key, KEY(*seen));
    return ++*seen < 3;
}

static void test_blocks_are_visited_oldest_first_until_told_to_stop(void **state)
{
    (void)state;
    int seen = 0;
    for (uint64_t i = 0; i < 5; i++)
        allocate(device_site(0), i, 1);
    ledger_each_block(books.ledger, count_to_three, &seen);
    assert_int_equal(seen, 3);
}

/* The kernel refuses at every moment in turn; what was taken is exact all the same. */
static void test_short_of_memory_events_are_dropped_whole(void **state)
{
    (void)state;
    uint64_t taken = 0, dropped = 0;
    enum { BLOCKS = 60000 };
    for (uint32_t i = 0; i < BLOCKS; i++) {
        uint32_t site = i % 100 == 0 ? device_site(i) : i / 100 * 100 % catalog_site_count(books.catalog);
        kernel_grants(i % 1000 == 999 ? KERNEL_GRANTS_ALL : (int)(i % 2));
        bool applied = allocate(site, i, 3);
        kernel_grants(KERNEL_GRANTS_ALL);
        taken += applied;
        dropped += !applied;
        assert_int_equal(ledger_find(books.ledger, KEY(i)) != NULL, applied);
    }
    assert_true(dropped > 0);
    assert_int_equal(ledger_counters(books.ledger)->dropped_events, dropped);
    assert_int_equal(ledger_counters(books.ledger)->allocs, taken);
    assert_int_equal(space(0)->totals.live_blocks, taken);
    assert_int_equal(space(0)->totals.live_bytes, 3 * taken);
    for (uint32_t i = 0; i < BLOCKS; i++)
        release(i, NULL);
    assert_int_equal(ledger_counters(books.ledger)->frees, taken);
    assert_int_equal(space(0)->totals.live_bytes, 0);
}

static void test_one_block_at_a_time_takes_nothing_from_the_kernel(void **state)
{
    (void)state;
    uint32_t site = device_site(0);
    for (uint64_t i = 0; i < 2; i++) { /* a site's history begins with its second block */
        allocate(site, i, 10);
        release(i, NULL);
    }
    kernel_grants(0);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(allocate(site, i, 10));
        assert_true(release(i, NULL));
    }
    assert_int_equal(kernel_refusals(), 0);
    kernel_grants(KERNEL_GRANTS_ALL);
}

static void test_a_ledger_without_memory_is_none(void **state)
{
    (void)state;
    struct arena arena = {0};
    for (int mappings = 0; mappings < 2; mappings++) { /* its own, and the blocks' table */
        kernel_grants(mappings);
        assert_null(ledger_create(&arena, books.catalog));
        kernel_grants(KERNEL_GRANTS_ALL);
        arena_release(&arena);
    }
}

#define WITH_BOOKS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BOOKS(test_an_empty_ledger_answers_nothing),
        WITH_BOOKS(test_the_peak_keeps_what_every_site_held_then),
        WITH_BOOKS(test_spaces_devices_and_layers_have_their_own_totals),
        WITH_BOOKS(test_a_free_hands_the_block_back),
        WITH_BOOKS(test_equal_numbers_of_two_key_spaces_are_two_blocks),
        WITH_BOOKS(test_a_refused_free_leaves_no_trace),
        WITH_BOOKS(test_a_retained_block_ends_with_its_last_reference),
        WITH_BOOKS(test_memory_behind_a_handle_is_as_large_as_it_turns_out_to_be),
        WITH_BOOKS(test_a_context_takes_its_blocks_with_it_and_no_others),
        WITH_BOOKS(test_an_address_handed_out_twice_ends_the_older_block),
        WITH_BOOKS(test_refused_allocations_are_counted_and_change_nothing_else),
        WITH_BOOKS(test_out_of_memory_names_the_holders_most_bytes_first),
        WITH_BOOKS(test_out_of_memory_tells_who_else_has_memory_then),
        WITH_BOOKS(test_out_of_memory_moments_are_bounded),
        WITH_BOOKS(test_the_latest_word_of_the_driver_is_kept_per_device),
        WITH_BOOKS(test_an_event_of_an_unknown_site_is_dropped_and_counted),
        WITH_BOOKS(test_blocks_are_visited_oldest_first_until_told_to_stop),
        WITH_BOOKS(test_one_block_at_a_time_takes_nothing_from_the_kernel),
        WITH_BOOKS(test_a_ledger_without_memory_is_none),
        WITH_BOOKS(test_short_of_memory_events_are_dropped_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
