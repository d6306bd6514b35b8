/* Output: buffering, errors that stick, sizes, and text that nobody vouches for. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <jansson.h>

#include "base/output.h"
#include "base/size.h"
#include "base/sort.h"
#include "base/utf8.h"

static struct output out;
static char written[1 << 18];

static int begin(void **state)
{
    (void)state;
    output_init(&out, memfd_create("output", MFD_CLOEXEC));
    return 0;
}

static int end(void **state)
{
    (void)state;
    close(out.fd);
    return 0;
}

static const char *flushed(void)
{
    assert_int_equal(output_flush(&out), 0);
    ssize_t bytes = pread(out.fd, written, sizeof written - 1, 0);
    assert_true(bytes >= 0);
    written[bytes] = '\0';
    assert_int_equal(ftruncate(out.fd, 0), 0);
    lseek(out.fd, 0, SEEK_SET);
    return written;
}

static void test_bytes_come_out_in_order_across_many_buffers(void **state)
{
    (void)state;
    char big[40000];
    memset(big, 'x', sizeof big);
    output_text(&out, "begin ");
    output_bytes(&out, big, sizeof big);
    for (int i = 0; i < 5000; i++)
        output_format(&out, "%d,", i);
    const char *text = flushed();
    assert_memory_equal(text, "begin xxx", 9);
    assert_memory_equal(text + 6 + sizeof big, "0,1,2,3,", 8);
    assert_string_equal(text + strlen(text) - 10, "4998,4999,");
    assert_int_equal(strlen(text), 6 + sizeof big + 10 * 2 + 90 * 3 + 900 * 4 + 4000 * 5);
}

static void test_format_longer_than_the_buffer_is_cut_and_not_lost(void **state)
{
    (void)state;
    static char huge[50000];
    memset(huge, 'y', sizeof huge - 1);
    output_text(&out, "a");
    output_format(&out, "%s", huge);
    output_text(&out, "b");
    const char *text = flushed();
    assert_true(strlen(text) > 16000 && strlen(text) < 17000);
    assert_string_equal(text + strlen(text) - 2, "yb");
}

static void test_first_error_sticks_and_is_told_at_the_end(void **state)
{
    (void)state;
    struct output full;
    output_init(&full, open("/dev/full", O_WRONLY | O_CLOEXEC));
    char big[40000] = {0};
    output_bytes(&full, big, sizeof big);
    close(full.fd);
    output_text(&full, "more"); /* would be EBADF now */
    assert_int_equal(output_flush(&full), ENOSPC);
}

static void test_sizes_are_in_binary_units(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {
        {0, "0 B"},
        {1, "1 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {3 << 20, "3.0 MiB"},
        {(UINT64_C(1) << 20) - 1, "1.0 MiB"}, /* 1023.999 KiB */
        {UINT64_C(1023) << 10, "1023.0 KiB"},
        {UINT64_C(3) << 29, "1.50 GiB"},
        {(UINT64_C(1) << 30) - 1, "1.00 GiB"},
        {UINT64_C(80) << 30, "80.00 GiB"},
        {UINT64_C(5) << 39, "2.50 TiB"},
        {UINT64_MAX, "16.00 EiB"},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char text[SIZE_TEXT_MAX];
        assert_string_equal(size_text(text, sizes[i].bytes), sizes[i].text);
    }
}

/* What jansson, which checks UTF-8 by itself, reads back from the string we wrote. */
static void read_back(const char *text, const char *wanted)
{
    output_text(&out, "[");
    output_json_string(&out, text);
    output_text(&out, "]");
    json_error_t error;
    json_t *json = json_loads(flushed(), 0, &error);
    if (!json)
        fail_msg("%s: %s", written, error.text);
    assert_string_equal(json_string_value(json_array_get(json, 0)), wanted);
    json_decref(json);
}

static void test_json_strings_read_back_as_they_were(void **state)
{
    (void)state;
    char every[128];
    for (int i = 1; i < 128; i++)
        every[i - 1] = (char)i;
    every[127] = '\0';
    for (size_t from = 0; from < 127; from++) /* every character at every place of an eight-byte word */
        read_back(every + from, every + from);
    read_back("", "");
    read_back("größe 模型 \xf0\x9f\x98\x80 tail that is long enough",
              "größe 模型 \xf0\x9f\x98\x80 tail that is long enough");
    output_json_string(&out, NULL);
    assert_string_equal(flushed(), "null");
}

static void test_json_strings_inside_html_hold_no_markup_and_read_back_too(void **state)
{
    (void)state;
    static const char hostile[] =
        "</script><!-- a&b \"<\" \xe2\x80\xa8\xe2\x80\xa9 a long plain run of text, <";
    output_json_string_in_html(&out, hostile);
    const char *text = flushed();
    assert_null(strpbrk(text, "<>&"));
    assert_null(strstr(text, "\xe2\x80\xa8"));
    assert_null(strstr(text, "\xe2\x80\xa9"));
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(json);
    assert_string_equal(json_string_value(json), hostile);
    json_decref(json);
}

static void test_json_strings_replace_what_is_not_utf8(void **state)
{
    (void)state;
#define BAD "\xef\xbf\xbd"
    read_back("a\xff"
              "b",
              "a" BAD "b");
    read_back("\xc0\xaf", BAD BAD);                    /* overlong '/' */
    read_back("\xed\xa0\x80", BAD BAD BAD);            /* a surrogate */
    read_back("\xf4\x90\x80\x80", BAD BAD BAD BAD);    /* above U+10FFFF */
    read_back("12345678\xe2\x82", "12345678" BAD BAD); /* cut short */
    read_back("\xe2\x82\"quoted", BAD BAD "\"quoted");
}

static void test_terminal_text_shows_what_could_do_harm(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } texts[] = {
        {"train.py", "train.py"},
        {"größe 模型", "größe 模型"},
        {"\x1b[31mred", "\\x1B[31mred"},
        {"a\nb\tc\rd", "a\\x0Ab\\x09c\\x0Dd"},
        {"\x7f", "\\x7F"},
        {"\xc2\x9b"
         "2J",
         "\\xC2\\x9B2J"}, /* the one-byte escape of eight-bit terminals */
        {"\xff\xfe", "\\xFF\\xFE"},
        {"safe\xe2\x80\xae"
         "gnp.exe",
         "safe\\xE2\\x80\\xAEgnp.exe"},      /* right-to-left override */
        {"\xe2\x80\x8b", "\\xE2\\x80\\x8B"}, /* zero-width space */
        {"%s%n", "%s%n"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        output_safe(&out, texts[i].text);
        assert_string_equal(flushed(), texts[i].shown);
    }
}

static void test_characters_have_the_columns_terminals_give_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t code;
        int columns;
    } characters[] = {{"a", 'a', 1},
                      {"ö", 0xf6, 1},
                      {"…", 0x2026, 1},
                      {"模", 0x6a21, 2},
                      {"\xf0\x9f\x98\x80", 0x1f600, 2},
                      {"\xcc\x88", 0x308, 0}};
    for (size_t i = 0; i < sizeof characters / sizeof characters[0]; i++) {
        uint32_t code;
        assert_int_equal(utf8_next(characters[i].text, &code), strlen(characters[i].text));
        assert_int_equal(code, characters[i].code);
        assert_int_equal(utf8_columns(code), characters[i].columns);
    }
}

static int compare_pairs(const void *left, const void *right, const void *context)
{
    (void)context;
    return ((const int *)left)[0] - ((const int *)right)[0];
}

static void test_sort_orders_and_keeps_equal_items_in_place(void **state)
{
    (void)state;
    static int pairs[5000][2];
    for (size_t count = 0; count < 5000; count = count < 40 ? count + 1 : count * 3) {
        uint32_t seed = 7;
        for (size_t i = 0; i < count; i++) {
            seed = seed * 1664525 + 1013904223;
            pairs[i][0] = (int)(seed >> 24);
            pairs[i][1] = (int)i;
        }
        assert_true(sort_items(pairs, count, sizeof pairs[0], compare_pairs, NULL));
        char seen[5000] = {0};
        for (size_t i = 0; i < count; i++) {
            assert_false(seen[pairs[i][1]]);
            seen[pairs[i][1]] = 1;
            if (i > 0)
                assert_true(pairs[i - 1][0] < pairs[i][0] ||
                            (pairs[i - 1][0] == pairs[i][0] && pairs[i - 1][1] < pairs[i][1]));
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_bytes_come_out_in_order_across_many_buffers),
        TEST(test_format_longer_than_the_buffer_is_cut_and_not_lost),
        TEST(test_first_error_sticks_and_is_told_at_the_end),
        TEST(test_sizes_are_in_binary_units),
        TEST(test_json_strings_read_back_as_they_were),
        TEST(test_json_strings_inside_html_hold_no_markup_and_read_back_too),
        TEST(test_json_strings_replace_what_is_not_utf8),
        TEST(test_terminal_text_shows_what_could_do_harm),
        TEST(test_characters_have_the_columns_terminals_give_them),
        TEST(test_sort_orders_and_keeps_equal_items_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
