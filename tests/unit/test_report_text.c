/* The text report, read as the person in trouble would. With --show it prints the sample and tests nothing.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_samples.h"

static int show(bool full)
{
    struct training training;
    training_open(&training);
    char *text = books_text(&training.books, full), *summary = books_summary(&training.books);
    fputs(text, stdout);
    fputs(summary, stdout);
    free(text);
    free(summary);
    training_close(&training);
    return 0;
}

/* The first screen: all before the details, which begin behind "Details follow". */
static int first_screen_lines(const char *text)
{
    int line = line_with(text, "Details follow");
    assert_true(line > 0);
    return line;
}

static int columns(const char *line, size_t bytes)
{
    int count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += ((unsigned char)line[i] & 0xc0) != 0x80;
    return count;
}

static void check_width(const char *text)
{
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        if (columns(text, (size_t)(end - text)) > 100)
            fail_msg("%d columns: %.*s", columns(text, (size_t)(end - text)), (int)(end - text), text);
}

static void test_first_screen_answers_and_fits(void **state)
{
    (void)state;
    struct training training;
    training_open(&training);
    char *text = books_text(&training.books, false);
    assert_true(first_screen_lines(text) <= 40);
    check_width(text);
    /* What ran, and how it ended. */
    assert_has(text, "gpumemtrace report: python3 train.py\n");
    assert_has(text, "pid 4711 on gpu07, started 2023-11-14 22:13:20 UTC, ran 60.0 s, exited\n");
    /* 24 × 48 MiB + 60 × 3 MiB + 500 MiB + 5 blocks of 300 to 304 KiB = 1833.5 MiB; without the 500, 1333.5
     */
    assert_has(text,
               "device 0                  1.79 GiB at 58.3 s     1.30 GiB in 89 blocks     149, 60 freed");
    assert_has(text, "pinned host memory        64.0 MiB at 90 ms      64.0 MiB in 1 block       1, 0 freed");
    assert_has(text, "Still allocated at exit: 1.36 GiB in 90 blocks");
    assert_has(text, "Peak of device 0: 1.79 GiB at 58.3 s");
    free(text);
    training_close(&training);
}

static void test_buffer_kept_in_every_step_is_the_first_line_under_still_allocated(void **state)
{
    (void)state;
    struct training training;
    training_open(&training);
    char *text = books_text(&training.books, false);
    int kept = line_with(text, "  > 180.0 MiB");
    assert_int_equal(kept, line_with(text, "Still allocated at exit: ") + 1);
    assert_true(kept < 30);
    assert_has(
        text,
        "  > 180.0 MiB  12.9%  train.py:28 in Server.register_workspace\n"
        "                          return cu.alloc(3 * cu.MiB)\n"
        "                      60 blocks × 3.0 MiB, none freed, one every 980 ms from 510 ms to 58.3 s");
    assert_has(text, "called by train.py:33 in Server.step");
    free(text);
    training_close(&training);
}

static void test_out_of_memory_comes_before_everything_else(void **state)
{
    (void)state;
    struct training training;
    training_open(&training);
    char *text = books_text(&training.books, false);
    assert_int_equal(line_with(text, "OUT OF MEMORY: cuMemAlloc asked for 7.00 GiB on device 0 at 59.4 s"),
                     4);
    assert_has(text, "asked by    train.py:52 in next_batch\n");
    assert_has(
        text,
        "free then   6.20 GiB of 8.00 GiB; this process held 1.30 GiB; at most 6.20 GiB would have fitted\n");
    assert_has(text, "held by     1.13 GiB   86.4%  train.py:24 in Server.load, 24 blocks\n");
    assert_has(text, "No allocation succeeded after this one.");
    assert_true(line_with(text, "  try   ") < line_with(text, "Peak"));
    free(text);
    training_close(&training);
}

static void test_stack_reads_as_a_traceback_with_the_cpp_folded(void **state)
{
    (void)state;
    struct training training;
    char wanted[1024];
    training_open(&training);
    char *text = books_text(&training.books, false);
    snprintf(
        wanted, sizeof wanted,
        "      %s:58 in <module>\n"
        "    > %s:47 in attention\n"
        "          # line 47\n"
        "      … 1 frame in torch\n"
        "      /home/me/ext/ext.cpp:120 in py_workspace\n"
        "      /home/me/ext/ext.cpp:88 in alloc_workspace<float, std::allocator<float> >(unsigned long)\n"
        "      /home/me/ext/arena.h:41 in Arena<float>::grow(unsigned long) (inlined)\n"
        "      … 1 frame in libcudart.so.12\n",
        training.script, training.script);
    assert_has(text, wanted);
    assert_has(text, "      … 3 frames in _ctypes, libffi.so.8.1.2\n");
    free(text);
    training_close(&training);
}

static void test_full_report_shows_every_frame(void **state)
{
    (void)state;
    struct training training;
    training_open(&training);
    char *text = books_text(&training.books, true);
    assert_lacks(text, "… ");
    assert_has(text, "libcudart.so.12+0x4411\n");
    assert_has(text, "/usr/lib/python3/dist-packages/torch/autograd/function.py:574 in Function.apply\n");
    free(text);
    training_close(&training);
}

/* One function for every address: a template of templates, 4,000 bytes of arguments. */
static char deep_name[5000];

static size_t name_deeply(void *source, const struct module *module, uint64_t offset,
                          struct native_name *names, size_t max)
{
    (void)source, (void)module, (void)offset;
    names[0] = (struct native_name){.function = deep_name};
    return max > 0;
}

static void test_names_are_shortened_only_where_not_everything_was_asked_for(void **state)
{
    (void)state;
    static const struct symbol_source symbols = {.resolve = name_deeply};
    struct books books;
    char *to = stpcpy(deep_name, "net::grow<");
    for (int i = 0; i < 200; i++)
        to = stpcpy(to, "Layer<int, float>, ");
    strcpy(to, "int>(char)");
    books_open(&books);
    books.input.symbols = &symbols;
    uint32_t frame = books_native(&books, books_module(&books, "/home/me/app"), 1);
    books_alloc(&books, books_plain(&books, &frame, 1), 2 * MIB, 3, MS);
    char *text = books_text(&books, false);
    check_width(text);
    assert_has(text, "Site 0: net::grow<…>(…) in app\n");
    assert_has(text, "\n    > net::grow<…>(…) in app\n");
    free(text);
    text = books_text(&books, true);
    assert_lacks(text, "…");
    assert_has(text, "Site 0: net::grow<Layer<int, float>, Layer<int, float>, ");
    assert_has(text, deep_name);
    free(text);
    text = books_json_text(&books);
    assert_has(text, deep_name);
    free(text);
    books_close(&books);
}

static void test_code_that_the_reader_typed_is_not_folded(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    uint32_t frames[] = {books_python(&books, "grow", "<string>", 4),
                         books_python(&books, "exec_module", "<frozen importlib._bootstrap>", 883),
                         books_python(&books, "step", "/home/me/train.py", 42)};
    books_alloc(&books, books_plain(&books, frames, 3), 2 * MIB, 3, MS);
    char *text = books_text(&books, false);
    assert_has(text, "    > /home/me/train.py:42 in step\n"
                     "      … 1 frame in <frozen importlib._bootstrap>\n"
                     "      <string>:4 in grow\n");
    free(text);
    books_close(&books);
}

static const char *say_why(void *source, const struct module *module)
{
    (void)source, (void)module;
    return "has changed";
}

static size_t name_nothing(void *source, const struct module *module, uint64_t offset,
                           struct native_name *names, size_t max)
{
    (void)source, (void)module, (void)offset, (void)names, (void)max;
    return 0;
}

static void test_it_is_said_why_a_function_has_no_name(void **state)
{
    (void)state;
    static const struct symbol_source symbols = {.resolve = name_nothing, .why = say_why};
    struct books books;
    books_open(&books);
    books.input.symbols = &symbols;
    uint32_t frames[] = {books_native(&books, CATALOG_NONE, 0x7f0012345678),
                         books_native(&books, books_module(&books, "/home/me/app"), 0x1234)};
    books_alloc(&books, books_plain(&books, frames, 2), 2 * MIB, 3, MS);
    char *text = books_text(&books, true);
    assert_has(text, "/home/me/app+0x1234 (has changed)\n");
    assert_has(text, "      code without a file at 0x7f0012345678\n"); /* made at run time: that is why */
    free(text);
    text = books_text(&books, false);
    assert_has(text, "    > app+0x1234\n      … 1 frame in code without a file\n");
    free(text);
    json_t *json = books_json(&books);
    assert_string_equal(json_text_at(json, "sites.0.frames.1.why"), "has changed");
    assert_null(json_object_get(json_node(json, "sites.0.frames.0"), "why"));
    json_decref(json);
    books_close(&books);
}

static void test_source_newer_than_the_run_is_not_quoted(void **state)
{
    (void)state;
    struct training training;
    training_open(&training);
    training.books.process.start_realtime_ns = UINT64_C(1500000000) * SEC; /* the script is of 2020 */
    char *text = books_text(&training.books, false);
    assert_lacks(text, "return cu.alloc(3 * cu.MiB)");
    free(text);
    training_close(&training);
}

static void test_hundreds_of_sites_and_notes_still_fit_the_first_screen(void **state)
{
    (void)state;
    static const char long_note[] =
        "A first note that is long enough to take more than one line of the report when "
        "it is printed at its width.";
    static const char *const notes[] = {long_note, "second", "third", "fourth", "fifth"};
    struct books books;
    books_open(&books);
    books.input.notes = notes;
    books.input.note_count = 5;
    for (uint32_t i = 0; i < 300; i++) {
        uint32_t frame = books_python(&books, "f", "/home/me/a.py", (int)i + 1);
        uint32_t site = books_site(&books, "cuMemAlloc", FAMILY_PLAIN, SPACE_DEVICE, (int)(i % 8), &frame, 1);
        books_alloc(&books, site, (i + 1) * 2 * MIB, (i + 1) * KIB, MS);
        if (i < 3)
            books_event(
                &books,
                (struct event){.type = EVENT_OOM, .site = site, .size = GIB, .error = 2, .time_ns = 2 * MS});
    }
    char *text = books_text(&books, false);
    assert_true(first_screen_lines(text) <= 40);
    check_width(text);
    assert_has(text, "OUT OF MEMORY, 3 times, the last: ");
    assert_has(text, "a.py:300 in f"); /* the biggest */
    assert_has(text, "The first 20 of 300 sites in detail");
    assert_true(line_with(text, "second") < first_screen_lines(text));
    assert_true(line_with(text, "fifth") > first_screen_lines(text));
    free(text);
    text = books_text(&books, true);
    assert_has(text, "Every site in detail");
    for (int i = 0; i < 300; i += 37) {
        char title[64];
        snprintf(title, sizeof title, "Site %d: a.py:%d in f\n", i, i + 1);
        assert_has(text, title);
    }
    free(text);
    books_close(&books);
}

static void test_sites_of_one_line_are_one_row(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    uint32_t module = books_module(&books, "/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so");
    uint32_t line = books_python(&books, "forward", "/home/me/model.py", 7);
    for (uint64_t i = 0; i < 5; i++) {
        uint32_t frames[] = {books_native(&books, module, 0x100 + i), line};
        books_alloc(&books, books_plain(&books, frames, 2), i * 4 * MIB, 2 * MIB, MS);
    }
    char *text = books_text(&books, false);
    assert_has(text, "10.0 MiB   100.0% model.py:7 in forward\n"
                     "                      5 blocks × 2.0 MiB, none freed");
    assert_has(text, "Site 4: model.py:7 in forward"); /* still five sites in detail */
    free(text);
    books_close(&books);
}

static void test_names_from_a_recording_cannot_drive_the_terminal(void **state)
{
    (void)state;
    static const char *const arguments[] = {"python3", "\x1b]0;owned\x07.py", "a\nb"};
    static const char *const notes[] = {"note \x1b[2J"};
    struct books books;
    books_open(&books);
    books.process.arguments = arguments;
    books.process.argument_count = 3;
    books.process.host = "\x1b[31mhost";
    books.input.notes = notes;
    books.input.note_count = 1;
    books.input.report_path = "\x1b[5m.txt";
    uint32_t module = books_module(&books, "/lib/\x1b[1m.so");
    uint32_t frames[] = {books_native(&books, module, 1),
                         books_python(&books, "f\x1b[7m\n", "/home/\x9b/\xe2\x80\xae.py", 3)};
    uint32_t site = books_site(&books, "api\x1b[0m", FAMILY_PLAIN, SPACE_DEVICE, 0, frames, 2);
    books_alloc(&books, site, 2 * MIB, 3, MS);
    books_event(&books,
                (struct event){.type = EVENT_OOM, .site = site, .size = GIB, .error = 2, .time_ns = 2 * MS});
    char *texts[] = {books_text(&books, false), books_text(&books, true), books_summary(&books)};
    for (size_t i = 0; i < 3; i++) {
        for (const char *at = texts[i]; *at; at++)
            assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
        assert_lacks(texts[i], "\xe2\x80\xae");
        free(texts[i]);
    }
    books_close(&books);
}

static void test_names_of_any_length_are_cut_between_characters(void **state)
{
    (void)state;
    static char long_name[60001];
    memset(long_name, 'x', sizeof long_name - 1);
    for (size_t i = 1; i + 2 < sizeof long_name; i += 2)
        memcpy(long_name + i, "\xc3\xb6", 2); /* ö */
    for (size_t skip = 0; skip < 2; skip++) { /* a cut falls on the first or the second byte of a character */
        struct books books;
        books_open(&books);
        uint32_t frame = books_python(&books, "f", long_name + 1 - skip, 1);
        books_alloc(&books, books_plain(&books, &frame, 1), 2 * MIB, 3, MS);
        char *text = books_text(&books, false);
        check_width(text);
        assert_lacks(text, "\\x");
        free(text);
        text = books_json_text(&books);
        assert_has(text, long_name + 1); /* whole */
        assert_lacks(text, "\xef\xbf\xbd");
        free(text);
        books_close(&books);
    }
}

static void test_nothing_left_is_said_so(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    uint32_t site = books_plain(&books, NULL, 0);
    books_alloc(&books, site, 2 * MIB, 5 * MIB, MS);
    books_free(&books, site, 2 * MIB, 2 * MS);
    char *text = books_text(&books, false);
    assert_has(text, "Nothing was still allocated at exit.\n");
    assert_has(text,
               "device 0                  5.0 MiB at 1.0 ms      nothing                   1, 1 freed\n");
    free(text);
    books_close(&books);
}

static void test_how_it_ended_is_said_everywhere(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    books.process.end = PROCESS_KILLED;
    books_alloc(&books, books_plain(&books, NULL, 0), 2 * MIB, 5 * MIB, MS);
    char *text = books_text(&books, false), *summary = books_summary(&books);
    assert_has(text, ", killed or crashed\n");
    assert_has(text, "Still allocated when it was killed: 5.0 MiB in 1 block, by line of code\n");
    assert_has(summary, "5.0 MiB in 1 block still allocated when it was killed");
    free(text);
    free(summary);
    books_close(&books);
}

static void test_sites_that_never_had_memory_are_left_out(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    uint32_t frame = books_python(&books, "refused", "/home/me/a.py", 1);
    books_event(
        &books,
        (struct event){.type = EVENT_FAILED, .site = books_plain(&books, &frame, 1), .size = 5, .error = 1});
    char *text = books_text(&books, true), *summary = books_summary(&books);
    assert_has(text, "No GPU memory was allocated.\n1 allocation failed");
    assert_lacks(text, "Site 0");
    assert_string_equal(summary, "gpumemtrace: no allocation succeeded\n");
    free(text);
    free(summary);
    books_close(&books);
}

static void test_notes_say_what_is_missing(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    uint32_t module = books_module(&books, "/usr/lib/libfoo.so");
    uint32_t frame = books_native(&books, module, 1);
    uint32_t site = books_plain(&books, &frame, 1);
    books.input.dropped_events = 7;
    books_alloc(&books, site, 2 * MIB, 5 * MIB, MS);
    books_alloc(&books, site, 2 * MIB, 5 * MIB, 2 * MS); /* the same address again */
    books_event(&books, (struct event){.type = EVENT_FOREIGN_FREE, .key = 99, .time_ns = 3 * MS});
    char *text = books_text(&books, true);
    assert_has(text, "7 events could not be recorded");
    assert_has(text, "1 block ended without a free that was seen: the driver gave its address out again.");
    assert_has(text, "1 free named memory whose allocation was not seen");
    assert_has(text, "No Python frames were recorded, though this is a Python program.");
    free(text);
    books_close(&books);
}

static void check_summary(uint64_t blocks, const char *wanted)
{
    struct books books;
    books_open(&books);
    books.input.report_path = "run.txt";
    uint32_t frames[2] = {books_python(&books, "a", "/home/me/a.py", 1),
                          books_python(&books, "b", "/home/me/a.py", 2)};
    uint32_t big = books_plain(&books, &frames[0], 1), kept = books_plain(&books, &frames[1], 1);
    books_alloc(&books, big, 0, UINT64_C(1229) * MIB, MS);
    books_free(&books, big, 0, 2 * MS);
    for (uint64_t i = 0; i < blocks; i++)
        books_alloc(&books, kept, (i + 1) * 4 * MIB, 3 * MIB, 3 * MS);
    char *summary = books_summary(&books);
    assert_string_equal(summary, wanted);
    free(summary);
    books_close(&books);
}

static void test_summary_is_one_sentence_with_right_numbers(void **state)
{
    (void)state;
    check_summary(
        0, "gpumemtrace: peak 1.20 GiB on device 0, nothing still allocated at exit; report: run.txt\n");
    check_summary(1, "gpumemtrace: peak 1.20 GiB on device 0, 3.0 MiB in 1 block still allocated at exit, "
                     "all by a.py:2 in "
                     "b; report: run.txt\n");
    check_summary(
        60, "gpumemtrace: peak 1.20 GiB on device 0, 180.0 MiB in 60 blocks still allocated at exit, all by "
            "a.py:2 in b; report: run.txt\n");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return show(strcmp(argv[1], "--show-full") == 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_screen_answers_and_fits),
        cmocka_unit_test(test_buffer_kept_in_every_step_is_the_first_line_under_still_allocated),
        cmocka_unit_test(test_out_of_memory_comes_before_everything_else),
        cmocka_unit_test(test_stack_reads_as_a_traceback_with_the_cpp_folded),
        cmocka_unit_test(test_full_report_shows_every_frame),
        cmocka_unit_test(test_names_are_shortened_only_where_not_everything_was_asked_for),
        cmocka_unit_test(test_code_that_the_reader_typed_is_not_folded),
        cmocka_unit_test(test_it_is_said_why_a_function_has_no_name),
        cmocka_unit_test(test_source_newer_than_the_run_is_not_quoted),
        cmocka_unit_test(test_hundreds_of_sites_and_notes_still_fit_the_first_screen),
        cmocka_unit_test(test_sites_of_one_line_are_one_row),
        cmocka_unit_test(test_names_from_a_recording_cannot_drive_the_terminal),
        cmocka_unit_test(test_names_of_any_length_are_cut_between_characters),
        cmocka_unit_test(test_nothing_left_is_said_so),
        cmocka_unit_test(test_how_it_ended_is_said_everywhere),
        cmocka_unit_test(test_sites_that_never_had_memory_are_left_out),
        cmocka_unit_test(test_notes_say_what_is_missing),
        cmocka_unit_test(test_summary_is_one_sentence_with_right_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
