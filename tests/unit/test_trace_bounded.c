/*
 * A recording that may not grow beyond a size (gpumemtrace/trace.h): whatever has happened, what is read back
 * is what the process had in its books, in every figure that it could ever give, and goes on like them.
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "happenings.h"
#include "recording_file.h"
#include "scratch.h"

#define KIB   ((uint64_t)1 << 10)
#define SEEDS 10

static struct trace_writer writer;
static struct trace_books books;
static struct happenings happenings;
static const char *path;
static uint32_t site_count;

/* What file system the writer believes to be on; 0: the truth. Where it is none that it knows, the recording
 * is written by pwrite(). */
static uint64_t file_system;

int fstatfs(int fd, struct statfs *status)
{
    (void)fd;
    memset(status, 0, sizeof *status);
    status->f_type = file_system == 0 ? 0xef53 : (__typeof__(status->f_type))file_system;
    return 0;
}

static void begin(uint64_t limit, uint64_t seed)
{
    struct process_info process = own_process();
    path = scratch_path("bounded");
    unlink(path);
    site_count = HAPPENINGS_SITES;
    assert_int_equal(trace_writer_open(&writer, path, &process, limit, trace_books_put_everything, &books),
                     0);
    trace_books_open(&books, &writer);
    happenings_start(&happenings, &books, seed);
}

static void apply(struct event event)
{
    event.time_ns = happenings.time_ns += random_below(&happenings.seed, 1000);
    assert_true(trace_books_apply(&books, &event, NULL));
}

static uint64_t some_address(void)
{
    return block_key(KEY_ADDRESS, UINT64_C(0x7e0000000000) + random_below(&happenings.seed, 40) * 4096);
}

/* What happenings.h does not do: mappings, pools, a framework's blocks inside a driver's, and new sites. */
static void let_happen(void)
{
    uint64_t dice = random_below(&happenings.seed, 100), size = random_below(&happenings.seed, 9000);
    struct event event = {.key = some_address(), .size = size, .site = happenings.sites[10]};
    struct block ended;
    if (dice < 4) {
        event.type = EVENT_MAP;
    } else if (dice < 7) {
        event.type = EVENT_UNMAP;
    } else if (dice < 9) {
        event.type = EVENT_POOL;
        event.key = block_key(KEY_POOL, 1 + random_below(&happenings.seed, 3));
        event.total_bytes = size;
        event.free_bytes = size / 3;
    } else if (dice < 14) {
        event.type = EVENT_ALLOC;
        event.site = happenings.sites[dice < 12 ? 0 : 12 + dice % 2];
        event.key = dice < 12 ? event.key : block_key(KEY_FRAMEWORK, block_key_number(event.key) + size);
    } else if (dice == 14) {
        event.type = EVENT_ALLOC;
        event.site = trace_books_site(&books, site_count++, FAMILY_POOL, SPACE_DEVICE, 0);
    } else {
        happenings_next(&happenings, &event, &ended);
        return;
    }
    apply(event);
}

static void check(void)
{
    struct recording recording;
    assert_int_equal(writer.log.end, TRACE_LOG_GOES_ON);
    read_good(&recording, path);
    assert_catalogs_equal(books.catalog, recording.catalog);
    assert_ledgers_equal(books.catalog, books.ledger, recording.ledger);
    assert_states_equal(books.ledger, recording.ledger);
    assert_true(recording.process.complete);
    assert_int_equal(recording.events_since_ns != 0, writer.log.generation > 0);
    recording_release(&recording);
}

static void end(void)
{
    trace_writer_close(&writer, happenings.time_ns);
    trace_books_close(&books);
}

static uint64_t size_of_file(void)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return (uint64_t)status.st_size;
}

static void check_many_seeds(void)
{
    uint64_t generations = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        uint64_t limit = (256 + 128 * (seed % 3)) * KIB;
        begin(limit, seed);
        while (writer.log.end == TRACE_LOG_GOES_ON && writer.log.generation < 3) {
            let_happen();
            if (random_below(&happenings.seed, 4000) == 0)
                check();
        }
        assert_true(size_of_file() <= limit);
        check();
        generations += writer.log.generation;
        trace_writer_close(&writer, happenings.time_ns);
        assert_true(size_of_file() <= limit);
        check();
        trace_books_close(&books);
    }
    print_message("%llu checkpoints\n", (unsigned long long)generations);
}

static void test_nothing_is_lost_by_checkpoints(void **state)
{
    (void)state;
    file_system = 0;
    check_many_seeds();
}

static void test_nothing_is_lost_where_files_are_not_mapped(void **state)
{
    (void)state;
    file_system = 0x6969; /* NFS */
    check_many_seeds();
    file_system = 0;
}

/* A ledger that was restored is the other's equal for all that comes. */
static void test_what_was_restored_goes_on_alike(void **state)
{
    (void)state;
    for (uint64_t seed = 100; seed < 110; seed++) {
        struct recording recording;
        begin(256 * KIB, seed);
        while (writer.log.generation < 1)
            let_happen();
        read_good(&recording, path);
        for (int n = 0; n < 3000; n++) {
            struct event event;
            struct block ended;
            happenings_next(&happenings, &event, &ended);
            ledger_apply(recording.ledger, &event, NULL);
        }
        assert_ledgers_equal(books.catalog, books.ledger, recording.ledger);
        assert_states_equal(books.ledger, recording.ledger);
        recording_release(&recording);
        end();
    }
}

static void test_what_is_alive_may_be_too_much_to_keep(void **state)
{
    (void)state;
    struct recording recording;
    begin(256 * KIB, 1);
    uint64_t n = 0;
    while (writer.dropped_events < 1000) {
        n++;
        apply((struct event){.type = EVENT_ALLOC,
                             .site = happenings.sites[0],
                             .key = block_key(KEY_ADDRESS, n * 512),
                             .size = n});
    }
    assert_int_equal(writer.log.end, TRACE_LOG_FULL);
    assert_true(size_of_file() <= 256 * KIB);
    trace_writer_close(&writer, happenings.time_ns);
    read_good(&recording, path);
    assert_false(recording.process.complete);
    uint64_t kept = ledger_counters(recording.ledger)->allocs;
    assert_int_equal(recording.file_dropped_events, n - kept);
    for (uint64_t i = 1; i <= kept; i++)
        assert_non_null(ledger_find(recording.ledger, block_key(KEY_ADDRESS, i * 512)));
    recording_release(&recording);
    trace_books_close(&books);
}

/* A definition, too, may be what finds the recording full. */
enum found_full { BY_STRING, BY_SITE, BY_EVENT, FOUND_FULL_COUNT };

/* One thing more; what it was. Strings are long, so that one often is what finds the recording full. */
static enum found_full put_something(uint64_t n)
{
    char text[900];
    if (n % 200 == 0) {
        memset(text, 'x', sizeof text);
        snprintf(text, sizeof text, "%0*llu", (int)sizeof text - 1, (unsigned long long)n);
        trace_books_text(&books, text);
        return BY_STRING;
    }
    if (n % 20 == 0) {
        trace_books_site(&books, site_count++, FAMILY_PLAIN, SPACE_DEVICE, 0);
        return BY_SITE;
    }
    let_happen();
    return BY_EVENT;
}

static void test_a_checkpoint_may_be_due_at_any_record(void **state)
{
    (void)state;
    bool seen[FOUND_FULL_COUNT] = {false};
    for (uint64_t seed = 0; seed < 200 && !(seen[BY_STRING] && seen[BY_SITE] && seen[BY_EVENT]); seed++) {
        enum found_full by = BY_EVENT;
        begin(512 * KIB, seed);
        for (uint64_t n = seed; writer.log.generation == 0 && writer.log.end == TRACE_LOG_GOES_ON; n++)
            by = put_something(n);
        seen[by] = true;
        check();
        for (uint64_t n = 1; n < 200; n++)
            put_something(n);
        check();
        end();
    }
    for (int by = 0; by < FOUND_FULL_COUNT; by++)
        assert_true(seen[by]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_lost_by_checkpoints),
        cmocka_unit_test(test_nothing_is_lost_where_files_are_not_mapped),
        cmocka_unit_test(test_what_was_restored_goes_on_alike),
        cmocka_unit_test(test_what_is_alive_may_be_too_much_to_keep),
        cmocka_unit_test(test_a_checkpoint_may_be_due_at_any_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
