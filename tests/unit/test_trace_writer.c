/* The recording's file (trace/writer.h): whose it is, how far it may grow, and that neither a full disk nor
 * any limit is more than an error number to the program that is traced. */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "books.h"
#include "kernel.h"
#include "recording_file.h"
#include "scratch.h"

#define MIB      ((uint64_t)1 << 20)
#define NO_LIMIT UINT64_MAX

static struct trace_writer writer;
static struct trace_books books;
static const char *path;

/* A file system without fallocate(), as some network file systems are. */
static bool no_fallocate;

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    static int (*real)(int, int, off_t, off_t);
    if (no_fallocate) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "fallocate");
    return real(fd, mode, offset, bytes);
}

/* One on which space that was allocated may not be there when it is stored to: the file is not mapped. */
static bool is_network;

int fstatfs(int fd, struct statfs *status)
{
    if (!is_network)
        return (int)syscall(SYS_fstatfs, fd, status);
    memset(status, 0, sizeof *status);
    status->f_type = 0x6969; /* NFS */
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    path = scratch_path("written");
    unlink(path);
    no_fallocate = is_network = false;
    return 0;
}

static int open_writer(uint64_t limit)
{
    struct process_info process = own_process();
    return trace_writer_open(&writer, path, &process, limit, NULL, NULL);
}

static uint64_t size_of_file(void)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return (uint64_t)status.st_size;
}

static struct event nth_alloc(uint64_t n)
{
    return (struct event){
        .type = EVENT_ALLOC, .key = block_key(KEY_ADDRESS, n * 256), .size = n, .time_ns = n * 1000};
}

/* One site, then allocations until the writer has had enough. Returns how many it was given. */
static uint64_t fill(uint64_t max)
{
    uint64_t given = 0;
    trace_books_open(&books, &writer);
    trace_books_site(&books, 0, FAMILY_PLAIN, SPACE_DEVICE, 0);
    while (given < max && (writer.log.error == 0 || given % 1000 != 0)) {
        struct event event = nth_alloc(given++);
        trace_books_apply(&books, &event, NULL);
    }
    return given;
}

/* The recording ended early with `error`; what it has is the beginning, and it says how much is missing. */
static void check_ended_early(uint64_t given, int error)
{
    struct recording recording;
    assert_int_equal(writer.log.error, error);
    trace_writer_close(&writer, 0);
    trace_books_close(&books);
    read_good(&recording, path);
    uint64_t events = ledger_counters(recording.ledger)->events;
    assert_true(events > 0 && events < given);
    assert_int_equal(recording.file_dropped_events, given - events);
    assert_false(recording.process.complete);
    assert_int_equal(recording.process.end, PROCESS_EXITED);
    for (uint64_t n = 0; n < events; n++) {
        struct event event = nth_alloc(n);
        const struct block *block = ledger_find(recording.ledger, event.key);
        assert_true(block != NULL && block->size == n && block->born_ns == n * 1000);
    }
    recording_release(&recording);
}

static void test_the_file_is_its_owners_alone(void **state)
{
    (void)state;
    struct stat status;
    mode_t mask = umask(0);
    assert_int_equal(open_writer(NO_LIMIT), 0);
    umask(mask);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode, S_IFREG | 0600);
    assert_int_equal(fcntl(writer.log.file.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    trace_writer_close(&writer, 0);
}

static void test_a_file_that_is_there_is_never_touched(void **state)
{
    (void)state;
    char bytes[32];
    scratch_write(path, "somebody else's", 16);
    assert_int_equal(open_writer(NO_LIMIT), EEXIST);
    assert_false(trace_writer_is_open(&writer));
    assert_int_equal(scratch_read(path, bytes, sizeof bytes), 16);
    assert_string_equal(bytes, "somebody else's");
}

static void test_a_link_is_not_followed(void **state)
{
    (void)state;
    const char *target = scratch_path("target");
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(open_writer(NO_LIMIT), EEXIST);
    assert_int_equal(access(target, F_OK), -1);
}

static void test_a_folder_that_is_missing_is_an_error(void **state)
{
    (void)state;
    struct process_info process = own_process();
    struct event event = nth_alloc(0);
    assert_int_equal(trace_writer_open(&writer, scratch_path("no/folder"), &process, NO_LIMIT, NULL, NULL),
                     ENOENT);
    /* Everything goes on without a recording. */
    trace_put_string(&writer, "text", 4);
    trace_put_event(&writer, &event);
    assert_int_equal(writer.dropped_events, 1);
    trace_writer_close(&writer, 0);
}

static void test_space_is_reserved_ahead_and_given_back(void **state)
{
    (void)state;
    struct stat status;
    assert_int_equal(open_writer(NO_LIMIT), 0);
    fill(10);
    assert_int_equal(stat(path, &status), 0);
    assert_true((uint64_t)status.st_size > writer.log.position);
    assert_true((uint64_t)status.st_blocks * 512 >= writer.log.reserved_end[0]); /* allocated, not a hole */
    assert_int_equal(writer.log.header->committed, writer.log.position);
    uint64_t end = writer.log.position;
    trace_writer_close(&writer, 0);
    trace_books_close(&books);
    assert_int_equal(size_of_file(), end);
}

static void add_large_definitions(uint64_t round)
{
    static char text[TRACE_STRING_MAX];
    static uint32_t frames[TRACE_FRAMES_MAX];
    uint32_t count = round % 8 == 0 ? TRACE_FRAMES_MAX : (uint32_t)(round * 997 % 4000);
    memset(text, (int)('a' + round % 26), sizeof text);
    memcpy(text, &round, sizeof round);
    trace_books_string(&books, text, sizeof text - round % 3);
    uint64_t seed = round;
    for (uint32_t i = 0; i < count; i++)
        frames[i] = (uint32_t)random_below(&seed, catalog_frame_count(books.catalog));
    trace_books_stack(&books, frames, count);
}

/* Records of every size, the largest too, in several MiB: they lie across the borders of whatever the writer
 * maps at a time. */
static void check_many_mib(void)
{
    struct recording recording;
    assert_int_equal(open_writer(NO_LIMIT), 0);
    trace_books_open(&books, &writer);
    for (uint64_t round = 0; round < 100; round++) {
        uint32_t site = trace_books_site(&books, (uint32_t)round, FAMILY_PLAIN, SPACE_DEVICE, 0);
        for (uint64_t n = 0; n < 200; n++) {
            struct event event = nth_alloc(round * 200 + n);
            event.site = site;
            trace_books_apply(&books, &event, NULL);
        }
        add_large_definitions(round);
    }
    assert_true(writer.log.position > 6 * MIB);
    trace_writer_close(&writer, 7);
    read_good(&recording, path);
    assert_catalogs_equal(books.catalog, recording.catalog);
    assert_ledgers_equal(books.catalog, books.ledger, recording.ledger);
    assert_true(recording.process.complete);
    recording_release(&recording);
    trace_books_close(&books);
}

static void test_records_of_every_size_in_many_mib(void **state)
{
    (void)state;
    check_many_mib();
}

static void test_a_file_system_that_cannot_reserve_serves_too(void **state)
{
    (void)state;
    no_fallocate = true;
    check_many_mib();
}

static void test_a_file_that_had_better_not_be_mapped_serves_too(void **state)
{
    (void)state;
    is_network = true;
    check_many_mib();
}

static void test_a_file_that_cannot_be_mapped_serves_too(void **state)
{
    (void)state;
    kernel_refuses_shared_maps(true);
    check_many_mib();
    kernel_refuses_shared_maps(false);
}

static void test_texts_are_cut_to_what_a_record_holds(void **state)
{
    (void)state;
    struct recording recording;
    static char text[TRACE_STRING_MAX + 10];
    memset(text, 'x', sizeof text);
    assert_int_equal(open_writer(NO_LIMIT), 0);
    trace_put_string(&writer, text, sizeof text);
    trace_writer_close(&writer, 0);
    read_good(&recording, path);
    assert_int_equal(strlen(catalog_string(recording.catalog, 0)), TRACE_STRING_MAX);
    recording_release(&recording);
}

static void test_the_limit_ends_the_recording_and_is_kept(void **state)
{
    (void)state;
    assert_int_equal(open_writer(2 * MIB), 0);
    uint64_t given = fill(UINT64_MAX);
    assert_true(size_of_file() <= 2 * MIB);
    assert_true(writer.log.position >= MIB - MIB / 8); /* one half: there is nobody to begin the other */
    assert_int_equal(writer.log.end, TRACE_LOG_FULL);
    check_ended_early(given, EFBIG);
}

static void test_a_limit_too_small_for_anything_leaves_no_file(void **state)
{
    (void)state;
    assert_int_equal(open_writer(1000), EFBIG);
    assert_int_equal(access(path, F_OK), -1);
}

/* ulimit -f: growing a file beyond it would cost the program a SIGXFSZ, whose default is death. */
static void fill_under_ulimit(void *unused)
{
    (void)unused;
    struct rlimit limit = {.rlim_cur = 2 * MIB, .rlim_max = 2 * MIB};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(open_writer(NO_LIMIT), 0);
    uint64_t given = fill(UINT64_MAX);
    assert_int_equal(writer.log.end, TRACE_LOG_FAILED);
    check_ended_early(given, EFBIG);
}

static void open_under_tiny_ulimit(void *unused)
{
    (void)unused;
    struct rlimit limit = {.rlim_cur = 1000, .rlim_max = 1000};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(open_writer(NO_LIMIT), EFBIG);
    assert_int_equal(access(path, F_OK), -1);
}

static void test_a_file_size_limit_never_kills_the_program(void **state)
{
    (void)state;
    assert_int_equal(in_child(fill_under_ulimit, NULL), 0);
    unlink(path);
    no_fallocate = true;
    assert_int_equal(in_child(fill_under_ulimit, NULL), 0);
    unlink(path);
    assert_int_equal(in_child(open_under_tiny_ulimit, NULL), 0);
    unlink(path);
    is_network = true;
    assert_int_equal(in_child(fill_under_ulimit, NULL), 0);
}

/* A disk of 2 MiB of this process's own; ends the child where that is not allowed. */
static void enter_small_disk(void)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        _exit(CHILD_SKIPPED);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", scratch_folder(), "tmpfs", 0, "size=2M") != 0)
        _exit(CHILD_SKIPPED);
}

static void fill_small_disk(void *unused)
{
    (void)unused;
    enter_small_disk();
    assert_int_equal(open_writer(NO_LIMIT), 0);
    check_ended_early(fill(UINT64_MAX), ENOSPC);
}

static void open_on_full_disk(void *unused)
{
    (void)unused;
    static const char zeros[4096];
    enter_small_disk();
    int fd = open(scratch_path("rest"), O_WRONLY | O_CREAT, 0600);
    while (write(fd, zeros, sizeof zeros) > 0)
        continue;
    close(fd);
    assert_int_equal(open_writer(NO_LIMIT), ENOSPC);
    assert_int_equal(access(path, F_OK), -1);
}

static void test_a_full_disk_is_an_error_and_no_signal(void **state)
{
    (void)state;
    int status = in_child(fill_small_disk, NULL);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPPED)
        skip();
    assert_int_equal(status, 0);
    no_fallocate = true;
    assert_int_equal(in_child(fill_small_disk, NULL), 0);
    no_fallocate = false;
    assert_int_equal(in_child(open_on_full_disk, NULL), 0);
    is_network = true;
    assert_int_equal(in_child(fill_small_disk, NULL), 0);
    assert_int_equal(in_child(open_on_full_disk, NULL), 0);
}

/* Somebody truncates the file while it is written: the program goes on as if nothing were, and it is said. */
static void write_what_is_cut(void *unused)
{
    (void)unused;
    static const uint64_t sizes[] = {0, 100, TRACE_HEADER_SIZE, 20000, MIB / 2, MIB - 4096};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        unlink(path);
        assert_int_equal(open_writer(NO_LIMIT), 0);
        fill(1000);
        assert_int_equal(truncate(path, (off_t)sizes[i]), 0);
        for (uint64_t n = 0; n < 100000; n++) {
            struct event event = nth_alloc(1000 + n);
            event.time_ns += TRACE_LOG_UNCHECKED_NS;
            trace_books_apply(&books, &event, NULL);
        }
        trace_log_check(&writer.log);
        assert_int_equal(writer.log.end, TRACE_LOG_CUT);
        trace_writer_close(&writer, 0);
        assert_true(size_of_file() <= (is_network ? 8 * MIB : sizes[i]));
        trace_books_close(&books);
    }
}

static void test_a_file_that_is_cut_short_is_no_signal(void **state)
{
    (void)state;
    assert_int_equal(in_child(write_what_is_cut, NULL), 0);
}

static void test_a_file_that_is_gone_is_written_all_the_same(void **state)
{
    (void)state;
    assert_int_equal(open_writer(NO_LIMIT), 0);
    assert_int_equal(unlink(path), 0);
    fill(200000);
    assert_int_equal(writer.log.end, TRACE_LOG_GOES_ON);
    trace_writer_close(&writer, 0);
    trace_books_close(&books);
    assert_int_equal(access(path, F_OK), -1);
}

static void test_an_address_space_that_is_full_is_an_error(void **state)
{
    (void)state;
    for (int mappings = 0; mappings < 2; mappings++) {
        kernel_grants(mappings);
        assert_int_equal(open_writer(NO_LIMIT), ENOMEM);
        kernel_grants(KERNEL_GRANTS_ALL);
        assert_int_equal(access(path, F_OK), -1);
    }
    assert_int_equal(open_writer(NO_LIMIT), 0);
    fill(1);
    uint64_t given = 1;
    kernel_grants(0);
    while (writer.log.error == 0 || given % 1000 != 0) {
        struct event event = nth_alloc(given++);
        trace_put_event(&writer, &event);
    }
    kernel_grants(KERNEL_GRANTS_ALL);
    check_ended_early(given, ENOMEM);
}

static void use_parents_writer(void *unused)
{
    (void)unused;
    struct event event = nth_alloc(0);
    void *header = writer.log.header, *window = writer.log.window;
    trace_writer_abandon(&writer);
    assert_false(trace_writer_is_open(&writer));
    trace_put_string(&writer, "child", 5);
    trace_put_event(&writer, &event);
    trace_writer_close(&writer, 1);
    /* The parent's pages are not even there. */
    assert_int_equal(msync(header, TRACE_HEADER_SIZE, MS_ASYNC), -1);
    assert_int_equal(msync(window, MIB, MS_ASYNC), -1);
}

static void test_a_forked_child_leaves_its_parents_recording_alone(void **state)
{
    (void)state;
    struct recording recording;
    assert_int_equal(open_writer(NO_LIMIT), 0);
    fill(100);
    assert_int_equal(in_child(use_parents_writer, NULL), 0);
    struct event event = nth_alloc(100);
    trace_books_apply(&books, &event, NULL);
    trace_writer_close(&writer, 0);
    read_good(&recording, path);
    assert_ledgers_equal(books.catalog, books.ledger, recording.ledger);
    assert_true(recording.process.complete);
    recording_release(&recording);
    trace_books_close(&books);
}

#define WITH_PATH(test) cmocka_unit_test_setup(test, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PATH(test_the_file_is_its_owners_alone),
        WITH_PATH(test_a_file_that_is_there_is_never_touched),
        WITH_PATH(test_a_link_is_not_followed),
        WITH_PATH(test_a_folder_that_is_missing_is_an_error),
        WITH_PATH(test_space_is_reserved_ahead_and_given_back),
        WITH_PATH(test_records_of_every_size_in_many_mib),
        WITH_PATH(test_a_file_system_that_cannot_reserve_serves_too),
        WITH_PATH(test_a_file_that_had_better_not_be_mapped_serves_too),
        WITH_PATH(test_a_file_that_cannot_be_mapped_serves_too),
        WITH_PATH(test_texts_are_cut_to_what_a_record_holds),
        WITH_PATH(test_the_limit_ends_the_recording_and_is_kept),
        WITH_PATH(test_a_limit_too_small_for_anything_leaves_no_file),
        WITH_PATH(test_a_file_size_limit_never_kills_the_program),
        WITH_PATH(test_a_full_disk_is_an_error_and_no_signal),
        WITH_PATH(test_a_file_that_is_cut_short_is_no_signal),
        WITH_PATH(test_a_file_that_is_gone_is_written_all_the_same),
        WITH_PATH(test_an_address_space_that_is_full_is_an_error),
        WITH_PATH(test_a_forked_child_leaves_its_parents_recording_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
