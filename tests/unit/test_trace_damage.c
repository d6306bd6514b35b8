/* A recording is untrusted: whatever its bytes, the reader answers with a recording or with one sentence,
 * soon and without a crash. Run under AddressSanitizer this is where it would show. */
#include "unit.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording_file.h"
#include "scratch.h"

/* Far more than any answer takes; SIGALRM ends a reader that does not come back. */
#ifdef __SANITIZE_THREAD__
#define PATIENCE_S 600
#else
#define PATIENCE_S 60
#endif

static struct raw_file file;
static const char *path;

static int set_up(void **state)
{
    (void)state;
    path = scratch_path("damaged");
    raw_begin(&file);
    alarm(PATIENCE_S);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    alarm(0);
    unlink(path);
    return 0;
}

/* Either answer is good, if it is a whole one. True for a recording. */
static bool read_any(void)
{
    struct recording recording;
    char error[256];
    memset(error, 1, sizeof error);
    if (recording_read(&recording, path, NULL, NULL, error, sizeof error) == 0) {
        assert_non_null(recording.ledger);
        recording_release(&recording);
        return true;
    }
    const char *end = memchr(error, '\0', sizeof error);
    assert_non_null(end);
    assert_true(end > error);
    assert_null(strpbrk(error, "\n\1"));
    assert_null(recording.ledger); /* nothing is left to release */
    return false;
}

static void assert_record_refused(const char *sentence)
{
    raw_write(&file, path);
    assert_refused(path, sentence);
}

static void test_what_is_no_recording_is_refused(void **state)
{
    (void)state;
    static const char zeros[8192];
    assert_refused(path, "No such file");
    assert_refused(scratch_folder(), "not a regular file");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused(path, "not a regular file");
    unlink(path);
    scratch_write(path, "", 0);
    assert_refused(path, "too short");
    scratch_write(path, zeros, TRACE_HEADER_SIZE - 1);
    assert_refused(path, "too short");
    scratch_write(path, zeros, sizeof zeros);
    assert_refused(path, "not a recording");
    /* Read as a header, it would say that it had long been overwritten. */
    static char text[8192];
    memset(text, 'x', sizeof text);
    scratch_write(path, text, sizeof text);
    assert_refused(path, "not a recording");
}

static void read_without_rights(void *unused)
{
    (void)unused;
    if (geteuid() == 0)
        assert_int_equal(setresuid(65534, 65534, 65534), 0); /* root reads everything */
    assert_refused(path, "Permission denied");
}

static void test_an_unreadable_file_is_refused(void **state)
{
    (void)state;
    raw_write(&file, path);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(in_child(read_without_rights, NULL), 0);
}

static void test_a_newer_version_is_refused_by_name(void **state)
{
    (void)state;
    raw_write(&file, path);
    assert_true(read_any());
    file.header.version = 2;
    assert_record_refused("newer version");
    file.header.version = UINT32_MAX;
    assert_record_refused("newer version");
    file.header.version = 0;
    assert_record_refused("damaged");
}

static void test_a_header_that_contradicts_the_file_is_refused(void **state)
{
    (void)state;
    static const uint64_t ends[] = {0, 1, 4095, 4098, UINT64_MAX, (uint64_t)1 << 63};
    raw_byte(&file, 0);
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        file.header.committed = ends[i];
        scratch_write(path, file.bytes, file.used);
        assert_refused(path, "damaged");
    }
    static const uint32_t starts[] = {0, 8, 100, 4098, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        file.header.header_size = starts[i];
        assert_record_refused("damaged");
    }
}

static void test_bytes_behind_what_is_committed_mean_nothing(void **state)
{
    (void)state;
    struct recording recording;
    raw_example(&file);
    file.header.committed = file.used;
    memset(file.bytes + file.used, 0xff, 5000);
    scratch_write(path, file.bytes, file.used + 5000);
    read_good(&recording, path);
    assert_int_equal(recording.file_bytes, file.used);
    assert_int_equal(ledger_counters(recording.ledger)->events, 11);
    recording_release(&recording);
}

static void test_a_record_of_a_later_kind_is_stepped_over(void **state)
{
    (void)state;
    struct recording recording;
    for (unsigned tag = TRACE_TAG_SKIPPABLE; tag < 256; tag++) {
        raw_byte(&file, (uint8_t)tag);
        raw_number(&file, tag % 3 * 100);
        for (unsigned i = 0; i < tag % 3 * 100; i++)
            raw_byte(&file, 0xff);
    }
    raw_string(&file, "found");
    raw_write(&file, path);
    read_good(&recording, path);
    assert_string_equal(catalog_string(recording.catalog, 0), "found");
    recording_release(&recording);
    raw_byte(&file, TRACE_TAG_SKIPPABLE);
    raw_number(&file, 1);
    assert_record_refused("cut off");
}

static void test_a_record_of_no_kind_is_refused(void **state)
{
    (void)state;
    for (unsigned tag = 0; tag < TRACE_TAG_SKIPPABLE; tag++) {
        if ((tag >= TRACE_STRING && tag <= TRACE_CHECKPOINT) || event_fields(tag) != 0)
            continue;
        raw_begin(&file);
        raw_byte(&file, (uint8_t)tag);
        raw_byte(&file, 0);
        assert_record_refused("damaged at byte 4096: a record of a kind this version does not know");
    }
}

/* One record put behind the example's own, which has 9 strings, 1 module, 3 frames, 1 stack and 2 sites. */
struct one_record {
    const char *what, *sentence;
    uint8_t tag;
    uint64_t numbers[8];
    size_t count;
};

#define RECORD(what, sentence, tag, ...)                                                                     \
    {                                                                                                        \
        what, sentence, tag, {__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)             \
    }
#define RANGE "out of range"
#define TWICE "stands twice"

static const struct one_record bad_records[] = {
    RECORD("a string too long", RANGE, TRACE_STRING, 65536),
    RECORD("a string cut off", "cut off", TRACE_STRING, 1),
    RECORD("a string twice", TWICE, TRACE_STRING, 1, '3'),
    RECORD("a module's path", RANGE, TRACE_MODULE, 9, 0, 0, 0, 0, 0, 0),
    RECORD("a module's build-id", RANGE, TRACE_MODULE, 4, 0, 0, 0, 0, 0, 33),
    RECORD("a native frame's module", RANGE, TRACE_NATIVE, 2, 0),
    RECORD("a native frame twice", TWICE, TRACE_NATIVE, 1, 0x1234),
    RECORD("a function", RANGE, TRACE_PYTHON, 9, 0, 0),
    RECORD("a file", RANGE, TRACE_PYTHON, 0, 9, 0),
    RECORD("a line", RANGE, TRACE_PYTHON, 0, 0, (uint64_t)INT32_MAX + 1),
    RECORD("a Python frame twice", TWICE, TRACE_PYTHON, 5, 6, 300),
    RECORD("a stack too deep", RANGE, TRACE_STACK, 65536),
    RECORD("a stack cut off", "cut off", TRACE_STACK, 2, 0),
    RECORD("a frame above all", "not there", TRACE_STACK, 1, 6),
    RECORD("a frame below all", "not there", TRACE_STACK, 2, 2, 3),
    RECORD("a frame far off", "not there", TRACE_STACK, 2, 2, UINT64_MAX),
    RECORD("a stack twice", TWICE, TRACE_STACK, 3, 2, 1, 4),
    RECORD("a site's stack", RANGE, TRACE_SITE, 2, 7, 0, 0, 0),
    RECORD("a site's API", RANGE, TRACE_SITE, 1, 9, 0, 0, 0),
    RECORD("a site's family", RANGE, TRACE_SITE, 1, 7, FAMILY_COUNT, 0, 0),
    RECORD("a site's space", RANGE, TRACE_SITE, 1, 7, 0, SPACE_COUNT, 0),
    RECORD("a site's device", RANGE, TRACE_SITE, 1, 7, 0, 0, 65536),
    RECORD("a site twice", TWICE, TRACE_SITE, 1, 7, FAMILY_PLAIN, SPACE_DEVICE, 1),
    RECORD("a process's string", RANGE, TRACE_PROCESS, 1, 9),
    RECORD("a process cut off", "cut off", TRACE_PROCESS, 3, 0, 0),
    RECORD("a note's string", RANGE, TRACE_NOTE, 9),
    RECORD("an event's site", RANGE, EVENT_ALLOC, 0, 2, 0, 0, 0, 0),
    RECORD("a key's space", RANGE, EVENT_FREE, 0, KEY_SPACE_COUNT, 0),
    RECORD("a key's number", RANGE, EVENT_FREE, 0, KEY_ARRAY, (uint64_t)1 << (KEY_NUMBER_BITS + 1)),
    RECORD("a context", RANGE, EVENT_TEARDOWN, 0, (uint64_t)UINT32_MAX + 1),
    RECORD("an error", RANGE, EVENT_FAILED, 0, 0, 0, (uint64_t)UINT32_MAX + 1),
    RECORD("an event cut off", "cut off", EVENT_ALLOC, 0, 0),
};

static void test_a_record_that_makes_no_sense_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad_records); i++) {
        const struct one_record *record = &bad_records[i];
        raw_begin(&file);
        raw_example(&file);
        raw_byte(&file, record->tag);
        for (size_t j = 0; j < record->count; j++)
            raw_number(&file, record->numbers[j]);
        print_message("%s\n", record->what);
        assert_record_refused(record->sentence);
    }
}

static void test_the_place_of_the_damage_is_named(void **state)
{
    (void)state;
    raw_string(&file, "whole"); /* tag, length, 5 bytes: ends at 4103 */
    raw_byte(&file, TRACE_NOTE);
    raw_byte(&file, 1);
    assert_record_refused("damaged at byte 4103: a number is out of range");
}

static void test_a_recording_cut_anywhere_is_whole_or_refused(void **state)
{
    (void)state;
    int good = 0;
    raw_example(&file);
    for (size_t end = TRACE_HEADER_SIZE; end <= file.used; end++) {
        file.header.committed = end;
        scratch_write(path, file.bytes, end);
        good += read_any();
    }
    /* Good are the ends of its records: none, 9 strings, 9 more definitions and 11 events. */
    assert_int_equal(good, 1 + 9 + 9 + 11);
}

static void change_byte(size_t at, uint8_t value)
{
    uint8_t kept = file.bytes[at];
    file.bytes[at] = value;
    scratch_write(path, file.bytes, file.used);
    read_any();
    file.bytes[at] = kept;
}

static void test_any_byte_may_be_wrong(void **state)
{
    (void)state;
    raw_example(&file);
    file.header.committed = file.used;
    for (size_t at = 0; at < file.used; at++) {
        if (at == sizeof(struct trace_header))
            at = TRACE_HEADER_SIZE;
        for (int bit = 0; bit < 8; bit++)
            change_byte(at, file.bytes[at] ^ (uint8_t)(1 << bit));
        change_byte(at, 0x00);
        change_byte(at, 0x7f);
        change_byte(at, 0x80);
        change_byte(at, 0xff);
    }
}

static void test_many_bytes_may_be_wrong(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < 5000; round++) {
        raw_begin(&file);
        raw_example(&file);
        file.header.committed = file.used;
        size_t records = file.used - TRACE_HEADER_SIZE;
        for (uint64_t i = random_below(&seed, 8) + 1; i > 0; i--) {
            size_t at = TRACE_HEADER_SIZE + random_below(&seed, records);
            size_t from = TRACE_HEADER_SIZE + random_below(&seed, records);
            size_t count = random_below(&seed, file.used - (at > from ? at : from)) % 16;
            if (random_below(&seed, 2) == 0)
                memmove(file.bytes + at, file.bytes + from, count); /* records in the wrong place */
            else
                file.bytes[at] = (uint8_t)random_next(&seed);
        }
        scratch_write(path, file.bytes, file.used);
        read_any();
    }
}

/* Noise is rarely read far, so every record begins as a record does. */
static void test_noise_behind_good_tags_is_read_without_harm(void **state)
{
    (void)state;
    static const uint8_t tags[] = {1, 2, 3, 4, 5, 6, 7, 8, 16, 17, 18, 19, 20, 21, 22, 23, 24, 128};
    uint64_t seed = 11;
    for (int round = 0; round < 3000; round++) {
        raw_begin(&file);
        raw_example(&file);
        for (int record = 0; record < 40; record++) {
            raw_byte(&file, tags[random_below(&seed, COUNT_OF(tags))]);
            for (uint64_t i = random_below(&seed, 9); i > 0; i--)
                raw_byte(&file, (uint8_t)random_below(&seed, random_below(&seed, 4) == 0 ? 256 : 4));
        }
        raw_write(&file, path);
        read_any();
    }
}

#define ON_A_FILE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_A_FILE(test_what_is_no_recording_is_refused),
        ON_A_FILE(test_an_unreadable_file_is_refused),
        ON_A_FILE(test_a_newer_version_is_refused_by_name),
        ON_A_FILE(test_a_header_that_contradicts_the_file_is_refused),
        ON_A_FILE(test_bytes_behind_what_is_committed_mean_nothing),
        ON_A_FILE(test_a_record_of_a_later_kind_is_stepped_over),
        ON_A_FILE(test_a_record_of_no_kind_is_refused),
        ON_A_FILE(test_a_record_that_makes_no_sense_is_refused),
        ON_A_FILE(test_the_place_of_the_damage_is_named),
        ON_A_FILE(test_a_recording_cut_anywhere_is_whole_or_refused),
        ON_A_FILE(test_any_byte_may_be_wrong),
        ON_A_FILE(test_many_bytes_may_be_wrong),
        ON_A_FILE(test_noise_behind_good_tags_is_read_without_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
