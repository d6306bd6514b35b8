/* Native stacks (capture/capture.h): their frames and depth, by which they are told apart, threads and forked
 * children. Names come from dladdr(). */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "scratch.h"
#include "stack_places.h"

/* Under ThreadSanitizer there is no libunwind, and no thread in a child. */
#ifdef __SANITIZE_THREAD__
#define WITH_LIBUNWIND 0
#elif defined(__has_feature)
#define WITH_LIBUNWIND (!__has_feature(thread_sanitizer))
#else
#define WITH_LIBUNWIND 1
#endif

enum { DEPTH = 100 };

static void test_first_frame_is_the_callers(void **state)
{
    (void)state;
    struct raw_stack stack;
    from_one_place(&stack);
    assert_true(stack.native_count >= 3);
    assert_true(is_in(stack.native[0], "taker"));
    assert_true(is_in(stack.native[1], "from_one_place"));
    assert_int_equal(stack.python_count, 0);
    assert_true(is_in(stack.native[stack.native_count - 1], "_start"));
}

static void test_every_level_is_a_frame(void **state)
{
    (void)state;
    struct raw_stack stack;
    for (int levels = 1; levels < 60; levels++) {
        recursive(levels, &stack);
        for (int i = 1; i <= levels; i++)
            assert_true(is_in(stack.native[i], "recursive"));
        assert_false(is_in(stack.native[levels + 1], "recursive"));
    }
}

static void test_depth_keeps_the_innermost(void **state)
{
    (void)state;
    struct raw_stack stack;
    recursive(3 * DEPTH, &stack);
    assert_int_equal(stack.native_count, DEPTH);
    assert_true(is_in(stack.native[0], "taker"));
    for (int i = 1; i < DEPTH; i++)
        assert_true(is_in(stack.native[i], "recursive"));
}

static void test_hash_tells_stacks_apart(void **state)
{
    (void)state;
    struct raw_stack stack;
    uint64_t hashes[64];
    size_t count = 0;
    for (int levels = 1; levels < 60; levels++) {
        recursive(levels, &stack);
        hashes[count++] = stack.hash;
    }
    from_one_place(&stack);
    hashes[count++] = stack.hash;
    from_another(&stack);
    hashes[count++] = stack.hash;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(hashes[i] != hashes[k]);
}

static void test_same_stack_has_the_same_hash(void **state)
{
    (void)state;
    struct raw_stack stack;
    uint64_t hash = 0;
    volatile int turns = 0; /* unknown to the compiler, which would make several places of the one below */
    while (turns++ < 50) {
        struct raw_stack other;
        recursive(turns % 7 + 1, &other);
        recursive(12, &stack);
        assert_true(turns == 1 || stack.hash == hash);
        hash = stack.hash;
    }
}

/* What was noted of a stack comes back with that stack and with no other, and whenever it is taken twice. */
static void test_note_belongs_to_one_stack(void **state)
{
    (void)state;
    static const int table;
    struct raw_stack stack;
    uint64_t seed = 1;
    uint32_t noted_again = 0;
    for (int i = 0; i < 3000; i++) {
        uint32_t levels = 1 + (uint32_t)random_below(&seed, 4) * 11; /* and beyond the depth */
        for (volatile int turns = 0; turns < 2; turns++) {
            recursive((int)levels, &stack);
            if (stack.memo == NULL)
                continue;
            if (stack.memo->table != NULL) {
                assert_ptr_equal(stack.memo->table, &table);
                assert_int_equal(stack.memo->id, levels);
                noted_again++;
            }
            *stack.memo = (struct stack_memo){&table, 0, levels};
        }
    }
#ifdef __x86_64__
    assert_true(noted_again >= 3000);
#endif
    capture_modules_changed();
    capture_after_fork();
    recursive(1, &stack);
    assert_true(stack.memo == NULL || stack.memo->table == NULL);
}

static void test_errno_is_kept(void **state)
{
    (void)state;
    struct raw_stack stack;
    errno = 4711;
    recursive(40, &stack);
    assert_int_equal(errno, 4711);
    capture_modules_changed();
    assert_int_equal(errno, 4711);
}

static void *take_in_thread(void *failed)
{
    struct raw_stack stack;
    for (int i = 0; i < 2000; i++) {
        int levels = i % 40 + 1;
        recursive(levels, &stack);
        if (!is_in(stack.native[levels], "recursive") || is_in(stack.native[levels + 1], "recursive"))
            *(volatile int *)failed = 1;
    }
    return NULL;
}

static void test_threads_do_not_share_a_stack(void **state)
{
    (void)state;
    pthread_t threads[8];
    int failed = 0;
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_in_thread, &failed), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(failed, 0);
}

static size_t mappings(void)
{
    static char maps[1 << 20];
    size_t bytes = scratch_read("/proc/self/maps", maps, sizeof maps), lines = 0;
    for (size_t i = 0; i < bytes; i++)
        lines += maps[i] == '\n';
    return lines;
}

static void *take_once(void *ignored)
{
    struct raw_stack stack;
    (void)ignored;
    from_one_place(&stack);
    return (void *)(uintptr_t)stack.native_count;
}

/* One thread's stack lies where the last one's lay, and is the same. */
static void test_each_of_many_threads_has_its_stack(void **state)
{
    (void)state;
    pthread_t thread;
    void *frames, *first = NULL;
    for (int i = 0; i < 300; i++) {
        assert_int_equal(pthread_create(&thread, NULL, take_once, NULL), 0);
        assert_int_equal(pthread_join(thread, &frames), 0);
        assert_non_null(frames);
        first = i == 0 ? frames : first;
        assert_ptr_equal(frames, first);
    }
}

static void test_threads_that_end_leave_nothing(void **state)
{
    (void)state;
    pthread_t thread;
    size_t before = 0;
    for (int i = 0; i < 3000; i++) {
        if (i == 500)
            before = mappings();
        assert_int_equal(pthread_create(&thread, NULL, take_once, NULL), 0);
        pthread_join(thread, NULL);
    }
    assert_true(mappings() <= before + 4);
}

static void test_smallest_thread_stack_is_enough(void **state)
{
    (void)state;
    pthread_attr_t attributes;
    pthread_t thread = 0;
    void *count;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) != 0 ||
        pthread_create(&thread, &attributes, take_once, NULL) != 0)
        skip(); /* a sanitizer wants more */
    pthread_join(thread, &count);
    assert_true((uintptr_t)count >= 3);
}

static void test_closing_what_stays_loaded_changes_nothing(void **state)
{
    (void)state;
    uint32_t generation = capture_generation();
    dlclose(dlopen("libc.so.6", RTLD_NOW));
    capture_modules_changed();
    assert_int_equal(capture_generation(), generation);
}

static atomic_bool stop;

static void *take_until_stopped(void *ignored)
{
    struct raw_stack stack;
    while (!atomic_load(&stop)) {
        recursive(20, &stack);
        capture_modules_changed();
    }
    return ignored;
}

static void take_in_child(void *ignored)
{
    (void)ignored;
    struct raw_stack stack;
    capture_after_fork();
    recursive(5, &stack);
    assert_true(is_in(stack.native[5], "recursive"));
#if WITH_LIBUNWIND
    pthread_t thread;
    void *count;
    assert_int_equal(pthread_create(&thread, NULL, take_once, NULL), 0);
    pthread_join(thread, &count);
    assert_true((uintptr_t)count >= 3);
#endif
}

static void test_forked_child_takes_stacks(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* the sanitizer's own unwinding may hold the dynamic linker's lock when the fork comes */
#endif
    pthread_t thread;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, take_until_stopped, NULL), 0);
    for (int i = 0; i < 30; i++) {
        capture_before_fork();
        int status = in_child(take_in_child, NULL);
        capture_after_fork_in_parent();
        assert_int_equal(status, 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

static int set_up(void **state)
{
    (void)state;
    return start_capture(DEPTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_frame_is_the_callers),
        cmocka_unit_test(test_every_level_is_a_frame),
        cmocka_unit_test(test_depth_keeps_the_innermost),
        cmocka_unit_test(test_hash_tells_stacks_apart),
        cmocka_unit_test(test_same_stack_has_the_same_hash),
        cmocka_unit_test(test_note_belongs_to_one_stack),
        cmocka_unit_test(test_errno_is_kept),
        cmocka_unit_test(test_threads_do_not_share_a_stack),
        cmocka_unit_test(test_each_of_many_threads_has_its_stack),
        cmocka_unit_test(test_threads_that_end_leave_nothing),
        cmocka_unit_test(test_smallest_thread_stack_is_enough),
        cmocka_unit_test(test_closing_what_stays_loaded_changes_nothing),
        cmocka_unit_test(test_forked_child_takes_stacks),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
