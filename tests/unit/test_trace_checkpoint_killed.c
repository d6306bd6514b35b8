/*
 * SIGKILL in the middle of a checkpoint (gpumemtrace/trace.h): what is left has everything whose
 * trace_put_event() had returned, in every figure. GPUMEMTRACE_KILLS says how many processes are killed in
 * each of the two ways, 25 by default.
 */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "books.h"
#include "recording_file.h"
#include "scratch.h"

#define LIMIT         ((uint64_t)256 << 10)
#define KILLS_DEFAULT 25
#define SITES         60
#define KEYS          900
/* Records of a checkpoint here, about. */
#define RECORDS 1500

/* What the writing process tells the one that kills it. */
struct shared {
    _Atomic uint64_t done;        /* events whose trace_put_event() returned */
    _Atomic uint32_t checkpoints; /* begun */
};

static struct shared *shared;
static const char *path;
static struct trace_writer writer;
static struct trace_books books;

/* In the writing process: it kills itself in that checkpoint, when so many of its records were put. */
static uint64_t fatal_checkpoint, fatal_record, records;

static void apply_nth(struct trace_books *of, uint64_t n)
{
    struct event event = {.time_ns = n * 100,
                          .key = block_key(KEY_ADDRESS, n * 7919 % KEYS * 512),
                          .size = n * n % 100000,
                          .context = 1 + (uint32_t)(n % 3)};
    event.site =
        trace_books_site(of, (uint32_t)(n / 100 % SITES), FAMILY_PLAIN, SPACE_DEVICE, (int)(n / 100 % 2));
    event.type = n % 5000 == 4999 ? EVENT_TEARDOWN : n % 311 == 0 ? EVENT_OOM : EVENT_ALLOC;
    if (n % 3 == 2 && ledger_find(of->ledger, event.key) != NULL)
        event.type = EVENT_FREE;
    assert_true(trace_books_apply(of, &event, NULL));
}

static void put_state_and_die(void *arg, enum ledger_state_kind kind, const uint64_t *values, uint32_t count)
{
    trace_put_state(arg, kind, values, count);
    if (writer.log.generation == fatal_checkpoint && records++ == fatal_record)
        raise(SIGKILL);
}

static void put_everything(struct trace_writer *to, void *unused)
{
    (void)unused;
    atomic_fetch_add(&shared->checkpoints, 1);
    records = 0;
    trace_put_catalog(to, books.catalog);
    ledger_save(books.ledger, put_state_and_die, to);
}

static void write_without_end(void)
{
    struct process_info process = own_process();
    assert_int_equal(trace_writer_open(&writer, path, &process, LIMIT, put_everything, NULL), 0);
    trace_books_open(&books, &writer);
    for (uint64_t n = 0;; n++) {
        apply_nth(&books, n);
        assert_int_equal(writer.log.end, TRACE_LOG_GOES_ON);
        atomic_store_explicit(&shared->done, n + 1, memory_order_release);
    }
}

static pid_t start_writing(void)
{
    unlink(path);
    atomic_store(&shared->done, 0);
    atomic_store(&shared->checkpoints, 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("CMOCKA_TEST_ABORT", "1", 1);
        write_without_end();
        _exit(1);
    }
    return pid;
}

/* The recording against books that are given the same events anew. Returns how many it has. */
static uint64_t check_what_is_left(void)
{
    struct recording recording;
    struct trace_books fresh;
    read_good(&recording, path);
    uint64_t events = ledger_counters(recording.ledger)->events, done = atomic_load(&shared->done);
    assert_in_range(events, done, done + 1);
    trace_books_open(&fresh, NULL);
    for (uint64_t n = 0; n < events; n++)
        apply_nth(&fresh, n);
    /* One site or frame more may have been named for the event that was not put any more. */
    for (uint32_t i = 0; i < catalog_site_count(fresh.catalog); i++)
        assert_memory_equal(catalog_site(fresh.catalog, i), catalog_site(recording.catalog, i),
                            sizeof(struct site_key));
    assert_states_equal(fresh.ledger, recording.ledger);
    assert_int_equal(recording.process.end, PROCESS_KILLED);
    assert_true(recording.process.complete);
    trace_books_close(&fresh);
    recording_release(&recording);
    return events;
}

static uint64_t kills_wanted(void)
{
    const char *text = getenv("GPUMEMTRACE_KILLS");
    return text == NULL ? KILLS_DEFAULT : strtoull(text, NULL, 10);
}

static int set_up(void **state)
{
    (void)state;
    path = scratch_path("killed");
    if (shared == NULL)
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? -1 : 0;
}

static void test_killed_after_any_record_of_a_checkpoint(void **state)
{
    (void)state;
    uint64_t seed = 11;
    int status;
    for (uint64_t round = 0; round < kills_wanted(); round++) {
        fatal_checkpoint = 1 + random_below(&seed, 4);
        fatal_record = random_below(&seed, RECORDS);
        if (round % 8 == 0)
            fatal_record = round / 8 % 3; /* the first ones */
        pid_t pid = start_writing();
        /* A checkpoint of fewer records does not kill. */
        while (waitpid(pid, &status, WNOHANG) == 0) {
            if (atomic_load(&shared->checkpoints) > 6)
                assert_int_equal(kill(pid, SIGKILL), 0);
            usleep(200);
        }
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        check_what_is_left();
    }
    fatal_checkpoint = 0;
}

/* The header of the file as the process has it at this moment. */
static const struct trace_header *look_at_header(void)
{
    int fd;
    while ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0 || lseek(fd, 0, SEEK_END) < TRACE_HEADER_SIZE)
        if (fd >= 0)
            close(fd);
    const struct trace_header *header = mmap(NULL, TRACE_HEADER_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(header != MAP_FAILED);
    close(fd);
    return header;
}

static bool is_in_checkpoint(const struct trace_header *header)
{
    uint64_t half = header->half_bytes;
    return half != 0 && __atomic_load_n(&header->begun, __ATOMIC_ACQUIRE) !=
                            __atomic_load_n(&header->committed, __ATOMIC_ACQUIRE) / half;
}

static void test_killed_at_any_moment_of_a_checkpoint(void **state)
{
    (void)state;
    uint64_t seed = 12, within = 0;
    for (uint64_t kills = 0; kills < kills_wanted(); kills++) {
        pid_t pid = start_writing();
        const struct trace_header *header = look_at_header();
        uint32_t after = (uint32_t)random_below(&seed, 4);
        while (atomic_load(&shared->checkpoints) < after || !is_in_checkpoint(header))
            assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        for (uint64_t pause = random_below(&seed, 20000); pause > 0; pause--)
            __asm__ volatile("");
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        within += is_in_checkpoint(header);
        assert_int_equal(munmap((void *)(uintptr_t)header, TRACE_HEADER_SIZE), 0);
        check_what_is_left();
    }
    print_message("%llu of %llu died within the checkpoint\n", (unsigned long long)within,
                  (unsigned long long)kills_wanted());
    assert_true(within > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_killed_after_any_record_of_a_checkpoint, set_up),
        cmocka_unit_test_setup(test_killed_at_any_moment_of_a_checkpoint, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
