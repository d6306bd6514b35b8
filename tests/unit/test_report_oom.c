/* Out of memory in a report: the cause and the figures, each by arithmetic from a moment made up by hand. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "report_books.h"

static void refuse(struct books *books, uint32_t site, uint64_t bytes, uint64_t free_bytes,
                   uint64_t total_bytes, uint64_t time_ns)
{
    books_event(books, (struct event){.type = EVENT_OOM,
                                      .site = site,
                                      .size = bytes,
                                      .error = 2,
                                      .time_ns = time_ns,
                                      .free_bytes = free_bytes,
                                      .total_bytes = total_bytes});
}

static void sample(struct books *books, uint64_t free_bytes, uint64_t total_bytes, uint64_t time_ns)
{
    books_event(books, (struct event){.type = EVENT_MEMORY,
                                      .device = 0,
                                      .time_ns = time_ns,
                                      .free_bytes = free_bytes,
                                      .total_bytes = total_bytes});
}

/* One row of `ooms`: its cause and what its verdict says. */
static void check_cause(struct books *books, const char *cause, const char *says)
{
    json_t *json = books_json(books);
    assert_string_equal(json_text_at(json, "ooms.0.cause"), cause);
    assert_has(json_text_at(json, "ooms.0.verdict"), says);
    json_decref(json);
}

static void test_cause_follows_from_the_figures(void **state)
{
    (void)state;
    static const struct {
        enum space_kind space;
        uint64_t live, requested, free_bytes, total_bytes;
        const char *cause, *says;
    } moments[] = {
        {SPACE_DEVICE, 7 * GIB, 2 * GIB, GIB / 2, 8 * GIB, "full", "Really full: 1.50 GiB were missing"},
        /* A context's worth of others' memory is no other process. */
        {SPACE_DEVICE, 27 * GIB / 4, GIB, 3 * GIB / 4, 8 * GIB, "full", "Really full: 256.0 MiB were"},
        {SPACE_DEVICE, 7 * GIB, GIB / 4, GIB / 2, 8 * GIB, "limit", "Not full: 512.0 MiB were free"},
        {SPACE_DEVICE, 1 * GIB, 2 * GIB, GIB, 8 * GIB, "elsewhere",
         "of 7.00 GiB in use its recorded allocations are 1.00 GiB"},
        /* Most is this process's, but what it asked for fits beside that. */
        {SPACE_DEVICE, 70 * GIB, 5 * GIB, 3 * GIB / 2, 80 * GIB, "elsewhere",
         "untracked memory hold 8.50 GiB"},
        {SPACE_DEVICE, 1 * GIB, 9 * GIB, GIB, 8 * GIB, "too_large",
         "More than the whole device has (8.00 GiB)"},
        {SPACE_DEVICE, 1 * GIB, 2 * GIB, 0, 0, "unknown", "Unknown"},
        {SPACE_PINNED, 1 * GIB, 2 * GIB, 7 * GIB, 8 * GIB, "host", "refused host memory"},
    };
    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
        struct books books;
        books_open(&books);
        bool pinned = moments[i].space == SPACE_PINNED;
        uint32_t site = books_site(&books, "api", pinned ? FAMILY_PINNED : FAMILY_PLAIN, moments[i].space,
                                   pinned ? -1 : 0, NULL, 0);
        books_alloc(&books, site, 2 * MIB, moments[i].live, MS);
        refuse(&books, site, moments[i].requested, moments[i].free_bytes, moments[i].total_bytes, 2 * MS);
        check_cause(&books, moments[i].cause, moments[i].says);
        json_t *json = books_json(&books);
        assert_int_equal(json_at(json, "ooms.0.live_bytes"), moments[i].live);
        assert_int_equal(json_is_null(json_node(json, "ooms.0.free_bytes")), moments[i].total_bytes == 0);
        assert_true(json_is_false(json_node(json, "ooms.0.went_on")));
        json_decref(json);
        books_close(&books);
    }
}

/* A device of 8 GiB of which 256 MiB are a context's; PyTorch's cache has taken seven segments of 1 GiB and
 * has a block of `allocated` at the start of each, but the last `empty` are all free. */
struct cached {
    struct books books;
    uint32_t cache, tensor, other;
};

static void cached_open(struct cached *cached, uint64_t allocated, int empty)
{
    struct books *books = &cached->books;
    books_open(books);
    uint32_t torch = books_module(books, "/usr/lib/python3/dist-packages/torch/lib/libc10_cuda.so");
    uint32_t frames[] = {books_native(books, torch, 0x100), books_python(books, "f", "/home/me/a.py", 7)};
    cached->cache = books_site(books, "cudaMalloc", FAMILY_PLAIN, SPACE_DEVICE, 0, frames, 2);
    cached->tensor = books_site(books, "pytorch", FAMILY_TORCH, SPACE_DEVICE, 0, frames + 1, 1);
    cached->other = books_plain(books, frames + 1, 1);
    for (uint64_t i = 0; i < 7; i++) {
        books_alloc(books, cached->cache, (i + 1) * GIB, GIB, MS);
        books_alloc(books, cached->tensor, (i + 1) * GIB, allocated, 2 * MS);
        if (i >= 7 - (uint64_t)empty)
            books_free(books, cached->tensor, (i + 1) * GIB, 3 * MS);
    }
}

#define FREE_THEN (768 * MIB)

static void test_what_a_cache_would_give_back_is_told_from_what_it_cannot(void **state)
{
    (void)state;
    struct cached cached;
    /* One free segment and 768 MiB: 1.5 GiB would fit once the cache is emptied, 2 GiB would not: of those
     * 1 GiB lies in pieces. */
    cached_open(&cached, GIB - 256 * MIB, 1);
    refuse(&cached.books, cached.other, 3 * GIB / 2, FREE_THEN, 8 * GIB, 4 * MS);
    json_t *json = books_json(&cached.books);
    assert_string_equal(json_text_at(json, "ooms.0.cause"), "cached");
    assert_has(json_text_at(json, "ooms.0.verdict"), "1.00 GiB were reserved by PyTorch but unallocated");
    assert_has(json_text_at(json, "ooms.0.advice"), "torch.cuda.empty_cache()");
    assert_int_equal(json_at(json, "ooms.0.releasable_bytes"), GIB);
    assert_int_equal(json_at(json, "ooms.0.stranded_bytes"), 6 * 256 * MIB);
    assert_int_equal(json_at(json, "ooms.0.elsewhere_bytes"), 256 * MIB);
    assert_int_equal(json_at(json, "ooms.0.largest_request_bytes"), FREE_THEN);
    json_decref(json);
    books_close(&cached.books);

    cached_open(&cached, GIB - 256 * MIB, 1);
    refuse(&cached.books, cached.other, 2 * GIB, FREE_THEN, 8 * GIB, 4 * MS);
    check_cause(&cached.books, "fragmented", "in pieces of at most 1.00 GiB; living blocks strand 1.50 GiB");
    books_close(&cached.books);

    /* The cache itself asks the driver, and will empty itself. */
    cached_open(&cached, GIB - 256 * MIB, 1);
    refuse(&cached.books, cached.cache, 3 * GIB / 2, FREE_THEN, 8 * GIB, 4 * MS);
    json = books_json(&cached.books);
    assert_string_equal(json_text_at(json, "ooms.0.cause"), "cached");
    assert_has(json_text_at(json, "ooms.0.advice"), "asks again by itself");
    json_decref(json);
    books_close(&cached.books);

    /* Nothing is free in it. */
    cached_open(&cached, GIB, 0);
    refuse(&cached.books, cached.other, GIB, FREE_THEN, 8 * GIB, 4 * MS);
    check_cause(&cached.books, "full", "Really full: 256.0 MiB were missing");
    books_close(&cached.books);
}

static void test_a_framework_that_gives_up_is_told_from_one_that_stops_itself(void **state)
{
    (void)state;
    struct cached cached;
    /* The driver was not asked and had enough: a limit of the framework's own. */
    cached_open(&cached, GIB - 256 * MIB, 0);
    refuse(&cached.books, cached.tensor, 512 * MIB, FREE_THEN, 8 * GIB, 4 * MS);
    check_cause(&cached.books, "own_limit",
                "Refused by PyTorch itself, not by the device: 768.0 MiB were free");
    books_close(&cached.books);

    /* The driver was asked for a segment of 1 GiB just before. */
    cached_open(&cached, GIB - 256 * MIB, 0);
    refuse(&cached.books, cached.cache, GIB, FREE_THEN, 8 * GIB, 4 * MS);
    refuse(&cached.books, cached.tensor, 600 * MIB, FREE_THEN, 8 * GIB, 5 * MS);
    json_t *json = books_json(&cached.books);
    assert_string_equal(json_text_at(json, "ooms.1.cause"), "fragmented");
    assert_int_equal(json_at(json, "ooms.1.live_bytes"), 7 * (GIB - 256 * MIB));
    assert_int_equal(json_at(json, "ooms.1.largest_request_bytes"), FREE_THEN);
    json_decref(json);
    books_close(&cached.books);
}

static void test_memory_kept_by_pools_counts_for_who_asks_elsewhere(void **state)
{
    (void)state;
    static const struct {
        enum family family;
        const char *cause;
        uint64_t largest;
    } askers[] = {{FAMILY_PLAIN, "cached", GIB}, {FAMILY_POOL, "full", 3 * GIB}};
    for (size_t i = 0; i < 2; i++) {
        struct books books;
        books_open(&books);
        uint32_t pool = books_site(&books, "cuMemAllocAsync", FAMILY_POOL, SPACE_DEVICE, 0, NULL, 0);
        uint32_t asker = books_site(&books, "api", askers[i].family, SPACE_DEVICE, 0, NULL, 0);
        books_alloc(&books, pool, GIB, 5 * GIB, MS);
        books_event(&books, (struct event){.type = EVENT_POOL,
                                           .device = 0,
                                           .key = block_key(KEY_POOL, 1),
                                           .time_ns = 2 * MS,
                                           .size = 0,
                                           .free_bytes = 2 * GIB,
                                           .total_bytes = 7 * GIB});
        refuse(&books, asker, 3 * GIB, GIB, 8 * GIB, 3 * MS);
        json_t *json = books_json(&books);
        assert_string_equal(json_text_at(json, "ooms.0.cause"), askers[i].cause);
        assert_int_equal(json_at(json, "ooms.0.elsewhere_bytes"), 0);
        assert_int_equal(json_at(json, "ooms.0.largest_request_bytes"), askers[i].largest);
        json_decref(json);
        books_close(&books);
    }
}

static void test_what_was_there_before_the_first_allocation_is_named(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    uint32_t site = books_plain(&books, NULL, 0);
    sample(&books, 3 * GIB, 8 * GIB, 0);
    books_alloc(&books, site, GIB, GIB, MS);
    refuse(&books, site, 3 * GIB, 2 * GIB - 100 * MIB, 8 * GIB, 2 * MS);
    check_cause(&books, "elsewhere", "hold 5.10 GiB, 5.00 GiB of it since before its first allocation");
    books_close(&books);
}

/* After a refusal of 2 GiB: nothing, something smaller, or as much with 1 GiB freed in between. */
/* On a device of 8 GiB: what is no block is all the context's. */
static void check_with_contexts(uint64_t live, uint64_t contexts, const char *cause, const char *says)
{
    struct books books;
    books_open(&books);
    uint32_t site = books_plain(&books, NULL, 0);
    books_event(
        &books,
        (struct event){
            .type = EVENT_CONTEXTS, .time_ns = MS, .size = contexts, .count = 1, .detail = BASIS_PROCESS});
    books_alloc(&books, site, 2 * MIB, live, 2 * MS);
    uint64_t free_bytes = 8 * GIB - live - contexts;
    refuse(&books, site, free_bytes + 128 * MIB, free_bytes, 8 * GIB, 3 * MS);
    check_cause(&books, cause, says);
    books_close(&books);
}

static void test_own_contexts_are_the_cause_only_where_they_have_most(void **state)
{
    (void)state;
    check_with_contexts(7 * GIB, 640 * MIB, "full", "Really full: 128.0 MiB were missing");
    check_with_contexts(1 * GIB, 6 * GIB, "elsewhere", "contexts (6.00 GiB)");
}

static void test_a_retry_that_succeeds_is_told_from_an_end(void **state)
{
    (void)state;
    static const char *const outcomes[] = {"ended", "went_on", "granted"};
    static const char *const texts[] = {"No allocation succeeded after this one.",
                                        "went on with smaller allocations",
                                        "as much was granted 3.0 ms later, after 1.00 GiB had been freed"};
    for (int i = 0; i < 3; i++) {
        struct books books;
        books_open(&books);
        uint32_t site = books_plain(&books, NULL, 0);
        uint32_t pinned = books_site(&books, "cuMemHostAlloc", FAMILY_PINNED, SPACE_PINNED, -1, NULL, 0);
        books_alloc(&books, site, GIB, 6 * GIB, MS);
        books_alloc(&books, site, 9 * GIB, GIB, MS);
        refuse(&books, site, 2 * GIB, GIB, 8 * GIB, 2 * MS);
        if (i >= 1) {
            books_free(&books, site, 9 * GIB, 3 * MS);
            books_alloc(&books, pinned, 64 * GIB, 4 * GIB, 4 * MS); /* of other memory: no answer */
        }
        if (i == 2) {
            books_alloc(&books, site, 9 * GIB, 2 * GIB, 5 * MS);
            books_free(&books, site, 9 * GIB, 6 * MS);
            books_alloc(&books, site, 9 * GIB, 2 * GIB, 7 * MS); /* only the first counts */
        }
        json_t *json = books_json(&books);
        assert_string_equal(json_text_at(json, "ooms.0.outcome"), outcomes[i]);
        assert_int_equal(json_is_true(json_node(json, "ooms.0.went_on")), i > 0);
        if (i == 2) {
            assert_int_equal(json_at(json, "ooms.0.granted_time_ns"), 5 * MS);
            assert_int_equal(json_at(json, "ooms.0.freed_before_granted_bytes"), GIB);
        } else {
            assert_true(json_is_null(json_node(json, "ooms.0.granted_time_ns")));
        }
        json_decref(json);
        char *text = books_text(&books, false);
        assert_has(text, texts[i]);
        free(text);
        books_close(&books);
    }
}

/* The first try took 6 GiB and was refused; a smaller one is refused while that is still there, and another
 * once it is gone. */
static void test_what_a_failed_try_still_holds_is_told_from_a_device_that_is_full(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    uint32_t site = books_plain(&books, NULL, 0);
    books_alloc(&books, site, GIB, 6 * GIB, 1 * MS);
    refuse(&books, site, 5 * GIB, 2 * GIB, 8 * GIB, 2 * MS);
    refuse(&books, site, 5 * GIB / 2, 2 * GIB, 8 * GIB, 3 * MS);
    books_free(&books, site, GIB, 4 * MS);
    books_alloc(&books, site, GIB, 6 * GIB, 5 * MS);
    refuse(&books, site, 9 * GIB / 4, 2 * GIB, 8 * GIB, 6 * MS);
    json_t *json = books_json(&books);
    for (int i = 0; i < 3; i++) {
        char path[20];
        snprintf(path, sizeof path, "ooms.%d.cause", i);
        assert_string_equal(json_text_at(json, path), "full");
        snprintf(path, sizeof path, "ooms.%d.advice", i);
        if (i == 1)
            assert_has(json_text_at(json, path), "leave the except block before trying again");
        else
            assert_lacks(json_text_at(json, path), "except");
    }
    json_decref(json);
    books_close(&books);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cause_follows_from_the_figures),
        cmocka_unit_test(test_what_a_cache_would_give_back_is_told_from_what_it_cannot),
        cmocka_unit_test(test_a_framework_that_gives_up_is_told_from_one_that_stops_itself),
        cmocka_unit_test(test_memory_kept_by_pools_counts_for_who_asks_elsewhere),
        cmocka_unit_test(test_what_was_there_before_the_first_allocation_is_named),
        cmocka_unit_test(test_what_a_failed_try_still_holds_is_told_from_a_device_that_is_full),
        cmocka_unit_test(test_own_contexts_are_the_cause_only_where_they_have_most),
        cmocka_unit_test(test_a_retry_that_succeeds_is_told_from_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
