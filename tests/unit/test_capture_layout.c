/*
 * Layouts of CPython (capture/python_layout.h) and their proof on frames (python_runtime.h), by a
 * make-believe interpreter whose objects lie where a layout says, or do not.
 */
#include "unit.h"

#include <string.h>
#include <sys/mman.h>

#include "capture/python_runtime.h"

static void test_unsupported_versions_have_no_layout(void **state)
{
    (void)state;
    struct python_layout layout;
    for (int minor = -1; minor < PYTHON_OLDEST_MINOR; minor++)
        assert_false(python_layout_get(&layout, minor, NULL));
    for (int minor = PYTHON_OLDEST_MINOR; minor <= 12; minor++)
        assert_true(python_layout_get(&layout, minor, NULL));
    for (int minor = 13; minor < 20; minor++)
        assert_false(python_layout_get(&layout, minor, NULL));
}

/* _Py_DebugOffsets: a cookie, the version, whether free-threaded, and offsets; all that are not set are
 * `filling`. */
static void make_published(uint64_t *offsets, size_t count, uint64_t filling, int minor,
                           uint64_t free_threaded)
{
    for (size_t i = 0; i < count; i++)
        offsets[i] = filling;
    memcpy(offsets, "xdebugpy", 8);
    offsets[1] = 0x030000f0u | (uint64_t)minor << 16;
    offsets[2] = free_threaded;
}

static void test_published_offsets_must_be_of_the_version_and_sensible(void **state)
{
    (void)state;
    uint64_t offsets[128];
    struct python_layout layout;
    make_published(offsets, COUNT_OF(offsets), 64, 13, 0);
    assert_true(python_layout_get(&layout, 13, offsets));
    assert_int_equal(layout.frame_code, 64);
    assert_false(layout.free_threaded);
    assert_false(python_layout_get(&layout, 14, offsets));
    make_published(offsets, COUNT_OF(offsets), 64, 14, 1);
    assert_true(python_layout_get(&layout, 14, offsets));
    assert_true(layout.free_threaded);
    assert_int_equal(layout.code_first_traceable, 64 - 16);
    make_published(offsets, COUNT_OF(offsets), 1u << 20, 14, 0);
    assert_false(python_layout_get(&layout, 14, offsets));
    offsets[0] = 0;
    assert_false(python_layout_get(&layout, 14, offsets));
    assert_false(python_layout_get(&layout, 14, NULL));
}

/* A make-believe CPython 3.12, every object in a place of its own. */
enum {
    TEXT_TYPE,
    BYTES_TYPE,
    CODE_TYPE,
    OTHER_TYPE,
    FILE_NAME,
    NAME,
    LINES,
    CODE,
    FRAME,
    OUTER_FRAME,
    CFRAME,
    THREAD,
    OBJECTS
};
enum { OBJECT_WORDS = 64, FIRST_LINE = 17 };

static _Alignas(64) uint64_t objects[OBJECTS][OBJECT_WORDS];
static struct python_runtime python;
static int told_line;

/* It never ends. */
static int is_not_finalizing(void)
{
    return 0;
}

static int line_of_code(const void *code, int offset)
{
    (void)code, (void)offset;
    return told_line;
}

static void put(int object, size_t offset, const void *value)
{
    memcpy((char *)objects[object] + offset, &value, sizeof value);
}

static void put_int(int object, size_t offset, int32_t value)
{
    memcpy((char *)objects[object] + offset, &value, sizeof value);
}

static void make_frame(int object, const void *previous)
{
    const struct python_layout *layout = &python.layout;
    put(object, layout->frame_code, objects[CODE]);
    put(object, layout->frame_previous, previous);
    put(object, layout->frame_instruction, (char *)objects[CODE] + layout->code_bytecode + 4);
}

static int make_interpreter(void **state)
{
    (void)state;
    memset(objects, 0, sizeof objects);
    memset(&python, 0, sizeof python);
    assert_true(python_layout_get(&python.layout, 12, NULL));
    const struct python_layout *layout = &python.layout;
    python.code_type = (const char *)objects[CODE_TYPE];
    python.code_line = line_of_code;
    python.is_finalizing = is_not_finalizing;
    told_line = FIRST_LINE + 2;
    objects[TEXT_TYPE][layout->type_flags / 8] = 1u << 28;
    objects[BYTES_TYPE][layout->type_flags / 8] = 1u << 27;
    put(FILE_NAME, layout->object_type, objects[TEXT_TYPE]);
    put(NAME, layout->object_type, objects[TEXT_TYPE]);
    put(LINES, layout->object_type, objects[BYTES_TYPE]);
    objects[LINES][layout->bytes_size / 8] = 3;
    memcpy((char *)objects[LINES] + layout->bytes_data, "\xe7\1\1", 3); /* two lines on, for eight units */
    put(CODE, layout->object_type, objects[CODE_TYPE]);
    put(CODE, layout->code_filename, objects[FILE_NAME]);
    put(CODE, layout->code_name, objects[NAME]);
    put(CODE, layout->code_qualname, objects[NAME]);
    put(CODE, layout->code_lines, objects[LINES]);
    put_int(CODE, layout->code_first_line, FIRST_LINE);
    make_frame(FRAME, objects[OUTER_FRAME]);
    make_frame(OUTER_FRAME, NULL);
    put(CFRAME, layout->cframe_frame, objects[FRAME]);
    put(THREAD, layout->thread_frame, objects[CFRAME]);
    return 0;
}

static void test_interpreter_as_described_is_good(void **state)
{
    (void)state;
    assert_int_equal(python_check(&python, objects[THREAD]), PYTHON_GOOD);
    assert_ptr_equal(atomic_load(&python_ready), &python);
    atomic_store(&python_ready, NULL);
}

static void test_thread_without_frames_proves_nothing(void **state)
{
    (void)state;
    put(THREAD, python.layout.thread_frame, NULL);
    assert_int_equal(python_check(&python, objects[THREAD]), PYTHON_UNCHECKED);
    make_interpreter(NULL);
    put(CFRAME, python.layout.cframe_frame, NULL);
    assert_int_equal(python_check(&python, objects[THREAD]), PYTHON_UNCHECKED);
}

static void test_line_that_python_tells_otherwise_is_noticed(void **state)
{
    (void)state;
    told_line++;
    assert_int_equal(python_check(&python, objects[THREAD]), PYTHON_UNREADABLE);
    assert_null(atomic_load(&python_ready));
}

/* Whatever lies where an offset leads, also nothing at all. */
static void test_any_wrong_pointer_is_noticed_and_none_followed(void **state)
{
    (void)state;
    void *nothing = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const void *wrong[] = {nothing, (void *)8, (void *)-8, (void *)0x123457, (char *)nothing - 16};
    const struct python_layout *layout = &python.layout;
    const struct {
        int object;
        size_t offset;
    } places[] = {
        {CODE, layout->code_filename},     {CODE, layout->code_name},        {CODE, layout->code_qualname},
        {CODE, layout->code_lines},        {FILE_NAME, layout->object_type}, {NAME, layout->object_type},
        {LINES, layout->object_type},      {FRAME, layout->frame_previous},  {CFRAME, layout->cframe_frame},
        {OUTER_FRAME, layout->frame_code}, {FRAME, layout->frame_code},
    };
    for (size_t i = 0; i < COUNT_OF(places); i++)
        for (size_t k = 0; k < COUNT_OF(wrong); k++) {
            make_interpreter(NULL);
            put(places[i].object, places[i].offset, wrong[k]);
            assert_int_equal(python_check(&python, objects[THREAD]), PYTHON_UNREADABLE);
        }
    for (size_t k = 0; k < COUNT_OF(wrong); k++) {
        make_interpreter(NULL);
        put(THREAD, layout->thread_frame, wrong[k]);
        assert_int_not_equal(python_check(&python, objects[THREAD]), PYTHON_GOOD);
    }
    munmap(nothing, 4096);
}

static void test_object_of_another_type_is_noticed(void **state)
{
    (void)state;
    const struct python_layout *layout = &python.layout;
    const size_t places[] = {layout->code_filename, layout->code_name, layout->code_qualname,
                             layout->code_lines};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        make_interpreter(NULL);
        put(CODE, places[i], places[i] == layout->code_lines ? objects[NAME] : objects[LINES]);
        assert_int_equal(python_check(&python, objects[THREAD]), PYTHON_UNREADABLE);
    }
}

static void test_size_that_cannot_be_is_noticed(void **state)
{
    (void)state;
    const uint64_t sizes[] = {UINT64_MAX, (uint64_t)1 << 40, INT32_MAX};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        objects[LINES][python.layout.bytes_size / 8] = sizes[i];
        assert_int_equal(python_check(&python, objects[THREAD]), PYTHON_UNREADABLE);
    }
}

/* Frames of the interpreter's own have no code object, and some have none at all. */
static void test_frames_without_code_are_passed_over(void **state)
{
    (void)state;
    const struct python_layout *layout = &python.layout;
    const void *none[] = {NULL, objects[OTHER_TYPE]};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        make_interpreter(NULL);
        put(FRAME, layout->frame_code, none[i]);
        assert_int_equal(python_check(&python, objects[THREAD]), PYTHON_GOOD);
        struct python_frame frames[4];
        uint64_t hash = 0;
        assert_int_equal(python_walker_for(layout)(&python, objects[THREAD], frames, 4, &hash), 1);
        atomic_store(&python_ready, NULL);
    }
}

static void test_endless_chain_of_frames_ends(void **state)
{
    (void)state;
    put(OUTER_FRAME, python.layout.frame_previous, objects[FRAME]);
    assert_int_equal(python_check(&python, objects[THREAD]), PYTHON_GOOD);
    struct python_frame frames[50];
    uint64_t hash = 0;
    assert_int_equal(python_walker_for(&python.layout)(&python, objects[THREAD], frames, 50, &hash), 50);
    atomic_store(&python_ready, NULL);
}

static void test_unusual_layout_walks_as_a_known_one_does(void **state)
{
    (void)state;
    struct python_frame known[8], other[8];
    uint64_t known_hash = 0, other_hash = 0;
    struct python_layout unusual = python.layout;
    unusual.minor = 99;
    python_walker *by_known = python_walker_for(&python.layout), *by_other = python_walker_for(&unusual);
    assert_true(by_known != by_other);
    assert_int_equal(by_known(&python, objects[THREAD], known, 8, &known_hash), 2);
    assert_int_equal(by_other(&python, objects[THREAD], other, 8, &other_hash), 2);
    assert_true(known_hash == other_hash);
    assert_ptr_equal(known[0].code, objects[CODE]);
    assert_int_equal(known[0].byte_offset, 4);
    assert_true(known[1].fingerprint == other[1].fingerprint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unsupported_versions_have_no_layout),
        cmocka_unit_test(test_published_offsets_must_be_of_the_version_and_sensible),
        cmocka_unit_test_setup(test_interpreter_as_described_is_good, make_interpreter),
        cmocka_unit_test_setup(test_thread_without_frames_proves_nothing, make_interpreter),
        cmocka_unit_test_setup(test_line_that_python_tells_otherwise_is_noticed, make_interpreter),
        cmocka_unit_test_setup(test_any_wrong_pointer_is_noticed_and_none_followed, make_interpreter),
        cmocka_unit_test_setup(test_object_of_another_type_is_noticed, make_interpreter),
        cmocka_unit_test_setup(test_size_that_cannot_be_is_noticed, make_interpreter),
        cmocka_unit_test_setup(test_frames_without_code_are_passed_over, make_interpreter),
        cmocka_unit_test_setup(test_endless_chain_of_frames_ends, make_interpreter),
        cmocka_unit_test_setup(test_unusual_layout_walks_as_a_known_one_does, make_interpreter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
