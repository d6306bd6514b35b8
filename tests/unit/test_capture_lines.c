/*
 * Line tables of code objects (capture/python_lines.h). Tables and lines are the examples of CPython's own
 * documents (Objects/lnotab_notes.txt of 3.8 and of 3.10, Objects/locations.md), or made by their rules.
 */
#include "unit.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/python_lines.h"

struct place {
    int32_t offset, line;
};

static void expect(enum python_line_format format, const uint8_t *table, size_t bytes, int32_t first,
                   const struct place *places, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(python_line(format, table, bytes, first, places[i].offset), places[i].line);
}

static void test_lnotab_of_the_notes(void **state)
{
    (void)state;
    /* Offsets 0, 6, 50, 350, 361 are lines 1, 2, 7, 207, 208: steps of more than 255 bytes or 127 lines are
     * split. */
    static const uint8_t table[] = {6, 1, 44, 5, 255, 0, 45, 127, 0, 73, 11, 1};
    static const struct place places[] = {{-1, 1},  {0, 1},     {5, 1},     {6, 2},     {49, 2},    {50, 7},
                                          {349, 7}, {350, 207}, {360, 207}, {361, 208}, {9999, 208}};
    expect(PYTHON_LNOTAB, table, sizeof table, 1, places, COUNT_OF(places));
}

static void test_lnotab_lines_can_go_back(void **state)
{
    (void)state;
    static const uint8_t table[] = {4, 10, 4, (uint8_t)-8};
    static const struct place places[] = {{0, 5}, {4, 15}, {8, 7}};
    expect(PYTHON_LNOTAB, table, sizeof table, 5, places, COUNT_OF(places));
}

static void test_linetable_of_the_notes(void **state)
{
    (void)state;
    /* 0-6: 1, 6-50: 2, 50-350: 7, 350-360: no line, 360-376: 8, 376-380: 208. */
    static const uint8_t table[] = {6, 0, 44, 1, 254, 5, 46, 0, 10, 128, 16, 1, 0, 127, 4, 73};
    static const struct place places[] = {{-1, 1},  {0, 1},     {6, 2},     {48, 2},  {50, 7},
                                          {303, 7}, {304, 7},   {348, 7},   {350, 0}, {358, 0},
                                          {360, 8}, {376, 208}, {378, 208}, {380, 0}, {10000, 0}};
    expect(PYTHON_LINETABLE, table, sizeof table, 1, places, COUNT_OF(places));
}

/* The first byte of an entry of locations.md. */
#define ENTRY(code, units) (uint8_t)(0x80 | (code) << 3 | ((units)-1))

static void test_locations_of_every_kind(void **state)
{
    (void)state;
    static const uint8_t table[] = {
        ENTRY(13, 1), 0,                               /* no columns, +0 */
        ENTRY(0, 2),  0x12,                            /* short form, same line */
        ENTRY(10, 1), 5,           9,                  /* one line, +0 */
        ENTRY(11, 1), 5,           9,                  /* +1 */
        ENTRY(12, 8), 5,           9,                  /* +2 */
        ENTRY(15, 1),                                  /* none */
        ENTRY(14, 1), 0x15,        0,          1,   2, /* long, -10: 10 << 1 | 1 */
        ENTRY(13, 1), 0x40 | 0x10, 0x12,               /* +584: 1168 = 0x10 | 0x12 << 6 */
        ENTRY(9, 1),  0x7f,                            /* short form, the last */
        ENTRY(13, 1), 0x40 | 0x31, 0x40 | 0x0, 0x1,    /* -2072: 4145 = 0x31 | 0 << 6 | 1 << 12 */
    };
    static const struct place places[] = {{-1, 3000}, {0, 3000},  {2, 3000},  {5, 3000}, {6, 3000},
                                          {8, 3001},  {10, 3003}, {25, 3003}, {26, 0},   {28, 2993},
                                          {30, 3577}, {32, 3577}, {34, 1505}, {36, 0}};
    expect(PYTHON_LOCATIONS, table, sizeof table, 3000, places, COUNT_OF(places));
}

static void test_an_empty_table_names_the_first_line_or_none(void **state)
{
    (void)state;
    static const uint8_t none[1];
    assert_int_equal(python_line(PYTHON_LNOTAB, none, 0, 7, 100), 7);
    assert_int_equal(python_line(PYTHON_LINETABLE, none, 0, 7, 0), 0);
    assert_int_equal(python_line(PYTHON_LOCATIONS, none, 0, 7, 0), 0);
    assert_int_equal(python_line(PYTHON_LOCATIONS, none, 0, 7, -1), 7);
}

static void test_lines_below_one_are_unknown(void **state)
{
    (void)state;
    static const uint8_t back[] = {2, 128 + 56};
    assert_int_equal(python_line(PYTHON_LNOTAB, back, sizeof back, 3, 4), 0);
    assert_int_equal(python_line(PYTHON_LOCATIONS, back, 0, -5, -1), 0);
}

/* Any bytes, ending where the mapped memory ends: nothing beyond is read, and the answer is a line or
 * unknown. */
static void test_any_bytes_are_read_within_their_bounds(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *start = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(start, MAP_FAILED);
    assert_int_equal(mprotect(start + page, page, PROT_NONE), 0);
    uint64_t seed = 11;
    for (int i = 0; i < 200000; i++) {
        size_t bytes = random_below(&seed, 40);
        uint8_t *table = start + page - bytes;
        for (size_t k = 0; k < bytes; k++)
            table[k] = random_below(&seed, 4) == 0 ? 0xff : (uint8_t)random_next(&seed);
        int32_t first = (int32_t)random_next(&seed),
                offset = (int32_t)(random_next(&seed) >> random_below(&seed, 64));
        for (int format = PYTHON_LNOTAB; format <= PYTHON_LOCATIONS; format++)
            assert_true(python_line((enum python_line_format)format, table, bytes, first, offset) >= 0);
    }
    munmap(start, 2 * page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lnotab_of_the_notes),
        cmocka_unit_test(test_lnotab_lines_can_go_back),
        cmocka_unit_test(test_linetable_of_the_notes),
        cmocka_unit_test(test_locations_of_every_kind),
        cmocka_unit_test(test_an_empty_table_names_the_first_line_or_none),
        cmocka_unit_test(test_lines_below_one_are_unknown),
        cmocka_unit_test(test_any_bytes_are_read_within_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
