/* Memory without malloc: arenas, pools, pages (base/arena.h) and the list that never moves (base/list.h). */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/list.h"
#include "kernel.h"

#define LARGE ((size_t)1 << 20)

static bool is_zero(const void *start, size_t bytes)
{
    const char *at = start;
    return bytes == 0 || (at[0] == 0 && memcmp(at, at + 1, bytes - 1) == 0);
}

static void test_memory_is_zeroed_aligned_and_nobody_elses(void **state)
{
    (void)state;
    enum { PIECES = 5000 };
    static unsigned char *pieces[PIECES];
    static size_t sizes[PIECES];
    struct arena arena = {0};
    uint64_t seed = 1;
    for (size_t i = 0; i < PIECES; i++) {
        sizes[i] = i % 500 == 0 ? LARGE / 4 + i : random_below(&seed, 300) + 1;
        pieces[i] = arena_alloc(&arena, sizes[i]);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        assert_true(is_zero(pieces[i], sizes[i]));
        memset(pieces[i], (int)(i % 255) + 1, sizes[i]);
    }
    for (size_t i = 0; i < PIECES; i++) {
        assert_int_equal(pieces[i][0], i % 255 + 1);
        assert_memory_equal(pieces[i], pieces[i] + 1, sizes[i] - 1);
    }
    arena_release(&arena);
}

static void test_every_byte_handed_out_was_mapped_for_the_arena(void **state)
{
    (void)state;
    struct arena arena = {0};
    size_t asked = 0;
    for (size_t bytes = 1; bytes <= LARGE; bytes *= 2) {
        assert_non_null(arena_alloc(&arena, bytes));
        asked += bytes;
        assert_true(arena.mapped_bytes >= asked);
    }
    arena_release(&arena);
    assert_int_equal(arena.mapped_bytes, 0);
}

static void test_an_arena_can_be_used_again_after_its_release(void **state)
{
    (void)state;
    struct arena arena = {0};
    for (int round = 0; round < 3; round++) {
        char *small = arena_alloc(&arena, 100), *large = arena_alloc(&arena, LARGE);
        assert_non_null(small);
        assert_non_null(large);
        assert_true(is_zero(small, 100) && is_zero(large, LARGE));
        memset(small, 1, 100);
        memset(large, 1, LARGE);
        arena_release(&arena);
    }
    arena_release(&arena);
}

static void test_a_copy_ends_with_a_nul_and_keeps_those_inside(void **state)
{
    (void)state;
    struct arena arena = {0};
    const char text[] = "a\0b, and what is not asked for";
    char *copy = arena_copy(&arena, text, 3);
    assert_memory_equal(copy, "a\0b", 4);
    assert_string_equal(arena_copy(&arena, text, 0), "");
    arena_release(&arena);
}

static void test_impossible_sizes_are_refused_and_leave_the_arena_good(void **state)
{
    (void)state;
    struct arena arena = {0};
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_alloc(&arena, SIZE_MAX - 15));
    assert_null(arena_alloc(&arena, SIZE_MAX / 2 + 1));
    assert_null(arena_alloc(&arena, SIZE_MAX / 4)); /* more than the address space has */
    assert_null(arena_copy(&arena, "", SIZE_MAX));
    assert_int_equal(arena.mapped_bytes, 0);
    assert_non_null(arena_alloc(&arena, 1));
    arena_release(&arena);
}

static void test_a_refusal_of_the_kernel_is_null_and_passes(void **state)
{
    (void)state;
    struct arena arena = {0};
    kernel_grants(0);
    assert_null(arena_alloc(&arena, 1));
    assert_null(arena_alloc(&arena, LARGE));
    assert_null(arena_copy(&arena, "text", 4));
    assert_null(pages_alloc(LARGE));
    kernel_grants(KERNEL_GRANTS_ALL);
    assert_string_equal(arena_copy(&arena, "text", 4), "text");
    arena_release(&arena);
}

static void test_a_pool_hands_returned_objects_out_again(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct pool pool;
    uint64_t *objects[100];
    pool_init(&pool, &arena, 3 * sizeof(uint64_t));
    for (size_t i = 0; i < COUNT_OF(objects); i++) {
        objects[i] = pool_get(&pool);
        objects[i][0] = objects[i][2] = i;
    }
    size_t mapped = arena.mapped_bytes, used = arena.used;
    for (size_t i = 0; i < COUNT_OF(objects); i += 2)
        pool_put(&pool, objects[i]);
    for (size_t i = 0; i < COUNT_OF(objects); i += 2) {
        objects[i] = pool_get(&pool);
        objects[i][0] = objects[i][2] = i;
    }
    for (size_t i = 0; i < COUNT_OF(objects); i++)
        assert_true(objects[i][0] == i && objects[i][2] == i);
    assert_int_equal(arena.mapped_bytes, mapped);
    assert_int_equal(arena.used, used);
    arena_release(&arena);
}

static void test_a_pool_of_tiny_objects_keeps_them_apart(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct pool pool;
    pool_init(&pool, &arena, 1);
    char *first = pool_get(&pool), *second = pool_get(&pool);
    *second = 7;
    pool_put(&pool, first); /* writes its own book-keeping there, and nowhere else */
    assert_int_equal(*second, 7);
    assert_ptr_equal(pool_get(&pool), first);
    arena_release(&arena);
}

static void test_pages_are_zeroed_and_none_is_null(void **state)
{
    (void)state;
    char *pages = pages_alloc(3 * LARGE + 1);
    assert_true(is_zero(pages, 3 * LARGE + 1));
    pages_free(pages, 3 * LARGE + 1);
    pages_free(NULL, 0);
}

/* The n-th chunk holds LIST_FIRST_CHUNK << n elements: their borders are where an index could go wrong. */
static void test_list_elements_are_zeroed_and_never_move(void **state)
{
    (void)state;
    enum { ELEMENTS = 100000 };
    struct element {
        uint32_t index;
        char rest[9];
    };
    static struct element *known[ELEMENTS];
    struct arena arena = {0};
    struct list list;
    list_init(&list, &arena, sizeof(struct element));
    assert_null(list_at(&list, 0));
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        known[i] = list_reach(&list, i);
        assert_true(is_zero(known[i], sizeof(struct element)));
        memset(known[i], 0xff, sizeof(struct element));
        known[i]->index = i;
        assert_int_equal(list.count, i + 1);
        assert_null(list_at(&list, i + 1));
    }
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        assert_ptr_equal(list_at(&list, i), known[i]);
        assert_int_equal(known[i]->index, i);
    }
    arena_release(&arena);
}

static void test_reaching_far_makes_all_before_it_exist_zeroed(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct list list;
    list_init(&list, &arena, sizeof(uint32_t));
    *(uint32_t *)list_reach(&list, 100000) = 5;
    assert_int_equal(list.count, 100001);
    for (uint32_t i = 0; i < 100000; i++)
        assert_int_equal(*(uint32_t *)list_at(&list, i), 0);
    assert_int_equal(*(uint32_t *)list_reach(&list, 100000), 5); /* reaching again changes nothing */
    assert_int_equal(*(uint32_t *)list_reach(&list, 3), 0);
    /* Chunks of 64, 128, … and 2^31 elements hold 2^32 - 64. */
    assert_null(list_reach(&list, UINT32_MAX));
    assert_null(list_reach(&list, UINT32_MAX - 63));
    assert_int_equal(list.count, 100001);
    arena_release(&arena);
}

static void test_a_list_without_memory_stays_as_it_was(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct list list;
    list_init(&list, &arena, 4096);
    memset(list_reach(&list, LIST_FIRST_CHUNK - 1), 1, 4096);
    kernel_grants(0);
    assert_null(list_reach(&list, LIST_FIRST_CHUNK));
    assert_int_equal(list.count, LIST_FIRST_CHUNK);
    assert_null(list_at(&list, LIST_FIRST_CHUNK));
    kernel_grants(KERNEL_GRANTS_ALL);
    assert_true(is_zero(list_reach(&list, LIST_FIRST_CHUNK), 4096));
    assert_int_equal(list.count, LIST_FIRST_CHUNK + 1);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_zeroed_aligned_and_nobody_elses),
        cmocka_unit_test(test_every_byte_handed_out_was_mapped_for_the_arena),
        cmocka_unit_test(test_an_arena_can_be_used_again_after_its_release),
        cmocka_unit_test(test_a_copy_ends_with_a_nul_and_keeps_those_inside),
        cmocka_unit_test(test_impossible_sizes_are_refused_and_leave_the_arena_good),
        cmocka_unit_test(test_a_refusal_of_the_kernel_is_null_and_passes),
        cmocka_unit_test(test_a_pool_hands_returned_objects_out_again),
        cmocka_unit_test(test_a_pool_of_tiny_objects_keeps_them_apart),
        cmocka_unit_test(test_pages_are_zeroed_and_none_is_null),
        cmocka_unit_test(test_list_elements_are_zeroed_and_never_move),
        cmocka_unit_test(test_reaching_far_makes_all_before_it_exist_zeroed),
        cmocka_unit_test(test_a_list_without_memory_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
