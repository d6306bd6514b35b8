/* Python strings as UTF-8 (capture/python_names.h), on objects laid out as PEP 393 and the headers of 3.11
 * say. */
#include "unit.h"

#include <string.h>

#include "capture/python_names.h"

/* Of CPython 3.11: PyASCIIObject, and PyCompactUnicodeObject around it. */
struct ascii_object {
    int64_t references;
    void *type;
    int64_t length, hash;
    uint32_t state;
    uint32_t padding;
    void *wide;
};

struct compact_object {
    struct ascii_object ascii;
    int64_t utf8_length;
    char *utf8;
    int64_t wide_length;
};

_Static_assert(sizeof(struct ascii_object) == 48 && sizeof(struct compact_object) == 72, "as in CPython");

enum { COMPACT = 8, ASCII = 16 };

static uint64_t memory[4096];
static struct python_layout layout;

static void *make(const void *characters, int kind, int64_t length, bool is_ascii)
{
    struct ascii_object *object = (struct ascii_object *)memory;
    memset(memory, 0xee, sizeof memory);
    object->length = length;
    object->state = (uint32_t)(kind | COMPACT | (is_ascii ? ASCII : 0)) << 2 | 1;
    char *data = (char *)memory + (is_ascii ? sizeof(struct ascii_object) : sizeof(struct compact_object));
    memcpy(data, characters, (size_t)(length * kind));
    return object;
}

static void expect(const void *object, const char *right)
{
    char buffer[256];
    memset(buffer, 'x', sizeof buffer);
    python_text(&layout, object, buffer, sizeof buffer);
    assert_string_equal(buffer, right);
}

static void test_ascii_is_read_as_it_is(void **state)
{
    (void)state;
    expect(make("train_step", 1, 10, true), "train_step");
    expect(make("", 1, 0, true), "");
}

static void test_latin1_becomes_utf8(void **state)
{
    (void)state;
    expect(make("gr\xf6\xdf"
                "e",
                1, 5, false),
           "gr\xc3\xb6\xc3\x9f"
           "e");
}

static void test_strings_of_two_bytes_a_character_become_utf8(void **state)
{
    (void)state;
    static const uint16_t text[] = {0x540d, 0x524d, 0x7ff, 0x800, 0xffff, 'x'};
    expect(make(text, 2, 6, false), "\xe5\x90\x8d\xe5\x89\x8d\xdf\xbf\xe0\xa0\x80\xef\xbf\xbfx");
}

static void test_strings_of_four_bytes_a_character_become_utf8(void **state)
{
    (void)state;
    static const uint32_t text[] = {0x1f40d, 0x10ffff, 'y'};
    expect(make(text, 4, 3, false), "\xf0\x9f\x90\x8d\xf4\x8f\xbf\xbfy");
}

static void test_bytes_that_could_not_be_decoded_come_back(void **state)
{
    (void)state;
    static const uint16_t text[] = {'a', 0xdcff, 0xdc80, '.', 'p', 'y'};
    expect(make(text, 2, 6, false), "a\xff\x80.py");
}

static void test_what_is_no_text_is_replaced(void **state)
{
    (void)state;
    static const uint16_t surrogates[] = {0xd800, 'a', 0xdc7f};
    static const uint32_t beyond[] = {0x110000, 'b'};
    expect(make(surrogates, 2, 3, false), "\xef\xbf\xbd"
                                          "a\xef\xbf\xbd");
    expect(make(beyond, 4, 2, false), "\xef\xbf\xbd"
                                      "b");
    expect(make("a\0b", 1, 3, true), "a\xef\xbf\xbd"
                                     "b");
}

static void test_long_text_is_cut_between_characters(void **state)
{
    (void)state;
    char buffer[8];
    static const uint16_t text[] = {0x540d, 0x540d, 0x540d};
    python_text(&layout, make(text, 2, 3, false), buffer, sizeof buffer);
    assert_string_equal(buffer, "\xe5\x90\x8d\xe5\x90\x8d");
    python_text(&layout, make("0123456789", 1, 10, true), buffer, sizeof buffer);
    assert_string_equal(buffer, "0123456");
    python_text(&layout, make("0123456789", 1, 10, true), buffer, 1);
    assert_string_equal(buffer, "");
}

static void test_no_object_and_one_of_a_derived_class_have_no_text(void **state)
{
    (void)state;
    expect(NULL, "");
    struct ascii_object *derived = make("abc", 1, 3, true);
    derived->state &= ~((uint32_t)COMPACT << 2); /* of a class derived from str */
    expect(derived, "");
}

static int set_up(void **state)
{
    (void)state;
    return python_layout_get(&layout, 11, NULL) ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ascii_is_read_as_it_is),
        cmocka_unit_test(test_latin1_becomes_utf8),
        cmocka_unit_test(test_strings_of_two_bytes_a_character_become_utf8),
        cmocka_unit_test(test_strings_of_four_bytes_a_character_become_utf8),
        cmocka_unit_test(test_bytes_that_could_not_be_decoded_come_back),
        cmocka_unit_test(test_what_is_no_text_is_replaced),
        cmocka_unit_test(test_long_text_is_cut_between_characters),
        cmocka_unit_test(test_no_object_and_one_of_a_derived_class_have_no_text),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
