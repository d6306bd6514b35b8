/* Errands under the recorder's lock, in whichever thread they are done. */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "preload/state.h"
#include "preload/turns.h"
#include "unit.h"

#define THREADS 4
#define ERRANDS 5000

struct errand {
    pthread_t of, done_by;
    uint64_t number, answer;
};

/* Under the lock, and nothing else guards them. */
static uint64_t done, inside;

static void run(void *arg)
{
    struct errand *errand = arg;
    assert_int_equal(inside++, 0);
    if (errand->number % 8 == 0)
        sched_yield(); /* whoever comes meanwhile finds the lock taken */
    errand->answer = errand->number * 3 + 1;
    errand->done_by = pthread_self();
    done++;
    inside--;
}

static void *work(void *arg)
{
    uint64_t *by_others = arg;
    for (uint64_t i = 0; i < ERRANDS; i++) {
        struct errand errand = {.of = pthread_self(), .number = i};
        assert_true(turns_run(run, &errand, sizeof errand));
        assert_int_equal(errand.answer, i * 3 + 1);
        assert_true(pthread_equal(errand.of, pthread_self()));
        *by_others += !pthread_equal(errand.done_by, pthread_self());
    }
    return NULL;
}

static void test_each_errand_is_done_once_by_whoever_has_the_lock(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    uint64_t by_others[THREADS] = {0}, sum = 0;
    /* On one busy processor they may not meet at first. */
    for (int turn = 0; turn < 100 && sum == 0; turn++) {
        done = 0;
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, work, &by_others[i]), 0);
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            sum += by_others[i];
        }
        assert_int_equal(done, THREADS * ERRANDS);
    }
    assert_true(sum > 0);
    assert_int_equal(pthread_mutex_trylock(&preload.lock), 0);
    pthread_mutex_unlock(&preload.lock);
}

static void *run_one(void *arg)
{
    assert_true(turns_run(run, arg, sizeof(struct errand)));
    return NULL;
}

/* As fork(), a report and all else that takes the lock in the plain way do. */
static void test_an_errand_waits_for_a_holder_that_does_none(void **state)
{
    (void)state;
    pthread_t thread;
    struct errand errand = {.number = 1};
    done = 0;
    assert_true(preload_lock());
    assert_int_equal(pthread_create(&thread, NULL, run_one, &errand), 0);
    for (int i = 0; i < 1000; i++)
        sched_yield();
    assert_int_equal(done, 0);
    preload_unlock();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(errand.answer, 4);
}

static void test_a_holder_is_turned_away(void **state)
{
    (void)state;
    struct errand errand = {.number = 1};
    done = 0;
    assert_true(preload_lock());
    assert_false(turns_run(run, &errand, sizeof errand));
    preload_unlock();
    assert_int_equal(done, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_errand_is_done_once_by_whoever_has_the_lock),
        cmocka_unit_test(test_an_errand_waits_for_a_holder_that_does_none),
        cmocka_unit_test(test_a_holder_is_turned_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
