/* What a recording says of a process that lives, ended or was killed; and that whatever a killed process had
 * done before SIGKILL came is in it. */
#include "unit.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "books.h"
#include "recording_file.h"
#include "scratch.h"

#define NO_LIMIT UINT64_MAX
#define ROUNDS   20

/* What the writing process tells the one that watches it. */
struct shared {
    _Atomic uint64_t done; /* events whose trace_put_event() returned */
};

static struct shared *shared;
static const char *path;

static int set_up(void **state)
{
    (void)state;
    path = scratch_path("killed");
    unlink(path);
    if (shared == NULL)
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    atomic_store(&shared->done, 0);
    return shared == MAP_FAILED ? -1 : 0;
}

static struct event nth_event(uint64_t n)
{
    struct event event = {.type = EVENT_ALLOC, .time_ns = n * n, .site = (uint32_t)(n / 64)};
    event.key = block_key(KEY_ADDRESS, n * UINT64_C(0x10001) % UINT64_C(0xffffffffffff));
    event.size = n * n * 64;
    if (n % 3 == 1) {
        event.type = EVENT_FREE;
        event.key = nth_event(n - 1).key;
    }
    return event;
}

/* Events without end; now and then a new site, and a text so long that the writer must move on in its file.
 */
static void write_without_end(void *unused)
{
    (void)unused;
    static char text[8000];
    struct process_info process = own_process();
    struct trace_writer writer;
    struct trace_books books;
    assert_int_equal(trace_writer_open(&writer, path, &process, NO_LIMIT, NULL, NULL), 0);
    trace_books_open(&books, &writer);
    for (uint64_t n = 0;; n++) {
        struct event event = nth_event(n);
        if (n % 64 == 0) {
            memcpy(text, &n, sizeof n);
            trace_books_string(&books, text, sizeof text);
            assert_int_equal(trace_books_site(&books, (uint32_t)(n / 64), FAMILY_PLAIN, SPACE_DEVICE, 0),
                             n / 64);
        }
        trace_put_event(&writer, &event);
        atomic_store_explicit(&shared->done, n + 1, memory_order_release);
    }
}

static pid_t start_writing(void)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is stopped leaves nobody writing without end */
        setenv("CMOCKA_TEST_ABORT", "1", 1);
        write_without_end(NULL);
        _exit(1);
    }
    return pid;
}

/* The writer's death ends the wait too, so that a fault there cannot hang the test. */
static void wait_for(pid_t pid, uint64_t events)
{
    while (atomic_load_explicit(&shared->done, memory_order_acquire) < events) {
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        sched_yield();
    }
}

static void check_nth(const struct recording *recording, const struct event *event, void *arg)
{
    uint64_t n = (*(uint64_t *)arg)++;
    struct event expected = nth_event(n);
    (void)recording;
    assert_int_equal(event->type, expected.type);
    assert_int_equal(event->time_ns, expected.time_ns);
    assert_int_equal(event->key, expected.key);
    if (event->type == EVENT_ALLOC) {
        assert_int_equal(event->site, expected.site);
        assert_int_equal(event->size, expected.size);
    }
}

static void read_nth(struct recording *recording, uint64_t *events)
{
    char error[256] = "";
    *events = 0;
    if (recording_read(recording, path, check_nth, events, error, sizeof error) != 0)
        fail_msg("%s", error);
}

static void test_what_was_done_before_sigkill_is_recorded(void **state)
{
    (void)state;
    struct recording recording;
    uint64_t seed = 3, events;
    for (int round = 0; round < ROUNDS; round++) {
        set_up(state);
        pid_t pid = start_writing();
        wait_for(pid, random_below(&seed, 12000) + 1);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        read_nth(&recording, &events);
        uint64_t done = atomic_load(&shared->done);
        /* At most the one that was just about to be acknowledged is more. */
        assert_in_range(events, done, done + 1);
        assert_int_equal(recording.process.end, PROCESS_KILLED);
        assert_int_equal(recording.process.pid, pid);
        assert_true(recording.process.complete);
        assert_int_equal(recording.process.duration_ns, (events - 1) * (events - 1));
        recording_release(&recording);
    }
}

static void test_a_recording_can_be_read_while_it_grows(void **state)
{
    (void)state;
    struct recording recording;
    uint64_t events, before = 0;
    pid_t pid = start_writing();
    wait_for(pid, 1);
    for (int reading = 0; reading < 40; reading++) {
        uint64_t done = atomic_load_explicit(&shared->done, memory_order_acquire);
        read_nth(&recording, &events);
        assert_true(events >= done && events >= before);
        assert_int_equal(recording.process.end, PROCESS_RUNNING);
        before = events;
        recording_release(&recording);
        if (events > 15000) { /* keep it short: a new file */
            assert_int_equal(kill(pid, SIGKILL), 0);
            assert_int_equal(waitpid(pid, NULL, 0), pid);
            set_up(state);
            pid = start_writing();
            wait_for(pid, 1);
            before = 0;
        }
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static enum process_end end_in_file(void)
{
    struct recording recording;
    read_good(&recording, path);
    enum process_end end = recording.process.end;
    recording_release(&recording);
    return end;
}

static void test_a_process_not_yet_waited_for_is_dead_all_the_same(void **state)
{
    (void)state;
    siginfo_t info;
    pid_t pid = start_writing();
    wait_for(pid, 10);
    assert_int_equal(end_in_file(), PROCESS_RUNNING);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(end_in_file(), PROCESS_KILLED);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(end_in_file(), PROCESS_KILLED);
}

static void test_a_recording_that_was_closed_says_exited(void **state)
{
    (void)state;
    struct process_info process = own_process();
    struct trace_writer writer;
    struct recording recording;
    assert_int_equal(trace_writer_open(&writer, path, &process, NO_LIMIT, NULL, NULL), 0);
    assert_int_equal(end_in_file(), PROCESS_RUNNING);
    trace_writer_close(&writer, 4242);
    read_good(&recording, path);
    assert_int_equal(recording.process.end, PROCESS_EXITED);
    assert_int_equal(recording.process.duration_ns, 4242);
    assert_int_equal(recording.process.pid, getpid());
    assert_int_equal(recording.process.ppid, getppid());
    assert_string_equal(recording.process.session, "session");
    assert_int_equal(recording.process.start_realtime_ns, process.start_realtime_ns);
    assert_int_equal(recording.process.start_monotonic_ns, process.start_monotonic_ns);
    recording_release(&recording);
}

/* A pid says little: it is another process when it started at another time, in another boot, or is unknown.
 */
static void test_a_pid_used_again_is_not_the_same_process(void **state)
{
    (void)state;
    for (int what = 0; what < 4; what++) {
        struct process_info process = own_process();
        struct trace_writer writer;
        char boot_id[40];
        if (what == 1)
            process.process_start_ticks++;
        if (what == 2)
            process.process_start_ticks = 0;
        if (what == 3) {
            strcpy(boot_id, process.boot_id);
            boot_id[0] = boot_id[0] == '0' ? '1' : '0';
            process.boot_id = boot_id;
        }
        set_up(state);
        assert_int_equal(trace_writer_open(&writer, path, &process, NO_LIMIT, NULL, NULL), 0);
        assert_int_equal(end_in_file(), what == 0 ? PROCESS_RUNNING : PROCESS_KILLED);
        trace_writer_abandon(&writer);
    }
}

#define WITH_PATH(test) cmocka_unit_test_setup(test, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PATH(test_what_was_done_before_sigkill_is_recorded),
        WITH_PATH(test_a_recording_can_be_read_while_it_grows),
        WITH_PATH(test_a_process_not_yet_waited_for_is_dead_all_the_same),
        WITH_PATH(test_a_recording_that_was_closed_says_exited),
        WITH_PATH(test_a_pid_used_again_is_not_the_same_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
