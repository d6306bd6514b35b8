/* From stacks to numbers (capture/stack_table.h): whole stacks are compared, readers need no lock. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "capture/stack_table.h"

#define LIMIT ((size_t)64 << 20)

/* A stack with arrays of its own. */
struct sample {
    struct raw_stack stack;
    uintptr_t native[12];
    struct python_frame python[12];
};

static struct sample *make(struct sample *sample, uint64_t seed)
{
    memset(sample, 0, sizeof *sample);
    sample->stack = (struct raw_stack){
        .hash = random_next(&seed),
        .native_count = (uint32_t)random_below(&seed, COUNT_OF(sample->native) + 1),
        .python_count = (uint32_t)random_below(&seed, COUNT_OF(sample->python) + 1),
        .native = sample->native,
        .python = sample->python,
    };
    for (size_t i = 0; i < COUNT_OF(sample->native); i++) {
        sample->native[i] = random_next(&seed);
        sample->python[i] = (struct python_frame){.code = (void *)(random_next(&seed) & ~15ull),
                                                  .fingerprint = random_next(&seed),
                                                  .byte_offset = (int32_t)random_below(&seed, 500) - 1};
    }
    return sample;
}

static void test_stack_is_found_once_added(void **state)
{
    (void)state;
    enum { STACKS = 20000 };
    struct arena arena = {0};
    struct sample sample;
    struct stack_table *table = stack_table_create(&arena, LIMIT);
    assert_non_null(table);
    for (uint32_t i = 0; i < STACKS; i++) {
        assert_int_equal(stack_table_find(table, &make(&sample, i)->stack, 0), CATALOG_NONE);
        stack_table_add(table, &sample.stack, 0, i * 3);
    }
    for (uint32_t i = 0; i < STACKS; i++)
        assert_int_equal(stack_table_find(table, &make(&sample, i)->stack, 0), i * 3);
    arena_release(&arena);
}

/* All with the same hash: they differ in one place only. */
static void test_every_part_of_a_stack_counts(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct stack_table *table = stack_table_create(&arena, LIMIT);
    struct sample sample, other;
    make(&sample, 5);
    sample.stack.native_count = sample.stack.python_count = 12;
    stack_table_add(table, &sample.stack, 0, 77);
    for (int change = 0; change < 7; change++) {
        make(&other, 5);
        other.stack.native_count = other.stack.python_count = 12;
        switch (change) {
        case 0:
            other.native[11]++;
            break;
        case 1:
            other.native[0]++;
            break;
        case 2:
            other.stack.native_count--;
            break;
        case 3:
            other.stack.python_count--;
            break;
        case 4:
            other.python[11].byte_offset++;
            break;
        case 5:
            other.python[3].fingerprint ^= 1;
            break;
        default:
            other.python[7].code = &other;
            break;
        }
        assert_int_equal(stack_table_find(table, &other.stack, 0), CATALOG_NONE);
        stack_table_add(table, &other.stack, 0, 100);
        assert_int_equal(stack_table_find(table, &other.stack, 0), 100);
        assert_int_equal(stack_table_find(table, &sample.stack, 0), 77);
    }
    arena_release(&arena);
}

static void test_empty_stack_is_one_too(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct stack_table *table = stack_table_create(&arena, LIMIT);
    struct raw_stack empty = {0};
    assert_int_equal(stack_table_find(table, &empty, 0), CATALOG_NONE);
    stack_table_add(table, &empty, 0, 4);
    assert_int_equal(stack_table_find(table, &empty, 0), 4);
    arena_release(&arena);
}

static void test_unloading_makes_a_stack_unknown_once(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct sample sample;
    struct stack_table *table = stack_table_create(&arena, LIMIT);
    stack_table_add(table, &make(&sample, 1)->stack, 0, 10);
    assert_int_equal(stack_table_find(table, &sample.stack, 1), CATALOG_NONE);
    stack_table_add(table, &sample.stack, 1, 11);
    assert_int_equal(stack_table_find(table, &sample.stack, 1), 11);
    assert_int_equal(stack_table_find(table, &sample.stack, 0), CATALOG_NONE);
    arena_release(&arena);
}

static void test_refreshed_entry_takes_no_memory(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct sample sample;
    struct stack_table *table = stack_table_create(&arena, LIMIT);
    for (uint32_t i = 0; i < 1000000; i++)
        stack_table_add(table, &make(&sample, 1)->stack, i, i);
    assert_int_equal(stack_table_find(table, &sample.stack, 999999), 999999);
    assert_true(arena.mapped_bytes < LIMIT / 16);
    arena_release(&arena);
}

static void test_limit_bounds_memory_and_what_fitted_stays(void **state)
{
    (void)state;
    enum { STACKS = 50000, SMALL = 1 << 20 };
    struct arena arena = {0};
    struct sample sample;
    struct stack_table *table = stack_table_create(&arena, SMALL);
    for (uint32_t i = 0; i < STACKS; i++)
        stack_table_add(table, &make(&sample, i)->stack, 0, i);
    /* Chunks of the arena are rounded up. */
    assert_true(arena.mapped_bytes <= SMALL + (512 << 10));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < STACKS; i++) {
        uint32_t id = stack_table_find(table, &make(&sample, i)->stack, 0);
        assert_true(id == i || id == CATALOG_NONE);
        kept += id == i;
    }
    assert_true(kept > 1000 && kept < STACKS);
    assert_int_equal(stack_table_find(table, &make(&sample, 0)->stack, 0), 0);
    arena_release(&arena);
}

enum { SHARED_STACKS = 20000, READERS = 4 };

struct shared {
    struct stack_table *table;
    _Atomic uint32_t added;
    atomic_int wrong;
};

static void *read_while_added(void *arg)
{
    struct shared *shared = arg;
    struct sample sample;
    uint64_t seed = (uintptr_t)&sample;
    for (uint32_t added = 0; added < SHARED_STACKS;) {
        added = atomic_load(&shared->added);
        uint32_t i = (uint32_t)random_below(&seed, SHARED_STACKS);
        uint32_t id = stack_table_find(shared->table, &make(&sample, i)->stack, 0);
        if (i < added ? id != i : id != i && id != CATALOG_NONE)
            atomic_fetch_add(&shared->wrong, 1);
    }
    return NULL;
}

static void test_readers_see_whole_stacks_while_others_are_added(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct sample sample;
    struct shared shared = {.table = stack_table_create(&arena, LIMIT)};
    pthread_t readers[READERS];
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_while_added, &shared), 0);
    for (uint32_t i = 0; i < SHARED_STACKS; i++) {
        stack_table_add(shared.table, &make(&sample, i)->stack, 0, i);
        atomic_store(&shared.added, i + 1);
    }
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    assert_int_equal(shared.wrong, 0);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stack_is_found_once_added),
        cmocka_unit_test(test_every_part_of_a_stack_counts),
        cmocka_unit_test(test_empty_stack_is_one_too),
        cmocka_unit_test(test_unloading_makes_a_stack_unknown_once),
        cmocka_unit_test(test_refreshed_entry_takes_no_memory),
        cmocka_unit_test(test_limit_bounds_memory_and_what_fitted_stays),
        cmocka_unit_test(test_readers_see_whole_stacks_while_others_are_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
