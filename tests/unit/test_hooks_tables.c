/* The parts of the hooks that need no driver: which names and versions are hooked, sizes of arrays, and the
 * lock. */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hooks/array_size.h"
#include "hooks/symbols.h"
#include "hooks/tables.h"
#include "unit.h"

/* In the place of the hooks, which are not here. */
#define AS_STAND_IN(name, ...) char hook_##name[1];
HOOKED_SYMBOLS(AS_STAND_IN)
#undef AS_STAND_IN

static int times_emptied;

void vmm_forget_all(void)
{
    times_emptied++;
}

void mappings_forget_all(void)
{
}

void holds_forget_all(void)
{
}

void pools_forget_all(void)
{
}

void graphs_forget_all(void)
{
}

static void test_every_exported_name_is_found_and_no_other(void **state)
{
    (void)state;
    for (int i = 0; i < HOOK_COUNT; i++)
        if (hook_symbols[i].library != HOOK_FRAMEWORK)
            assert_int_equal(symbol_find(hook_symbols[i].name), i);
    static const char *const others[] = {
        "",       "c",           "cu",          "cuda",      "cuMemAlloc_v3", "cuMemAlloc_v",
        "malloc", "cuMemAlloc ", "cudaMallocs", "CuMemAlloc"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(symbol_find(others[i]), HOOK_COUNT);
    assert_int_equal(symbol_find(NULL), HOOK_COUNT);
}

/* Versions from cudaTypedefs.h. */
static void test_a_bare_name_means_the_newest_variant_of_its_version(void **state)
{
    (void)state;
    static const struct {
        const char *bare;
        int version;
        enum hook_stream stream;
        enum hook_id means;
    } cases[] = {
        {"cuMemAlloc", 2000, HOOK_LEGACY, HOOK_cuMemAlloc},
        {"cuMemAlloc", 3010, HOOK_LEGACY, HOOK_cuMemAlloc},
        {"cuMemAlloc", 3020, HOOK_LEGACY, HOOK_cuMemAlloc_v2},
        {"cuMemAlloc", 12080, HOOK_PER_THREAD, HOOK_cuMemAlloc_v2},
        {"cuMemAlloc", 1999, HOOK_LEGACY, HOOK_COUNT},
        {"cuMemAllocAsync", 11020, HOOK_LEGACY, HOOK_cuMemAllocAsync},
        {"cuMemAllocAsync", 11020, HOOK_PER_THREAD, HOOK_cuMemAllocAsync_ptsz},
        {"cuMemAllocAsync", 11010, HOOK_PER_THREAD, HOOK_COUNT},
        {"cuGetProcAddress", 11030, HOOK_LEGACY, HOOK_cuGetProcAddress},
        {"cuGetProcAddress", 12000, HOOK_LEGACY, HOOK_cuGetProcAddress_v2},
        {"cuCtxCreate", 3020, HOOK_LEGACY, HOOK_cuCtxCreate_v2},
        {"cuCtxCreate", 12040, HOOK_LEGACY, HOOK_cuCtxCreate_v3},
        {"cuCtxCreate", 13000, HOOK_LEGACY, HOOK_cuCtxCreate_v4},
        {"cuGraphInstantiate", 10000, HOOK_LEGACY, HOOK_cuGraphInstantiate},
        {"cuGraphInstantiate", 11080, HOOK_LEGACY, HOOK_cuGraphInstantiate_v2},
        {"cuGraphInstantiate", 12000, HOOK_LEGACY, HOOK_cuGraphInstantiateWithFlags},
        {"cuGraphLaunch", 10000, HOOK_PER_THREAD, HOOK_cuGraphLaunch_ptsz},
        {"cuMemAlloc_v2", 12000, HOOK_LEGACY, HOOK_COUNT},
        {"cudaMalloc", 12000, HOOK_LEGACY, HOOK_COUNT},
        {"", 0, HOOK_LEGACY, HOOK_COUNT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(symbol_variant(cases[i].bare, cases[i].version, cases[i].stream), cases[i].means);
}

static void test_an_array_that_is_no_memory_of_its_own_has_no_size(void **state)
{
    (void)state;
    CUDA_ARRAY3D_DESCRIPTOR array = {
        .Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    assert_int_equal(array_size(&array), 64 * 64 * 16);
    array.Flags = CUDA_ARRAY3D_SPARSE;
    assert_int_equal(array_size(&array), 0);
    array.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING;
    assert_int_equal(array_size(&array), 0);
    array.Flags = 0;
    array.Format = (CUarray_format)0x7f;
    assert_int_equal(array_size(&array), 0);
}

static void test_a_refused_number_of_levels_costs_no_time(void **state)
{
    (void)state;
    CUDA_ARRAY3D_DESCRIPTOR array = {.Width = 2, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    assert_in_range(array_size_of_levels(&array, 4000000000u), 3, 100);
    assert_int_equal(array_size_of_levels(&array, 0), 2);
}

static int shared_count;

static void *count_up(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20000; i++) {
        assert_true(tables_lock());
        shared_count++;
        tables_unlock();
    }
    return NULL;
}

static void test_the_lock_lets_one_thread_in_at_a_time(void **state)
{
    pthread_t threads[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(shared_count, 4 * 20000);
}

static void test_who_holds_the_lock_does_not_wait_for_itself(void **state)
{
    (void)state;
    assert_true(tables_lock());
    assert_false(tables_lock());
    tables_unlock();
    assert_true(tables_lock());
    tables_unlock();
}

static int held[2], done[2]; /* pipes */

static void *hold_the_lock(void *unused)
{
    char byte = 0;
    (void)unused;
    assert_true(tables_lock());
    assert_int_equal(write(held[1], &byte, 1), 1);
    assert_int_equal(read(done[0], &byte, 1), 1);
    tables_unlock();
    return NULL;
}

static void test_a_forked_child_takes_over_a_lock_that_was_held(void **state)
{
    pthread_t thread;
    char byte = 0;
    int status;
    (void)state;
    assert_int_equal(pipe(held) | pipe(done), 0);
    assert_int_equal(pthread_create(&thread, NULL, hold_the_lock, NULL), 0);
    assert_int_equal(read(held[0], &byte, 1), 1);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        bool taken = tables_lock();
        _exit(taken && times_emptied == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(write(done[1], &byte, 1), 1);
    pthread_join(thread, NULL);
    assert_int_equal(times_emptied, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_exported_name_is_found_and_no_other),
        cmocka_unit_test(test_a_bare_name_means_the_newest_variant_of_its_version),
        cmocka_unit_test(test_an_array_that_is_no_memory_of_its_own_has_no_size),
        cmocka_unit_test(test_a_refused_number_of_levels_costs_no_time),
        cmocka_unit_test(test_the_lock_lets_one_thread_in_at_a_time),
        cmocka_unit_test(test_who_holds_the_lock_does_not_wait_for_itself),
        cmocka_unit_test(test_a_forked_child_takes_over_a_lock_that_was_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
