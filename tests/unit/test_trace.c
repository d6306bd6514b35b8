/* The recording's format, as gpumemtrace/trace.h describes it, by the writer and by the reader; and that what
 * is read back is what was written. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "happenings.h"
#include "recording_file.h"
#include "scratch.h"
#include "trace/varint.h"

#define NO_LIMIT UINT64_MAX

static void test_the_header_is_laid_out_as_documented(void **state)
{
    (void)state;
    static const struct {
        size_t offset, documented;
    } fields[] = {{offsetof(struct trace_header, magic), 0},
                  {offsetof(struct trace_header, version), 8},
                  {offsetof(struct trace_header, header_size), 12},
                  {offsetof(struct trace_header, committed), 16},
                  {offsetof(struct trace_header, state), 24},
                  {offsetof(struct trace_header, pid), 28},
                  {offsetof(struct trace_header, ppid), 32},
                  {offsetof(struct trace_header, start_realtime_ns), 40},
                  {offsetof(struct trace_header, start_monotonic_ns), 48},
                  {offsetof(struct trace_header, process_start_ticks), 56},
                  {offsetof(struct trace_header, end_ns), 64},
                  {offsetof(struct trace_header, dropped_events), 72},
                  {offsetof(struct trace_header, boot_id), 80},
                  {offsetof(struct trace_header, session), 120}};
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        assert_int_equal(fields[i].offset, fields[i].documented);
}

static void check_example_process(const struct recording *recording)
{
    const struct process_info *process = &recording->process;
    assert_int_equal(process->pid, 4711);
    assert_int_equal(process->ppid, 4710);
    assert_string_equal(process->exe, "/bin/train");
    assert_string_equal(process->host, "host");
    assert_int_equal(process->rank, 3);
    assert_int_equal(process->argument_count, 1);
    assert_string_equal(process->arguments[0], "--fast");
    assert_int_equal(process->start_realtime_ns, UINT64_C(1700000000000000000));
    assert_int_equal(process->start_monotonic_ns, 5);
    assert_string_equal(process->session, "s1");
    assert_int_equal(process->end, PROCESS_EXITED);
    assert_int_equal(process->duration_ns, 9000);
    assert_true(process->complete);
    assert_int_equal(recording->note_count, 1);
    assert_string_equal(catalog_string(recording->catalog, recording->notes[0]), "a note");
}

static void check_example_catalog(const struct catalog *catalog)
{
    const struct module *module = catalog_module(catalog, 0);
    assert_string_equal(module->path, "/lib/a.so");
    assert_int_equal(module->bias, UINT64_C(0x7f0000000000));
    assert_int_equal(module->start, UINT64_C(0x7f0000001000));
    assert_int_equal(module->end, UINT64_C(0x7f0000006000));
    assert_int_equal(module->file_size, 99999);
    assert_int_equal(module->file_mtime_ns, UINT64_C(1700000000123456789));
    assert_int_equal(module->build_id_bytes, 3);
    assert_memory_equal(module->build_id, "\1\2\3", 3);
    assert_int_equal(catalog_frame(catalog, 0)->module, 0);
    assert_int_equal(catalog_frame(catalog, 0)->offset, 0x1234);
    assert_int_equal(catalog_frame(catalog, 1)->module, CATALOG_NONE);
    assert_int_equal(catalog_frame(catalog, 1)->offset, UINT64_C(0xffffffffff600000));
    assert_int_equal(catalog_frame(catalog, 2)->kind, FRAME_PYTHON);
    assert_string_equal(catalog_string(catalog, catalog_frame(catalog, 2)->function), "step");
    assert_string_equal(catalog_string(catalog, catalog_frame(catalog, 2)->file), "a.py");
    assert_int_equal(catalog_frame(catalog, 2)->line, 300);
    static const uint32_t frames[] = {1, 0, 2};
    assert_int_equal(catalog_stack(catalog, 0)->count, 3);
    assert_memory_equal(catalog_stack(catalog, 0)->frames, frames, sizeof frames);
    const struct site_key *first = catalog_site(catalog, 0), *second = catalog_site(catalog, 1);
    assert_true(first->stack == 0 && first->api == 7 && first->family == FAMILY_PLAIN &&
                first->space == SPACE_DEVICE && first->device == 0);
    assert_true(second->stack == CATALOG_NONE && second->api == 7 && second->family == FAMILY_PINNED &&
                second->space == SPACE_PINNED && second->device == -1);
}

static void check_example_ledger(const struct ledger *ledger)
{
    const struct ledger_counters *counters = ledger_counters(ledger);
    assert_true(counters->events == 11 && counters->allocs == 2 && counters->frees == 0 &&
                counters->teardown_frees == 1 && counters->failed_allocs == 2 &&
                counters->foreign_frees == 1 && counters->dropped_events == 0);
    const struct block *handle = ledger_find(ledger, block_key(KEY_HANDLE, 77));
    assert_true(handle->size == 4096 && handle->born_ns == 2000 && handle->site == 1 && handle->context == 0);
    assert_null(ledger_find(ledger, block_key(KEY_ADDRESS, UINT64_C(0x7f1234560000))));
    struct site_totals site = ledger_site(ledger, 0);
    assert_true(site.totals.peak_bytes == 1 << 20 && site.totals.peak_time_ns == 1000 && site.failed == 2 &&
                site.bytes_at_peak == 1 << 20 && site.blocks_at_peak == 1 && site.totals.live_blocks == 0);
    const struct oom *oom = ledger_oom(ledger, 0);
    assert_true(oom->time_ns == 2500 && oom->requested_bytes == UINT64_C(1) << 40 && oom->error == 2 &&
                oom->free_bytes == 7 && oom->total_bytes == 8 && oom->live_bytes == 1 << 20 &&
                oom->share_count == 1 && oom->shares[0].site == 0);
    const struct memory_sample *memory = ledger_memory(ledger, 0);
    assert_true(memory->device == 0 && memory->time_ns == 2700 && memory->free_bytes == 70 &&
                memory->total_bytes == 80);
}

static void test_a_file_made_from_the_description_is_understood(void **state)
{
    (void)state;
    static struct raw_file file;
    struct recording recording;
    raw_begin(&file);
    raw_example(&file);
    raw_write(&file, scratch_path("described"));
    read_good(&recording, scratch_path("described"));
    assert_int_equal(recording.file_bytes, file.used);
    check_example_process(&recording);
    check_example_catalog(recording.catalog);
    check_example_ledger(recording.ledger);
    recording_release(&recording);
}

static void write_event(const struct recording *recording, const struct event *event, void *arg)
{
    (void)recording;
    trace_put_event(arg, event);
}

/* Writes again what was read: definitions first, which is the order the example has them in. */
static void write_again(const struct recording *recording, const char *from, struct trace_writer *writer)
{
    const struct catalog *catalog = recording->catalog;
    static const uint32_t process[] = {0, 1, 2, 3};
    struct recording events;
    char error[256];
    for (uint32_t i = 0; i < catalog_string_count(catalog); i++)
        trace_put_string(writer, catalog_string(catalog, i), strlen(catalog_string(catalog, i)));
    trace_put_process(writer, process, COUNT_OF(process));
    trace_put_module(writer, catalog_module(catalog, 0), 4);
    for (uint32_t i = 0; i < catalog_frame_count(catalog); i++)
        trace_put_frame(writer, catalog_frame(catalog, i));
    trace_put_stack(writer, catalog_stack(catalog, 0)->frames, catalog_stack(catalog, 0)->count);
    for (uint32_t i = 0; i < catalog_site_count(catalog); i++)
        trace_put_site(writer, catalog_site(catalog, i));
    trace_put_note(writer, recording->notes[0]);
    assert_int_equal(recording_read(&events, from, write_event, writer, error, sizeof error), 0);
    recording_release(&events);
}

static void test_the_writer_writes_what_the_description_says(void **state)
{
    (void)state;
    static struct raw_file expected, written;
    struct recording recording;
    struct trace_writer writer;
    const char *from = scratch_path("expected"), *to = scratch_path("written");
    raw_begin(&expected);
    raw_example(&expected);
    raw_write(&expected, from);
    read_good(&recording, from);
    struct process_info process = recording.process;
    assert_int_equal(trace_writer_open(&writer, to, &process, NO_LIMIT, NULL, NULL), 0);
    write_again(&recording, from, &writer);
    trace_writer_close(&writer, process.duration_ns);
    recording_release(&recording);
    written.used = scratch_read(to, written.bytes, sizeof written.bytes);
    assert_int_equal(written.used, expected.used);
    assert_memory_equal(written.bytes, expected.bytes, expected.used);
}

static void test_numbers_of_every_length_come_back(void **state)
{
    (void)state;
    uint8_t bytes[VARINT_MAX_BYTES];
    for (unsigned bits = 0; bits <= 64; bits++) {
        for (int step = -1; step <= 1; step++) {
            uint64_t number = (bits == 64 ? 0 : UINT64_C(1) << bits) + (uint64_t)(int64_t)step, back = 0;
            const uint8_t *end = varint_put(bytes, number), *at = bytes;
            assert_true(varint_get(&at, end, &back));
            assert_true(at == end && back == number);
            at = bytes;
            assert_false(varint_get(&at, end - 1, &back)); /* cut off */
            assert_true(unzigzag(zigzag((int64_t)number)) == (int64_t)number);
        }
    }
    assert_true(zigzag(0) == 0 && zigzag(-1) == 1 && zigzag(1) == 2 && zigzag(INT64_MIN) == UINT64_MAX);
}

static void test_numbers_of_more_than_64_bits_are_refused(void **state)
{
    (void)state;
    /* The tenth byte has room for one bit; an eleventh for none. */
    static const uint8_t most[] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 1};
    static const uint8_t over[] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 2};
    static const uint8_t longer[] = {128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0};
    uint64_t number;
    const uint8_t *at = most;
    assert_true(varint_get(&at, most + sizeof most, &number) && number == UINT64_MAX);
    at = over;
    assert_false(varint_get(&at, over + sizeof over, &number));
    at = longer;
    assert_false(varint_get(&at, longer + sizeof longer, &number));
}

/* What it was all for: the tool's books are the process's books. */
static void check_read_back(const struct trace_books *books, const char *path)
{
    struct recording recording;
    read_good(&recording, path);
    assert_true(recording.process.complete);
    assert_catalogs_equal(books->catalog, recording.catalog);
    assert_ledgers_equal(books->catalog, books->ledger, recording.ledger);
    recording_release(&recording);
}

static void test_random_happenings_read_back_exactly(void **state)
{
    (void)state;
    struct process_info process = own_process();
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct trace_writer writer;
        struct trace_books books;
        struct happenings happenings;
        const char *path = scratch_path("random");
        assert_int_equal(trace_writer_open(&writer, path, &process, NO_LIMIT, NULL, NULL), 0);
        trace_books_open(&books, &writer);
        happenings_start(&happenings, &books, seed);
        for (int i = 0; i < 1500; i++) {
            struct event event;
            struct block ended;
            happenings_next(&happenings, &event, &ended);
        }
        trace_writer_close(&writer, happenings.time_ns);
        check_read_back(&books, path);
        trace_books_close(&books);
        unlink(path);
    }
}

/* The ends of every type's range, where a sign or a bit could get lost on the way. */
static void test_extreme_values_read_back(void **state)
{
    (void)state;
    static const int devices[] = {-1, 0, 1, LEDGER_DEVICES_MAX - 1, LEDGER_DEVICES_MAX - 2, 2};
    struct process_info process = own_process();
    struct trace_writer writer;
    struct trace_books books;
    const char *path = scratch_path("extreme");
    assert_int_equal(trace_writer_open(&writer, path, &process, NO_LIMIT, NULL, NULL), 0);
    trace_books_open(&books, &writer);
    struct module module = {.path = "",
                            .bias = UINT64_MAX,
                            .end = UINT64_MAX,
                            .file_size = UINT64_MAX,
                            .build_id_bytes = BUILD_ID_MAX};
    memset(module.build_id, 0xee, sizeof module.build_id);
    trace_books_module(&books, &module);
    struct frame native = {.kind = FRAME_NATIVE, .module = 0, .offset = UINT64_MAX};
    struct frame python = {.kind = FRAME_PYTHON, .line = INT32_MAX};
    uint32_t frames[] = {trace_books_frame(&books, &native), trace_books_frame(&books, &python), 0};
    trace_books_stack(&books, frames, COUNT_OF(frames));
    trace_books_stack(&books, frames, 0);
    for (uint32_t i = 0; i < COUNT_OF(devices); i++) {
        uint32_t site = trace_books_site(&books, i, FAMILY_PLAIN, SPACE_DEVICE, devices[i]);
        uint64_t number = (i % 2 == 0 ? (UINT64_C(1) << KEY_NUMBER_BITS) - 1 : 0) ^ i;
        trace_books_apply(&books,
                          &(struct event){.type = EVENT_ALLOC,
                                          .site = site,
                                          .key = block_key((enum key_space)(i % KEY_SPACE_COUNT), number),
                                          .size = LEDGER_LIVE_MAX,
                                          .context = UINT32_MAX,
                                          .time_ns = i % 2 == 0 ? UINT64_MAX : 0},
                          NULL);
        trace_books_apply(&books,
                          &(struct event){.type = EVENT_OOM,
                                          .site = site,
                                          .size = UINT64_MAX,
                                          .error = i % 2 == 0 ? INT32_MIN : INT32_MAX},
                          NULL);
        trace_books_apply(
            &books,
            &(struct event){.type = EVENT_MEMORY, .device = devices[i] * 65536, .total_bytes = UINT64_MAX},
            NULL);
    }
    trace_writer_close(&writer, 0);
    check_read_back(&books, path);
    trace_books_close(&books);
}

static void see_before_ledger(const struct recording *recording, const struct event *event, void *arg)
{
    uint64_t *seen = arg;
    assert_int_equal(ledger_counters(recording->ledger)->events, (*seen)++);
    if (event->type == EVENT_ALLOC)
        assert_null(ledger_find(recording->ledger, event->key));
}

static void test_every_event_is_shown_before_the_ledger_takes_it(void **state)
{
    (void)state;
    static struct raw_file file;
    struct recording recording;
    char error[256];
    uint64_t seen = 0;
    const char *path = scratch_path("shown");
    raw_begin(&file);
    raw_example(&file);
    raw_write(&file, path);
    assert_int_equal(recording_read(&recording, path, see_before_ledger, &seen, error, sizeof error), 0);
    assert_int_equal(seen, 11);
    recording_release(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_header_is_laid_out_as_documented),
        cmocka_unit_test(test_a_file_made_from_the_description_is_understood),
        cmocka_unit_test(test_the_writer_writes_what_the_description_says),
        cmocka_unit_test(test_numbers_of_every_length_come_back),
        cmocka_unit_test(test_numbers_of_more_than_64_bits_are_refused),
        cmocka_unit_test(test_random_happenings_read_back_exactly),
        cmocka_unit_test(test_extreme_values_read_back),
        cmocka_unit_test(test_every_event_is_shown_before_the_ledger_takes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
