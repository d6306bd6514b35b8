/*
 * The recorder (preload/recorder.h) with a capture made up here: what hooks report is in the books and in the
 * recording alike, from any number of threads, and the traced program never notices.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "books.h"
#include "capture/modules.h"
#include "preload/life.h"
#include "preload/recorder.h"
#include "preload/state.h"
#include "recording_file.h"
#include "scratch.h"

#define BIAS 0x500000 /* of the one module; addresses below are in none */

/* The stack that the calling thread is said to have: one native frame in the module, one in none, and one
 * Python frame, all told by `place`. */
static __thread uint32_t place;
static _Atomic uint32_t names_asked;

void capture_start(enum capture_mode mode, uint32_t depth, void (*note)(const char *sentence))
{
    (void)mode;
    (void)depth;
    note("A sentence from capture.");
}

void capture_take(struct raw_stack *stack)
{
    static __thread uintptr_t native[2];
    static __thread struct python_frame python;
    native[0] = BIAS + 0x10 + place;
    native[1] = 0x1000 + place;
    python = (struct python_frame){.fingerprint = place, .byte_offset = 2};
    *stack = (struct raw_stack){
        .hash = place, .native_count = 2, .python_count = 1, .native = native, .python = &python};
    errno = EINVAL; /* whatever capture does to it */
}

bool capture_python_name(const struct python_frame *frame, struct python_name *name)
{
    /* Two code objects are of one function, as when a module is loaded twice. */
    unsigned function = (unsigned)frame->fingerprint / 2;
    names_asked++;
    snprintf(name->function, sizeof name->function, "function%u", function);
    snprintf(name->file, sizeof name->file, "file.py");
    name->line = (int32_t)function + 1;
    return true;
}

void capture_modules_changed(void)
{
}

uint32_t capture_generation(void)
{
    return 1;
}

void capture_after_fork(void)
{
}

bool modules_find(uintptr_t address, struct loaded_module *found)
{
    if (address < BIAS)
        return false;
    snprintf(found->path, sizeof found->path, "/lib/made_up.so");
    found->module = (struct module){.path = found->path, .bias = BIAS, .start = BIAS, .end = BIAS + 0x100000};
    return true;
}

static char trace_path[CONFIG_PATH_MAX + 8];

static int set_up(void **state)
{
    static int round;
    char pattern[512];
    (void)state;
    snprintf(pattern, sizeof pattern, "%s/recorded%d", scratch_folder(), round++);
    setenv("GPUMEMTRACE_OUTPUT", pattern, 1);
    config_read(&preload.config);
    snprintf(trace_path, sizeof trace_path, "%s.gmt", pattern);
    preload.pid = getpid();
    place = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (trace_writer_is_open(&preload.writer))
        trace_writer_close(&preload.writer, 0);
    preload_reset();
    memset(preload.contexts, 0, sizeof preload.contexts);
    memset(preload.notes, 0, sizeof preload.notes);
    preload.note_count = 0;
    preload.prepared = false;
    preload.phase = PHASE_IDLE;
    return 0;
}

static struct allocation device_block(uint64_t key, uint64_t size)
{
    return (struct allocation){.api = "cuMemAlloc",
                               .family = FAMILY_PLAIN,
                               .space = SPACE_DEVICE,
                               .key_space = KEY_ADDRESS,
                               .key = key,
                               .size = size};
}

static void allocate(uint64_t key, uint64_t size)
{
    struct allocation allocation = device_block(key, size);
    record_allocation(&allocation);
}

static const struct ledger_counters *counters(void)
{
    return ledger_counters(preload.ledger);
}

/* The recording, as far as it is, against the process's own books. */
static void check_recording(struct recording *recording)
{
    read_good(recording, trace_path);
    assert_catalogs_equal(preload.catalog, recording->catalog);
    assert_ledgers_equal(preload.catalog, preload.ledger, recording->ledger);
    assert_true(recording->process.complete);
}

static void test_nothing_is_made_before_the_first_allocation(void **state)
{
    (void)state;
    struct block ended;
    struct stat status;
    assert_false(record_free(KEY_ADDRESS, 1, &ended));
    assert_false(record_retain(KEY_HANDLE, 1));
    record_sample(0, SAMPLE_ALLOCATION, &(struct driver_figures){.free_bytes = 1, .total_bytes = 2});
    record_teardown(&status);
    assert_int_equal(preload.phase, PHASE_IDLE);
    assert_int_equal(preload.arena.mapped_bytes, 0);
    assert_int_equal(stat(trace_path, &status), -1);
}

static void test_only_the_outermost_of_nested_hooks_records(void **state)
{
    (void)state;
    assert_true(hook_enter());
    assert_false(hook_enter());
    assert_false(hook_enter());
    hook_leave();
    hook_leave();
    hook_leave();
    assert_true(hook_enter());
    hook_leave();
    thread_state.locked = true; /* a signal handler in the middle of our own work */
    assert_false(hook_enter());
    hook_leave();
    thread_state.locked = false;
    preload.phase = PHASE_OFF;
    assert_false(hook_enter());
    hook_leave();
}

static void test_an_allocation_is_recorded_with_its_stack(void **state)
{
    (void)state;
    struct recording recording;
    place = 7;
    allocate(0x1000, 64);
    check_recording(&recording);
    const struct catalog *catalog = recording.catalog;
    const struct site_key *site = catalog_site(catalog, 0);
    const struct stack *stack = catalog_stack(catalog, site->stack);
    assert_string_equal(catalog_string(catalog, site->api), "cuMemAlloc");
    assert_int_equal(stack->count, 3);
    const struct frame *first = catalog_frame(catalog, stack->frames[0]);
    const struct frame *second = catalog_frame(catalog, stack->frames[1]);
    const struct frame *third = catalog_frame(catalog, stack->frames[2]);
    assert_string_equal(catalog_module(catalog, first->module)->path, "/lib/made_up.so");
    assert_int_equal(first->offset, 0x17); /* the address less the module's bias */
    assert_int_equal(second->module, CATALOG_NONE);
    assert_int_equal(second->offset, 0x1007);
    assert_string_equal(catalog_string(catalog, third->function), "function3");
    assert_int_equal(third->line, 4);
    assert_int_equal(recording.process.pid, getpid());
    assert_string_equal(catalog_string(catalog, recording.notes[0]), "A sentence from capture.");
    recording_release(&recording);
}

static void test_a_site_is_known_by_its_stack_and_api_not_by_the_literal(void **state)
{
    (void)state;
    static const char same_api[] = "cuMemAlloc";
    struct allocation allocation = device_block(0, 1);
    names_asked = 0;
    for (uint64_t i = 0; i < 100; i++) {
        place = i % 2;
        allocation.api = i % 4 < 2 ? "cuMemAlloc" : same_api;
        allocation.key = i;
        record_allocation(&allocation);
    }
    assert_int_equal(catalog_site_count(preload.catalog), 2);
    assert_int_equal(ledger_site(preload.ledger, 0).totals.allocs, 50);
    assert_int_equal(names_asked, 2); /* each new stack is named once */
}

static void test_frees_retains_and_refusals_reach_the_books(void **state)
{
    (void)state;
    struct recording recording;
    struct block ended;
    allocate(1, 10);
    allocate(2, 20);
    assert_true(record_retain(KEY_ADDRESS, 2));
    assert_false(record_retain(KEY_ADDRESS, 3));
    assert_true(record_free(KEY_ADDRESS, 1, &ended));
    assert_int_equal(ended.size, 10);
    record_unfree(&ended); /* the driver would not */
    assert_true(record_free(KEY_ADDRESS, 2, &ended));
    assert_true(record_free(KEY_ADDRESS, 2, &ended));
    assert_false(record_free(KEY_ADDRESS, 2, &ended));
    assert_false(record_free(KEY_HANDLE, 1, &ended)); /* another kind of number */
    struct allocation refused = device_block(0, 999);
    record_failure(&refused, 1);
    record_out_of_memory(&refused, 2, 5, 80);
    record_sample(1, SAMPLE_EXIT, &(struct driver_figures){.free_bytes = 30, .total_bytes = 80});
    assert_true(counters()->allocs == 2 && counters()->frees == 1 && counters()->foreign_frees == 2 &&
                counters()->failed_allocs == 2);
    assert_int_equal(ledger_oom(preload.ledger, 0)->live_bytes, 10);
    assert_int_equal(ledger_memory(preload.ledger, 0)->device, 0);
    assert_int_equal(ledger_memory(preload.ledger, 0)->reason, SAMPLE_OOM);
    assert_int_equal(ledger_memory(preload.ledger, 1)->device, 1);
    assert_int_equal(ledger_memory(preload.ledger, 1)->reason, SAMPLE_EXIT);
    check_recording(&recording);
    recording_release(&recording);
}

static void test_a_context_has_one_number_until_it_ends(void **state)
{
    (void)state;
    int one, other;
    struct allocation allocation = device_block(1, 10);
    assert_int_equal(recorder_context(NULL), 0);
    uint32_t number = recorder_context(&one);
    assert_true(number > 0);
    assert_int_equal(recorder_context(&one), number);
    assert_int_not_equal(recorder_context(&other), number);
    allocation.context = number;
    record_allocation(&allocation);
    allocation.context = recorder_context(&other);
    allocation.key = 2;
    record_allocation(&allocation);
    record_teardown(&one);
    assert_int_equal(counters()->teardown_frees, 1);
    assert_non_null(ledger_find(preload.ledger, block_key(KEY_ADDRESS, 2)));
    assert_int_not_equal(recorder_context(&one), number); /* its handle means another context now */
    assert_int_not_equal(recorder_context(&one), recorder_context(&other));
}

static void test_errno_is_the_programs_own(void **state)
{
    (void)state;
    struct block ended;
    struct allocation allocation = device_block(1, 10);
    errno = ESTALE;
    record_allocation(&allocation); /* opens files on the way */
    record_failure(&allocation, 1);
    record_out_of_memory(&allocation, 2, 0, 0);
    record_free(KEY_ADDRESS, 1, &ended);
    record_unfree(&ended);
    record_retain(KEY_ADDRESS, 1);
    record_sample(0, SAMPLE_ALLOCATION, &(struct driver_figures){.free_bytes = 1, .total_bytes = 2});
    record_teardown(&ended);
    recorder_prepare();
    recorder_modules_changed();
    assert_int_equal(errno, ESTALE);
    preload_finish();
    assert_int_equal(errno, ESTALE);
}

static void test_where_nothing_can_be_written_the_books_are_kept(void **state)
{
    (void)state;
    setenv("GPUMEMTRACE_OUTPUT", "/proc/no/such/folder", 1);
    config_read(&preload.config);
    allocate(1, 10);
    assert_false(trace_writer_is_open(&preload.writer));
    assert_int_equal(counters()->allocs, 1);
    assert_int_equal(preload.phase, PHASE_RECORDING);
    bool said = false;
    for (uint32_t i = 0; i < preload.note_count; i++)
        said |= strstr(preload.notes[i], "could not be written") != NULL;
    assert_true(said);
}

static void test_a_name_that_is_taken_gets_a_number(void **state)
{
    (void)state;
    char taken[CONFIG_PATH_MAX], next[CONFIG_PATH_MAX];
    snprintf(taken, sizeof taken, "%.*s.json", (int)strlen(trace_path) - 4, trace_path);
    snprintf(next, sizeof next, "%.*s-2.gmt", (int)strlen(trace_path) - 4, trace_path);
    scratch_write(taken, "{}", 2);
    allocate(1, 10);
    assert_int_equal(access(trace_path, F_OK), -1);
    assert_int_equal(access(next, F_OK), 0);
}

static void test_after_the_end_nothing_is_recorded(void **state)
{
    (void)state;
    struct recording recording;
    struct block ended;
    allocate(1, 10);
    preload_finish();
    allocate(2, 10);
    assert_false(record_free(KEY_ADDRESS, 1, &ended));
    assert_false(hook_enter());
    hook_leave();
    preload_finish();
    read_good(&recording, trace_path);
    assert_int_equal(recording.process.end, PROCESS_EXITED);
    assert_int_equal(ledger_counters(recording.ledger)->events, 1);
    recording_release(&recording);
}

/* ulimit -f: the recording has its place, a long report has not, and neither may cost the program a SIGXFSZ.
 */
static void finish_under_ulimit(void *unused)
{
    (void)unused;
    struct rlimit limit = {.rlim_cur = 2 << 20, .rlim_max = 2 << 20};
    char json[CONFIG_PATH_MAX];
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    preload.pid = getpid();
    for (place = 0; place < 8000; place++)
        allocate(place, 1);
    preload_finish();
    snprintf(json, sizeof json, "%.*s.json", (int)strlen(trace_path) - 4, trace_path);
    assert_int_equal(access(trace_path, F_OK), 0);
    assert_int_equal(access(json, F_OK), -1); /* half of one misleads */
}

static void test_a_report_beyond_the_file_size_limit_never_kills(void **state)
{
    (void)state;
    assert_int_equal(in_child(finish_under_ulimit, NULL), 0);
}

static void speak_into_closed_pipe(void *unused)
{
    (void)unused;
    struct stat status;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    close(ends[0]);
    assert_int_equal(fstat(STDERR_FILENO, &status), 0);
    preload.stderr_device = status.st_dev;
    preload.stderr_inode = status.st_ino;
    preload.pid = getpid();
    setenv("GPUMEMTRACE_DEPTH", "nonsense", 1);
    config_read(&preload.config);
    allocate(1, 10); /* says what is wrong with it */
    preload_finish();
}

static void test_a_closed_stderr_pipe_never_kills(void **state)
{
    (void)state;
    assert_int_equal(in_child(speak_into_closed_pipe, NULL), 0);
}

/* More than a window of the recording. */
#define CANCELLED_CALLS 200000

static void *allocate_while_cancelled(void *arg)
{
    int before;
    pthread_cancel(pthread_self());
    for (int i = 1; i <= CANCELLED_CALLS; i++)
        allocate(i, 10); /* opens, reserves and writes files, where a thread could end */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    *(bool *)arg = before == PTHREAD_CANCEL_ENABLE;
    return NULL;
}

static void test_a_thread_is_not_cancelled_in_our_midst(void **state)
{
    (void)state;
    pthread_t thread;
    bool came_back = false;
    assert_int_equal(pthread_create(&thread, NULL, allocate_while_cancelled, &came_back), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(came_back);
    assert_int_equal(pthread_mutex_trylock(&preload.lock), 0);
    pthread_mutex_unlock(&preload.lock);
    assert_int_equal(counters()->allocs, CANCELLED_CALLS);
}

#define THREADS 8
#define TURNS   4000

/* Each thread has addresses of its own, as the driver hands them out, and keeps books of its own. */
struct worker {
    pthread_t thread;
    uint64_t number, allocs, frees, live_bytes;
};

static void *work(void *arg)
{
    struct worker *worker = arg;
    uint64_t seed = worker->number, sizes[32] = {0};
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t slot = random_below(&seed, 32), key = worker->number * 1000 + slot;
        struct block ended;
        place = (uint32_t)random_below(&seed, 40);
        if (hook_enter() && sizes[slot] == 0) {
            sizes[slot] = random_below(&seed, 1000) + 1;
            allocate(key, sizes[slot]);
            worker->allocs++;
            worker->live_bytes += sizes[slot];
        } else if (record_free(KEY_ADDRESS, key, &ended)) {
            worker->frees++;
            worker->live_bytes -= sizes[slot];
            sizes[slot] = 0;
            if (random_below(&seed, 10) == 0) {
                record_unfree(&ended);
                worker->frees--;
                worker->live_bytes += ended.size;
                sizes[slot] = ended.size;
            }
        }
        hook_leave();
    }
    return NULL;
}

static void test_threads_keep_books_and_recording_exact(void **state)
{
    (void)state;
    struct worker workers[THREADS] = {0};
    struct recording recording;
    uint64_t allocs = 0, frees = 0, live_bytes = 0;
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i].number = i + 1;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        allocs += workers[i].allocs;
        frees += workers[i].frees;
        live_bytes += workers[i].live_bytes;
    }
    assert_int_equal(counters()->allocs, allocs);
    assert_int_equal(counters()->frees, frees);
    assert_int_equal(counters()->dropped_events, 0);
    assert_int_equal(counters()->foreign_frees, 0);
    assert_int_equal(ledger_space(preload.ledger, 0)->totals.live_bytes, live_bytes);
    assert_int_equal(catalog_site_count(preload.catalog), 40);
    assert_int_equal(catalog_stack_count(preload.catalog), 40);
    check_recording(&recording);
    recording_release(&recording);
}

#define RECORDING(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORDING(test_nothing_is_made_before_the_first_allocation),
        RECORDING(test_only_the_outermost_of_nested_hooks_records),
        RECORDING(test_an_allocation_is_recorded_with_its_stack),
        RECORDING(test_a_site_is_known_by_its_stack_and_api_not_by_the_literal),
        RECORDING(test_frees_retains_and_refusals_reach_the_books),
        RECORDING(test_a_context_has_one_number_until_it_ends),
        RECORDING(test_errno_is_the_programs_own),
        RECORDING(test_where_nothing_can_be_written_the_books_are_kept),
        RECORDING(test_a_name_that_is_taken_gets_a_number),
        RECORDING(test_after_the_end_nothing_is_recorded),
        RECORDING(test_a_report_beyond_the_file_size_limit_never_kills),
        RECORDING(test_a_closed_stderr_pipe_never_kills),
        RECORDING(test_a_thread_is_not_cancelled_in_our_midst),
        RECORDING(test_threads_keep_books_and_recording_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
