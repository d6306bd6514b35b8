/* Peaks in the reports, by arithmetic: what would have to go for them to be lower, one line however many
 * sites and addresses reach it, and all devices together. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "report_books.h"

enum { WEIGHTS = 10, FORWARD_LINE = 20, BACKWARD_LINE = 30, STEP_LINE = 40 };

struct model {
    uint32_t weights[WEIGHTS], activations[2], gradients, scratch;
};

static uint32_t line_site(struct books *books, const char *function, int line, int called_from)
{
    uint32_t frames[] = {books_python(books, function, "/home/me/model.py", line),
                         books_python(books, "main", "/home/me/main.py", called_from)};
    return books_plain(books, frames, 2);
}

/* Weights of 10 MiB each from ten lines stay; activations of 120 MiB, by one line that is called from two,
 * are highest at 3 s; then gradients of 40 MiB and scratch memory of 70 MiB, at 6 s. */
static void train(struct books *books, struct model *model)
{
    uint64_t address = GIB;
    for (int i = 0; i < WEIGHTS; i++) {
        model->weights[i] = line_site(books, "load", 1 + i, 1);
        books_alloc(books, model->weights[i], address += GIB, 10 * MIB, (uint64_t)i * MS);
    }
    for (int i = 0; i < 2; i++) {
        model->activations[i] = line_site(books, "forward", FORWARD_LINE, 2 + i);
        books_alloc(books, model->activations[i], (uint64_t)(50 + i) * GIB, 60 * MIB,
                    (2 + (uint64_t)i) * SEC);
    }
    for (int i = 0; i < 2; i++)
        books_free(books, model->activations[i], (uint64_t)(50 + i) * GIB, 4 * SEC);
    model->gradients = line_site(books, "backward", BACKWARD_LINE, 4);
    model->scratch = line_site(books, "step", STEP_LINE, 5);
    books_alloc(books, model->gradients, 60 * GIB, 40 * MIB, 5 * SEC);
    books_alloc(books, model->scratch, 61 * GIB, 70 * MIB, 6 * SEC);
    books_free(books, model->scratch, 61 * GIB, 7 * SEC);
    books_free(books, model->gradients, 60 * GIB, 8 * SEC);
}

static void assert_sites(const json_t *json, const char *path, const uint32_t *sites, size_t count)
{
    const json_t *list = json_node(json, path);
    assert_int_equal(json_array_size(list), count);
    for (size_t i = 0; i < count; i++) {
        size_t index;
        json_t *each;
        bool found = false;
        json_array_foreach((json_t *)list, index, each) found |=
            json_integer_value(each) == (json_int_t)sites[i];
        assert_true(found);
    }
}

static void test_a_peak_falls_when_every_moment_as_high_does(void **state)
{
    (void)state;
    struct books books;
    struct model model;
    books_open(&books);
    train(&books, &model);
    json_t *json = books_json(&books);
    assert_int_equal(json_at(json, "peaks.0.bytes"), 220 * MIB);
    assert_int_equal(json_at(json, "peaks.0.time_ns"), 3 * SEC);
    /* Both sites of the line together, and then the next highest moment is left: 100 + 40 + 70. */
    assert_int_equal(json_at(json, "peaks.0.lines.0.bytes"), 120 * MIB);
    assert_int_equal(json_at(json, "peaks.0.lines.0.sites"), 2);
    assert_int_equal(json_at(json, "peaks.0.lines.0.without.peak_bytes"), 210 * MIB);
    assert_int_equal(json_at(json, "peaks.0.lines.0.without.peak_time_ns"), 6 * SEC);
    assert_int_equal(json_at(json, "peaks.0.lines.1.without.peak_bytes"), 210 * MIB); /* weights: 220 - 10 */

    /* To 198 MiB: the activations, and at 6 s the smallest line that does, the gradients. */
    assert_int_equal(json_at(json, "peaks.0.falls.0.percent"), 10);
    assert_int_equal(json_at(json, "peaks.0.falls.0.target_bytes"), 198 * MIB);
    uint32_t tenth[] = {model.activations[0], model.activations[1], model.gradients};
    assert_sites(json, "peaks.0.falls.0.sites", tenth, 3);
    assert_int_equal(json_array_size(json_node(json, "peaks.0.falls.0.lines")), 2);
    assert_int_equal(json_at(json, "peaks.0.falls.0.peak_bytes"), 170 * MIB);
    assert_true(json_is_true(json_node(json, "peaks.0.falls.0.exact")));
    assert_true(json_is_true(json_node(json, "peaks.0.falls.0.enough")));
    /* To 165 MiB: 170 is too much, so the scratch memory must go. */
    uint32_t quarter[] = {model.activations[0], model.activations[1], model.scratch};
    assert_sites(json, "peaks.0.falls.1.sites", quarter, 3);
    assert_int_equal(json_at(json, "peaks.0.falls.1.peak_bytes"), 140 * MIB);
    json_decref(json);

    char *text = books_text(&books, false);
    assert_has(text, "model.py:20 in forward, 2 blocks; without it 210.0 MiB\n");
    assert_has(text, "  10% lower           without model.py:20 in forward and model.py:30 in backward: "
                     "170.0 MiB at 6.0 s");
    assert_has(text,
               "  25% lower           without model.py:20 in forward and model.py:40 in step: 140.0 MiB at");
    free(text);
    books_close(&books);
}

/* Where one line will do it is named alone: the smallest that does. */
static void test_a_single_line_is_enough_where_one_is(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    uint32_t small = line_site(&books, "log", 1, 1), middle = line_site(&books, "cache", 2, 1),
             large = line_site(&books, "load", 3, 1);
    books_alloc(&books, small, 1 * GIB, 5 * MIB, 1 * SEC);
    books_alloc(&books, middle, 2 * GIB, 30 * MIB, 2 * SEC);
    books_alloc(&books, large, 3 * GIB, 65 * MIB, 3 * SEC);
    json_t *json = books_json(&books);
    assert_sites(json, "peaks.0.falls.0.sites", &middle, 1);
    assert_sites(json, "peaks.0.falls.1.sites", &middle, 1);
    assert_int_equal(json_at(json, "peaks.0.falls.0.peak_bytes"), 70 * MIB);
    json_decref(json);
    books_close(&books);
}

static size_t resolve(void *source, const struct module *module, uint64_t offset, struct native_name *names,
                      size_t max)
{
    (void)source, (void)module, (void)max;
    names[0] = (struct native_name){.function = "grow()", .file = "/home/me/arena.cc", .line = 41};
    if (offset >= 0x1000)
        names[0] = (struct native_name){.function = "main", .file = "/home/me/main.cc", .line = (int)offset};
    return 1;
}

/* A compiler makes of one line several calls. */
static void test_a_line_of_several_addresses_is_listed_once(void **state)
{
    (void)state;
    static const struct symbol_source symbols = {.resolve = resolve};
    struct books books;
    books_open(&books);
    books.input.symbols = &symbols;
    uint32_t module = books_module(&books, "/home/me/train");
    uint32_t main_frame = books_native(&books, module, 0x1000), third = books_native(&books, module, 0x1007);
    for (uint64_t i = 0; i < 3; i++) {
        uint32_t frames[] = {i < 2 ? books_native(&books, module, 0x10 + i) : third, main_frame};
        books_alloc(&books, books_plain(&books, frames, 2), (i + 1) * GIB, (i + 1) * (i + 1) * MIB, i * SEC);
    }
    json_t *json = books_json(&books);
    assert_int_equal(json_array_size(json_node(json, "peaks.0.sites")), 3);
    assert_int_equal(json_array_size(json_node(json, "peaks.0.lines")), 2);
    assert_int_equal(json_array_size(json_node(json, "leaks.lines")), 2);
    assert_int_equal(json_at(json, "leaks.lines.1.sites"), 2);
    assert_int_equal(json_at(json, "leaks.lines.1.bytes"), 5 * MIB);
    json_decref(json);
    books_close(&books);
}

static void test_all_devices_together_have_a_peak(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    uint32_t frame = books_python(&books, "load", "/home/me/train.py", 3);
    uint32_t first = books_plain(&books, &frame, 1);
    uint32_t second = books_site(&books, "cuMemAlloc", FAMILY_PLAIN, SPACE_DEVICE, 1, &frame, 1);
    books_alloc(&books, first, 1 * GIB, 20 * MIB, 1 * SEC);
    books_alloc(&books, first, 2 * GIB, 10 * MIB, 2 * SEC);
    books_free(&books, first, 1 * GIB, 3 * SEC);
    books_alloc(&books, second, 3 * GIB, 25 * MIB, 4 * SEC); /* 10 + 25 */
    books_free(&books, first, 2 * GIB, 5 * SEC);
    json_t *json = books_json(&books);
    assert_int_equal(json_at(json, "peaks.0.bytes"), 30 * MIB);
    assert_int_equal(json_at(json, "peaks.1.bytes"), 25 * MIB);
    assert_int_equal(json_at(json, "whole_peak.bytes"), 35 * MIB);
    assert_int_equal(json_at(json, "whole_peak.time_ns"), 4 * SEC);
    assert_true(json_is_null(json_node(json, "whole_peak.device")));
    assert_int_equal(json_at(json, "whole_peak.sites.0.bytes"), 25 * MIB);
    assert_int_equal(json_at(json, "whole_peak.sites.1.bytes"), 10 * MIB);
    assert_int_equal(json_array_size(json_node(json, "whole_peak.lines")), 1); /* one line, two devices */
    json_decref(json);
    char *text = books_text(&books, false);
    assert_has(text,
               "\nall devices               35.0 MiB at 4.0 s      25.0 MiB in 1 block       3, 2 freed\n");
    assert_has(text, "Peak of all devices: 35.0 MiB at 4.0 s, held by\n");
    free(text);
    books_close(&books);
}

static void test_a_single_device_is_the_whole(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    books_alloc(&books, books_plain(&books, NULL, 0), GIB, MIB, SEC);
    json_t *json = books_json(&books);
    assert_true(json_is_null(json_node(json, "whole_peak")));
    json_decref(json);
    char *text = books_text(&books, true);
    assert_lacks(text, "all devices");
    free(text);
    books_close(&books);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_peak_falls_when_every_moment_as_high_does),
        cmocka_unit_test(test_a_single_line_is_enough_where_one_is),
        cmocka_unit_test(test_a_line_of_several_addresses_is_listed_once),
        cmocka_unit_test(test_all_devices_together_have_a_peak),
        cmocka_unit_test(test_a_single_device_is_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
