/* The catalog (catalog/catalog.h): everything stored once, numbered in the order it was first seen. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "catalog/catalog.h"
#include "kernel.h"

struct fixture {
    struct arena arena;
    struct catalog *catalog;
};

static struct fixture fixture;

static int set_up(void **state)
{
    memset(&fixture, 0, sizeof fixture);
    *state = fixture.catalog = catalog_create(&fixture.arena);
    return fixture.catalog == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    catalog_destroy(*state);
    arena_release(&fixture.arena);
    return 0;
}

static uint32_t add_text(struct catalog *catalog, const char *text, bool *is_new)
{
    return catalog_add_string(catalog, text, strlen(text), is_new);
}

static void test_a_string_is_stored_once_and_numbered_from_zero(void **state)
{
    bool is_new;
    assert_int_equal(add_text(*state, "zero", &is_new), 0);
    assert_true(is_new);
    assert_int_equal(add_text(*state, "one", &is_new), 1);
    assert_true(is_new);
    assert_int_equal(add_text(*state, "zero", &is_new), 0);
    assert_false(is_new);
    assert_int_equal(add_text(*state, "two", NULL), 2);
    assert_int_equal(catalog_string_count(*state), 3);
    assert_string_equal(catalog_string(*state, 1), "one");
    assert_null(catalog_string(*state, 3));
    assert_null(catalog_string(*state, CATALOG_NONE));
}

static void test_strings_are_told_apart_by_their_bytes_and_length(void **state)
{
    const char bytes[] = "ab\0cd";
    uint32_t empty = catalog_add_string(*state, bytes, 0, NULL);
    uint32_t whole = catalog_add_string(*state, bytes, 5, NULL);
    uint32_t start = catalog_add_string(*state, bytes, 2, NULL);
    uint32_t other = catalog_add_string(*state, "ab\0cx", 5, NULL);
    assert_int_equal(catalog_string_count(*state), 4);
    assert_true(empty != whole && whole != start && whole != other && start != other);
    assert_int_equal(catalog_add_string(*state, "ab\0cd", 5, NULL), whole);
    assert_int_equal(add_text(*state, "", NULL), empty);
    assert_memory_equal(catalog_string(*state, whole), bytes, 6);
}

static void test_a_string_is_a_copy(void **state)
{
    char text[] = "mine";
    uint32_t id = add_text(*state, text, NULL);
    memcpy(text, "your", 4);
    assert_string_equal(catalog_string(*state, id), "mine");
    assert_int_not_equal(add_text(*state, text, NULL), id);
}

static struct module example_module(const char *path)
{
    return (struct module){.path = path,
                           .bias = 0x1000,
                           .start = 0x2000,
                           .end = 0x3000,
                           .file_size = 77,
                           .file_mtime_ns = 88,
                           .build_id_bytes = 3,
                           .build_id = {1, 2, 3, 99}};
}

/* Each row changes one thing that makes another module of it. */
static void test_modules_are_equal_when_all_facts_of_their_files_are(void **state)
{
    bool is_new;
    char path[] = "/lib/a.so", same_path[] = "/lib/a.so";
    struct module module = example_module(path), other[5];
    assert_int_equal(catalog_add_module(*state, &module, &is_new), 0);
    assert_true(is_new);
    module.path = same_path;
    module.build_id[3] = 100; /* behind the build-id: no fact */
    assert_int_equal(catalog_add_module(*state, &module, &is_new), 0);
    assert_false(is_new);
    for (size_t i = 0; i < COUNT_OF(other); i++)
        other[i] = example_module(path);
    other[0].path = "/lib/b.so";
    other[1].file_size++;
    other[2].file_mtime_ns++;
    other[3].build_id_bytes = 2;
    other[4].build_id[2]++;
    for (uint32_t i = 0; i < COUNT_OF(other); i++)
        assert_int_equal(catalog_add_module(*state, &other[i], NULL), i + 1);
    const struct module *kept = catalog_module(*state, 0);
    assert_string_equal(kept->path, "/lib/a.so");
    assert_ptr_not_equal(kept->path, path);
    assert_int_equal(kept->end, 0x3000);
    assert_int_equal(kept->build_id_bytes, 3);
    assert_memory_equal(kept->build_id, module.build_id, 3);
    assert_null(catalog_module(*state, COUNT_OF(other) + 1));
}

static void test_a_module_loaded_again_elsewhere_is_the_same(void **state)
{
    struct module module = example_module("/lib/a.so");
    assert_int_equal(catalog_add_module(*state, &module, NULL), 0);
    module.bias = module.start = 0x9000;
    module.end = 0xa000;
    assert_int_equal(catalog_add_module(*state, &module, NULL), 0);
    assert_int_equal(catalog_module(*state, 0)->bias, 0x1000);
}

/* What cannot be told by its file is told by its place. */
static void test_modules_without_a_file_are_told_apart_by_place(void **state)
{
    struct module module = {.path = "[vdso]", .bias = 0x1000, .start = 0x1000, .end = 0x2000}, other[3];
    assert_int_equal(catalog_add_module(*state, &module, NULL), 0);
    for (size_t i = 0; i < COUNT_OF(other); i++)
        other[i] = module;
    other[0].bias++;
    other[1].start++;
    other[2].end++;
    for (uint32_t i = 0; i < COUNT_OF(other); i++)
        assert_int_equal(catalog_add_module(*state, &other[i], NULL), i + 1);
}

static void test_a_frame_is_what_its_kind_says(void **state)
{
    bool is_new;
    struct frame native = {.kind = FRAME_NATIVE, .module = 3, .offset = 0x40, .function = 1, .line = 5};
    struct frame python = {
        .kind = FRAME_PYTHON, .function = 1, .file = 2, .line = 5, .module = 3, .offset = 0x40};
    assert_int_equal(catalog_add_frame(*state, &native, NULL), 0);
    assert_int_equal(catalog_add_frame(*state, &python, NULL), 1);
    native.function = native.file = 9; /* no fact of a native frame … */
    native.line = 9;
    python.module = 9; /* … nor these of a Python frame */
    python.offset = 9;
    assert_int_equal(catalog_add_frame(*state, &native, &is_new), 0);
    assert_false(is_new);
    assert_int_equal(catalog_add_frame(*state, &python, &is_new), 1);
    assert_false(is_new);
    native.module = CATALOG_NONE;
    assert_int_equal(catalog_add_frame(*state, &native, NULL), 2);
    native.offset++;
    assert_int_equal(catalog_add_frame(*state, &native, NULL), 3);
    python.line++;
    assert_int_equal(catalog_add_frame(*state, &python, NULL), 4);
    python.file++;
    assert_int_equal(catalog_add_frame(*state, &python, NULL), 5);
    python.function++;
    assert_int_equal(catalog_add_frame(*state, &python, NULL), 6);
    assert_int_equal(catalog_frame(*state, 6)->line, 6);
    assert_int_equal(catalog_frame(*state, 2)->module, CATALOG_NONE);
    assert_null(catalog_frame(*state, 7));
}

static void test_a_stack_is_its_frames_in_their_order(void **state)
{
    bool is_new;
    uint32_t frames[] = {5, 6, 7}, turned[] = {7, 6, 5};
    assert_int_equal(catalog_add_stack(*state, frames, 3, NULL), 0);
    assert_int_equal(catalog_add_stack(*state, turned, 3, NULL), 1);
    assert_int_equal(catalog_add_stack(*state, frames, 2, NULL), 2);
    assert_int_equal(catalog_add_stack(*state, frames, 3, &is_new), 0);
    assert_false(is_new);
    assert_int_equal(catalog_add_stack(*state, frames, 0, NULL), 3);
    frames[0] = 1;
    assert_int_equal(catalog_stack(*state, 0)->count, 3);
    assert_int_equal(catalog_stack(*state, 0)->frames[0], 5);
    assert_int_equal(catalog_stack(*state, 3)->count, 0);
    assert_null(catalog_stack(*state, 4));
}

static void test_every_part_of_a_site_tells_it_apart(void **state)
{
    bool is_new;
    struct site_key key = {.stack = CATALOG_NONE, .api = 1, .family = FAMILY_PLAIN, .space = SPACE_DEVICE};
    struct site_key same = key, other[5];
    assert_int_equal(catalog_add_site(*state, &key, NULL), 0);
    assert_int_equal(catalog_add_site(*state, &same, &is_new), 0);
    assert_false(is_new);
    for (size_t i = 0; i < COUNT_OF(other); i++)
        other[i] = key;
    other[0].stack = 0;
    other[1].api++;
    other[2].family = FAMILY_POOL;
    other[3].space = SPACE_GRAPH;
    other[4].device = -1;
    for (uint32_t i = 0; i < COUNT_OF(other); i++)
        assert_int_equal(catalog_add_site(*state, &other[i], NULL), i + 1);
    assert_int_equal(catalog_site(*state, 5)->device, -1);
    assert_null(catalog_site(*state, COUNT_OF(other) + 1));
}

static void test_entries_stay_where_they_are(void **state)
{
    enum { STRINGS = 50000 };
    static const char *known[STRINGS];
    static const struct frame *frames[STRINGS];
    char text[32];
    for (uint32_t i = 0; i < STRINGS; i++) {
        snprintf(text, sizeof text, "string %u", i);
        struct frame frame = {.kind = FRAME_NATIVE, .offset = i};
        assert_int_equal(add_text(*state, text, NULL), i);
        assert_int_equal(catalog_add_frame(*state, &frame, NULL), i);
        known[i] = catalog_string(*state, i);
        frames[i] = catalog_frame(*state, i);
    }
    for (uint32_t i = 0; i < STRINGS; i++) {
        snprintf(text, sizeof text, "string %u", i);
        assert_ptr_equal(catalog_string(*state, i), known[i]);
        assert_string_equal(known[i], text);
        assert_ptr_equal(catalog_frame(*state, i), frames[i]);
        assert_int_equal(frames[i]->offset, i);
    }
}

/* Adds one entry of each kind that was not there yet; how many of the five were refused. */
static int add_one_of_each(struct catalog *catalog, uint32_t number, uint32_t counts[5])
{
    char text[32];
    snprintf(text, sizeof text, "number %u", number);
    struct module module = example_module("/lib/a.so");
    struct frame frame = {.kind = FRAME_NATIVE, .offset = number};
    struct site_key site = {.stack = number};
    module.file_size = number + 1;
    uint32_t ids[5] = {add_text(catalog, text, NULL), catalog_add_module(catalog, &module, NULL),
                       catalog_add_frame(catalog, &frame, NULL), catalog_add_stack(catalog, &number, 1, NULL),
                       catalog_add_site(catalog, &site, NULL)};
    int refused = 0;
    for (int i = 0; i < 5; i++) {
        if (ids[i] == CATALOG_NONE)
            refused++;
        else
            assert_int_equal(ids[i], counts[i]++);
    }
    return refused;
}

/* The kernel refuses at every moment in turn: what was refused is not there, takes no number, and can be
 * added later. */
static void test_what_memory_was_refused_for_is_not_added(void **state)
{
    int refused = 0;
    add_text(*state, "/lib/a.so", NULL);
    uint32_t counts[5] = {1, 0, 0, 0, 0};
    for (uint32_t number = 0; number < 20000; number++) {
        kernel_grants(number % 16 == 15 ? KERNEL_GRANTS_ALL : (int)(number % 3));
        refused += add_one_of_each(*state, number, counts);
    }
    kernel_grants(KERNEL_GRANTS_ALL);
    assert_true(refused > 0);
    assert_int_equal(catalog_string_count(*state), counts[0]);
    assert_int_equal(catalog_module_count(*state), counts[1]);
    assert_int_equal(catalog_frame_count(*state), counts[2]);
    assert_int_equal(catalog_stack_count(*state), counts[3]);
    assert_int_equal(catalog_site_count(*state), counts[4]);
    for (uint32_t number = 0; number < 20000; number++) {
        char text[32];
        snprintf(text, sizeof text, "number %u", number);
        bool is_new;
        uint32_t id = add_text(*state, text, &is_new);
        assert_int_equal(is_new, id == counts[0]);
        counts[0] += is_new;
        assert_string_equal(catalog_string(*state, id), text);
    }
    assert_int_equal(counts[0], 20001);
}

/* The tables of the accounting in the report's documentation. */
static void test_spaces_and_families_are_the_documented_ones(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum layer layer;
        bool owned;
    } families[FAMILY_COUNT] = {{"plain", LAYER_DRIVER, true},       {"pitched", LAYER_DRIVER, true},
                                {"managed", LAYER_DRIVER, true},     {"pool", LAYER_DRIVER, true},
                                {"vmm", LAYER_DRIVER, true},         {"array", LAYER_DRIVER, true},
                                {"pinned", LAYER_DRIVER, true},      {"registered", LAYER_DRIVER, true},
                                {"graph", LAYER_DRIVER, true},       {"ipc", LAYER_DRIVER, false},
                                {"external", LAYER_DRIVER, false},   {"torch", LAYER_FRAMEWORK, true},
                                {"allocator", LAYER_FRAMEWORK, true}};
    for (int i = 0; i < FAMILY_COUNT; i++) {
        assert_string_equal(family_infos[i].name, families[i].name);
        assert_int_equal(family_infos[i].layer, families[i].layer);
        assert_int_equal(family_infos[i].owned, families[i].owned);
    }
    static const char *const spaces[SPACE_COUNT] = {"device", "managed", "pinned", "registered",
                                                    "host",   "graph",   "foreign"};
    for (int i = 0; i < SPACE_COUNT; i++)
        assert_string_equal(space_infos[i].name, spaces[i]);
    assert_false(space_infos[SPACE_PINNED].per_device || space_infos[SPACE_REGISTERED].per_device ||
                 space_infos[SPACE_HOST].per_device);
    assert_true(space_infos[SPACE_DEVICE].per_device && space_infos[SPACE_MANAGED].per_device);
    assert_string_equal(layer_names[LAYER_DRIVER], "driver");
    assert_string_equal(layer_names[LAYER_FRAMEWORK], "framework");
}

#define WITH_CATALOG(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CATALOG(test_a_string_is_stored_once_and_numbered_from_zero),
        WITH_CATALOG(test_strings_are_told_apart_by_their_bytes_and_length),
        WITH_CATALOG(test_a_string_is_a_copy),
        WITH_CATALOG(test_modules_are_equal_when_all_facts_of_their_files_are),
        WITH_CATALOG(test_a_module_loaded_again_elsewhere_is_the_same),
        WITH_CATALOG(test_modules_without_a_file_are_told_apart_by_place),
        WITH_CATALOG(test_a_frame_is_what_its_kind_says),
        WITH_CATALOG(test_a_stack_is_its_frames_in_their_order),
        WITH_CATALOG(test_every_part_of_a_site_tells_it_apart),
        WITH_CATALOG(test_entries_stay_where_they_are),
        WITH_CATALOG(test_what_memory_was_refused_for_is_not_added),
        cmocka_unit_test(test_spaces_and_families_are_the_documented_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
