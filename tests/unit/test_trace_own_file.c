/* The recording's descriptor in a process that closes all descriptors, or starts without the standard ones
 * (trace/own_file.h): the program's files stay what they are. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "books.h"
#include "recording_file.h"
#include "scratch.h"

#define MIB          ((off_t)1 << 20)
#define EVENT_COUNT  300000 /* fill several windows of the map */
#define VICTIM_BYTES (8 * MIB)

static struct trace_writer writer;
static struct trace_books books;
static const char *path, *victim;

static int set_up(void **state)
{
    (void)state;
    struct process_info process = own_process();
    path = scratch_path("written");
    victim = scratch_path("victim");
    unlink(path);
    return trace_writer_open(&writer, path, &process, UINT64_MAX, NULL, NULL);
}

static void fill(void)
{
    trace_books_open(&books, &writer);
    trace_books_site(&books, 0, FAMILY_PLAIN, SPACE_DEVICE, 0);
    for (uint64_t n = 0; n < EVENT_COUNT; n++) {
        struct event event = {
            .type = EVENT_ALLOC, .key = block_key(KEY_ADDRESS, n * 256), .time_ns = n * 1000};
        trace_books_apply(&books, &event, NULL);
    }
    trace_writer_close(&writer, 0);
    trace_books_close(&books);
}

/* The program closed all descriptors, and its own file got our number, which is returned. */
static int put_in_our_place(void)
{
    int number = writer.log.file.fd, fd = open(victim, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, VICTIM_BYTES), 0);
    assert_int_equal(dup2(fd, number), number);
    close(fd);
    return number;
}

/* Neither closed nor cut nor written to. */
static void check_victim(int fd)
{
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_size, VICTIM_BYTES);
    assert_int_equal(status.st_blocks, 0);
    close(fd);
    unlink(victim);
}

static void check_recording(bool is_whole)
{
    struct recording recording;
    read_good(&recording, path);
    uint64_t events = ledger_counters(recording.ledger)->events;
    assert_int_equal(events + recording.file_dropped_events, EVENT_COUNT);
    assert_int_equal(recording.file_dropped_events == 0, is_whole);
    assert_int_equal(recording.process.complete, is_whole);
    assert_int_equal(recording.process.end, PROCESS_EXITED);
    recording_release(&recording);
}

static void test_a_descriptor_closed_under_us_is_opened_anew(void **state)
{
    (void)state;
    close(writer.log.file.fd);
    fill();
    check_recording(true);
}

static void test_a_programs_file_with_our_number_is_left_alone(void **state)
{
    (void)state;
    int fd = put_in_our_place();
    fill();
    check_victim(fd);
    check_recording(true);
}

static void test_a_file_that_cannot_be_had_again_ends_the_recording(void **state)
{
    (void)state;
    const char *elsewhere = scratch_path("elsewhere");
    int fd = put_in_our_place();
    assert_int_equal(rename(path, elsewhere), 0);
    scratch_write(path, "another's", 9);
    fill();
    assert_int_equal(writer.log.error, EBADF);
    check_victim(fd);
    char text[16];
    assert_int_equal(scratch_read(path, text, sizeof text), 9);
    assert_int_equal(rename(elsewhere, path), 0);
    check_recording(false);
}

static void abandon(void *unused)
{
    (void)unused;
    int fd = writer.log.file.fd;
    trace_writer_abandon(&writer);
    check_victim(fd);
}

static void test_a_forked_child_keeps_a_programs_file_with_our_number(void **state)
{
    (void)state;
    int fd = put_in_our_place();
    assert_int_equal(in_child(abandon, NULL), 0);
    close(fd);
    trace_writer_close(&writer, 0);
}

/* Otherwise whoever prints to one of them prints into the recording. */
static void record_without_standard_streams(void *unused)
{
    (void)unused;
    int report = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    trace_writer_close(&writer, 0);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        close(fd);
    set_up(NULL);
    bool printed = write(STDOUT_FILENO, "printed", 7) >= 0 || write(STDERR_FILENO, "printed", 7) >= 0;
    trace_writer_close(&writer, 0);
    dup2(report, STDERR_FILENO);
    assert_int_equal(writer.log.error, 0);
    assert_false(printed);
    assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
}

static void test_the_file_is_never_a_standard_stream(void **state)
{
    (void)state;
    assert_int_equal(in_child(record_without_standard_streams, NULL), 0);
    trace_writer_close(&writer, 0);
}

#define WITH_PATH(test) cmocka_unit_test_setup(test, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PATH(test_a_descriptor_closed_under_us_is_opened_anew),
        WITH_PATH(test_a_programs_file_with_our_number_is_left_alone),
        WITH_PATH(test_a_file_that_cannot_be_had_again_ends_the_recording),
        WITH_PATH(test_a_forked_child_keeps_a_programs_file_with_our_number),
        WITH_PATH(test_the_file_is_never_a_standard_stream),
    };
    return cmocka_run_group_tests_name("own_file", tests, NULL, NULL);
}
