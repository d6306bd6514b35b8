/* Walks and Python's end (capture/python_gate.h): the end waits for walks, walks do not wait for the end. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/python_gate.h"

enum { YIELDS = 200 };

static atomic_bool inside, has_left, may_leave;

static void wait_for(const atomic_bool *flag)
{
    while (!atomic_load(flag))
        sched_yield();
}

/* A walk that is in its middle when the gate closes, and goes on for a while. */
static void *walk_into_the_end(void *entered)
{
    struct thread_buffer *mine = thread_buffer_get();
    *(bool *)entered = python_gate_enter(mine);
    atomic_store(&inside, true);
    while (atomic_load(&python_gate_closed_by) == NULL)
        sched_yield();
    for (int i = 0; i < YIELDS; i++)
        sched_yield();
    atomic_store(&has_left, true);
    python_gate_leave(mine);
    return NULL;
}

static void *try_to_enter(void *entered)
{
    struct thread_buffer *mine = thread_buffer_get();
    *(bool *)entered = python_gate_enter(mine);
    if (*(bool *)entered)
        python_gate_leave(mine);
    return NULL;
}

static bool another_thread_enters(void)
{
    bool entered = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, try_to_enter, &entered), 0);
    pthread_join(thread, NULL);
    return entered;
}

static void *stay(void *unused)
{
    (void)unused;
    struct thread_buffer *mine = thread_buffer_get();
    python_gate_enter(mine);
    atomic_store(&inside, true);
    wait_for(&may_leave);
    python_gate_leave(mine);
    return NULL;
}

static int open_gate(void **state)
{
    (void)state;
    python_gate_open();
    atomic_store(&inside, false);
    atomic_store(&has_left, false);
    atomic_store(&may_leave, false);
    return 0;
}

static void test_closing_waits_for_a_walk_on_another_thread(void **state)
{
    (void)state;
    bool entered = false;
    pthread_t walker;
    assert_int_equal(pthread_create(&walker, NULL, walk_into_the_end, &entered), 0);
    wait_for(&inside);
    python_gate_close();
    assert_true(atomic_load(&has_left));
    pthread_join(walker, NULL);
    assert_true(entered);
}

static void test_closed_gate_keeps_out_all_but_who_closed_it(void **state)
{
    (void)state;
    struct thread_buffer *mine = thread_buffer_get();
    assert_true(another_thread_enters());
    python_gate_close();
    assert_false(another_thread_enters());
    assert_true(python_gate_enter(mine));
    python_gate_leave(mine);
    python_gate_open();
    assert_true(another_thread_enters());
}

static void test_own_walk_is_not_waited_for(void **state)
{
    (void)state;
    struct thread_buffer *mine = thread_buffer_get();
    struct timespec before, after;
    enum { CLOSINGS = 40 };
    assert_true(python_gate_enter(mine));
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (int i = 0; i < CLOSINGS; i++) { /* a second each, if it waited */
        python_gate_close();
        python_gate_open();
    }
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true(after.tv_sec - before.tv_sec < CLOSINGS / 2);
    python_gate_leave(mine);
}

static void test_closing_gives_up_on_a_walk_that_never_ends(void **state)
{
    (void)state;
    pthread_t walker;
    assert_int_equal(pthread_create(&walker, NULL, stay, NULL), 0);
    wait_for(&inside);
    python_gate_close();
    atomic_store(&may_leave, true);
    pthread_join(walker, NULL);
}

/* The walk of the parent's other thread is not the child's. */
static void test_forked_child_has_nobody_to_wait_for(void **state)
{
    (void)state;
    pthread_t walker;
    assert_int_equal(pthread_create(&walker, NULL, stay, NULL), 0);
    wait_for(&inside);
    pid_t child = fork();
    if (child == 0) {
        struct timespec before, after;
        capture_after_fork();
        clock_gettime(CLOCK_MONOTONIC, &before);
        for (int i = 0; i < 100; i++) { /* of a second each, were there somebody */
            python_gate_close();
            python_gate_open();
        }
        clock_gettime(CLOCK_MONOTONIC, &after);
        _exit(after.tv_sec - before.tv_sec > 50);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    atomic_store(&may_leave, true);
    pthread_join(walker, NULL);
}

/* As when a thread forks while another one ends Python. */
static void test_forked_child_finds_the_gate_open(void **state)
{
    (void)state;
    struct thread_buffer *mine = thread_buffer_get();
    static const struct thread_buffer another;
    atomic_store(&python_gate_closed_by, &another);
    assert_false(python_gate_enter(mine));
    pid_t child = fork();
    if (child == 0) {
        capture_after_fork();
        _exit(!python_gate_enter(thread_buffer_get()));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_closing_waits_for_a_walk_on_another_thread, open_gate),
        cmocka_unit_test_setup(test_closed_gate_keeps_out_all_but_who_closed_it, open_gate),
        cmocka_unit_test_setup(test_own_walk_is_not_waited_for, open_gate),
        cmocka_unit_test_setup(test_closing_gives_up_on_a_walk_that_never_ends, open_gate),
        cmocka_unit_test_setup(test_forked_child_has_nobody_to_wait_for, open_gate),
        cmocka_unit_test_setup(test_forked_child_finds_the_gate_open, open_gate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
