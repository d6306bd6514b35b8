/* The JSON report: every figure against arithmetic done here, read back with jansson. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report_samples.h"

/* Schema gpumemtrace.report/1, as documented: i integer, s string, b boolean, o object, a array; ? may be
 * null. */
static const struct {
    const char *at, *keys;
} schema[] = {
    {"", "s:schema s:version o:process o:counters a:spaces a:sites o:leaks a:peaks a:fragmentation a:growth "
         "a:ooms "
         "a:phases a:memory_map a:notes"},
    {"process", "i:pid i:ppid s?:host s?:exe a:argv i?:rank s:start_time i:duration_ns s:end b:complete"},
    {"counters",
     "i:allocs i:frees i:teardown_frees i:failed_allocs i:foreign_frees i:dropped_events i:events"},
    {"spaces.0",
     "s:space i?:device i:live_bytes i:live_blocks i:peak_bytes i:peak_time_ns i:allocated_bytes i:allocs "
     "i:frees"},
    {"sites.0", "i:id s:layer s:space i?:device s:family s:api a:frames i:allocs i:frees i:allocated_bytes "
                "i:live_bytes i:live_blocks i:bytes_at_peak i:blocks_at_peak b:suppressed"},
    {"sites.0.frames.0", "s:kind s?:function s?:file i?:line s?:module i?:offset"},
    {"leaks", "i:live_bytes i:live_blocks i:suppressed_bytes a:sites"},
    {"peaks.0", "s:space i?:device i:bytes i:time_ns a:sites"},
    {"peaks.0.sites.0", "i:site i:bytes i:blocks"},
    {"fragmentation.0",
     "i:device i:granule_bytes i:live_bytes i:footprint_bytes i:waste_bytes a:pools a:frameworks"},
    {"ooms.0",
     "i:time_ns s:api i?:device i:requested_bytes i?:free_bytes i?:total_bytes i:live_bytes a:frames a:sites "
     "s:verdict"},
    {"ooms.0.sites.0", "i:site i:bytes i:blocks"},
    {"memory_map.0",
     "i:device i?:total_bytes i?:free_bytes i:tracked_bytes i?:context_bytes i?:untracked_bytes "
     "i:contexts s:context_basis i?:modules_bytes i:modules s:modules_basis i?:pool_unused_bytes "
     "i?:graph_bytes i?:granule_waste_bytes i?:process_bytes i?:other_processes_bytes b:cut_to_fit "
     "a:samples"},
    {"memory_map.0.samples.0",
     "s:reason i:time_ns i:total_bytes i:free_bytes i:tracked_bytes i:context_bytes i:modules_bytes "
     "i:pool_unused_bytes i:graph_bytes i:rest_bytes"},
};

static bool has_type(const json_t *value, const char *type)
{
    switch (type[0]) {
    case 'i':
        return json_is_integer(value);
    case 's':
        return json_is_string(value);
    case 'b':
        return json_is_boolean(value);
    case 'o':
        return json_is_object(value);
    default:
        return json_is_array(value);
    }
}

static void check_keys(const json_t *object, const char *at, const char *keys)
{
    char copy[512], *rest = copy;
    snprintf(copy, sizeof copy, "%s", keys);
    for (char *part; (part = strsep(&rest, " "));) {
        const char *key = strchr(part, ':') + 1;
        const json_t *value = json_object_get(object, key);
        if (!value)
            fail_msg("%s has no %s", at, key);
        if (!has_type(value, part) && !(part[1] == '?' && json_is_null(value)))
            fail_msg("%s.%s is not %.2s", at, key, part);
    }
}

static void test_report_has_every_key_of_the_schema(void **state)
{
    (void)state;
    struct training training;
    training_open(&training);
    json_t *json = books_json(&training.books);
    for (size_t i = 0; i < sizeof schema / sizeof schema[0]; i++)
        check_keys(schema[i].at[0] ? json_node(json, schema[i].at) : json, schema[i].at, schema[i].keys);
    assert_string_equal(json_text_at(json, "schema"), "gpumemtrace.report/1");
    json_decref(json);
    training_close(&training);
}

static void test_empty_books_make_a_whole_report(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    books.process = (struct process_info){.rank = -1};
    json_t *json = books_json(&books);
    assert_int_equal(json_array_size(json_node(json, "sites")), 0);
    assert_int_equal(json_array_size(json_node(json, "peaks")), 0);
    assert_true(json_is_null(json_node(json, "process.exe")));
    assert_true(json_is_null(json_node(json, "process.start_time")));
    json_decref(json);
    books_close(&books);
}

static void test_process_is_described(void **state)
{
    (void)state;
    static const struct {
        enum process_end end;
        const char *text;
    } ends[] = {{PROCESS_EXITED, "exited"}, {PROCESS_KILLED, "killed"}, {PROCESS_RUNNING, "running"}};
    for (size_t i = 0; i < 3; i++) {
        struct books books;
        books_open(&books);
        books.process.end = ends[i].end;
        books.process.complete = i == 1;
        books.process.rank = i == 2 ? 3 : -1;
        json_t *json = books_json(&books);
        assert_int_equal(json_at(json, "process.pid"), 4711);
        assert_int_equal(json_at(json, "process.ppid"), 4700);
        assert_int_equal(json_at(json, "process.duration_ns"), 10000000000);
        assert_string_equal(json_text_at(json, "process.argv.1"), "train.py");
        assert_string_equal(json_text_at(json, "process.end"), ends[i].text);
        assert_int_equal(json_is_true(json_node(json, "process.complete")), i == 1);
        if (i == 2)
            assert_int_equal(json_at(json, "process.rank"), 3);
        else
            assert_true(json_is_null(json_node(json, "process.rank")));
        json_decref(json);
        books_close(&books);
    }
}

static void test_start_time_is_what_gmtime_says(void **state)
{
    (void)state;
    /* Around the ends of February in a leap year of 400, a leap year and a year of 100 without; and far off.
     */
    static const time_t seconds[] = {1,          951782399,  951782400,  951868800,  1700000000,
                                     1709164799, 1709251200, 4107542399, 4107542400, 9000000000};
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) {
        struct books books;
        char wanted[64];
        books_open(&books);
        books.process.start_realtime_ns = (uint64_t)seconds[i] * SEC + 5;
        strftime(wanted, sizeof wanted, "%Y-%m-%dT%H:%M:%S.000000005Z", gmtime(&seconds[i]));
        json_t *json = books_json(&books);
        assert_string_equal(json_text_at(json, "process.start_time"), wanted);
        json_decref(json);
        books_close(&books);
    }
}

static void test_sites_that_nothing_happened_at_are_left_out_and_ids_are_indices(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    uint32_t frames[6], sites[6];
    for (int i = 0; i < 6; i++) {
        frames[i] = books_python(&books, "f", "/home/me/a.py", i + 1);
        sites[i] = books_plain(&books, &frames[i], 1);
    }
    books_alloc(&books, sites[1], 2 * MIB, 100, MS); /* freed */
    books_free(&books, sites[1], 2 * MIB, 2 * MS);
    books_alloc(&books, sites[3], 4 * MIB, 50, 3 * MS);
    books_alloc(&books, sites[5], 6 * MIB, 70, 4 * MS);
    books_event(&books, (struct event){
                            .type = EVENT_OOM, .site = sites[4], .size = 9, .time_ns = 5 * MS, .error = 2});

    json_t *json = books_json(&books);
    assert_int_equal(json_array_size(json_node(json, "sites")), 4); /* lines 2, 4, 5, 6 */
    static const int lines[] = {2, 4, 5, 6};
    for (int i = 0; i < 4; i++) {
        const json_t *site = json_array_get(json_node(json, "sites"), (size_t)i);
        assert_int_equal(json_at(site, "id"), i);
        assert_int_equal(json_at(site, "frames.0.line"), lines[i]);
    }
    assert_int_equal(json_at(json, "leaks.sites.0"), 3);
    assert_int_equal(json_at(json, "leaks.sites.1"), 1);
    assert_int_equal(json_array_size(json_node(json, "leaks.sites")), 2);
    assert_int_equal(json_at(json, "peaks.0.sites.0.site"), 3);
    assert_int_equal(json_at(json, "peaks.0.sites.1.site"), 1);
    assert_int_equal(json_at(json, "ooms.0.site"), 2);
    assert_int_equal(json_at(json, "ooms.0.frames.0.line"), 5);
    assert_int_equal(json_at(json, "ooms.0.sites.0.site"), 3);
    assert_int_equal(json_at(json, "sites.2.failed_allocs"), 1);
    json_decref(json);
    books_close(&books);
}

static size_t count_and_name(void *source, const struct module *module, uint64_t offset,
                             struct native_name *names, size_t max)
{
    int *asked = source;
    (*asked)++;
    assert_true(max >= 3);
    assert_string_equal(module->path, "/home/me/app");
    if (offset == 0x30)
        return 0;
    names[0] = (struct native_name){"inner", "/home/me/app.h", 7};
    names[1] = (struct native_name){"middle", "/home/me/app.h", 9};
    names[2] =
        (struct native_name){offset == 0x10 ? "outer" : "", offset == 0x10 ? "/home/me/app.c" : NULL, 0};
    return 3;
}

static void test_native_frames_get_all_their_names_and_are_asked_for_once(void **state)
{
    (void)state;
    struct books books;
    int asked = 0;
    struct symbol_source symbols = {.resolve = count_and_name, .source = &asked};
    books_open(&books);
    books.input.symbols = &symbols;
    uint32_t module = books_module(&books, "/home/me/app");
    uint32_t frames[] = {books_native(&books, module, 0x10), books_native(&books, module, 0x30),
                         books_native(&books, CATALOG_NONE, 0x7f00),
                         books_python(&books, "main", "/home/me/m.py", 3)};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t other = books_python(&books, "caller", "/home/me/m.py", 10 + (int)i);
        uint32_t stack[] = {frames[0], frames[1], frames[2], frames[3], other};
        books_alloc(&books, books_plain(&books, stack, 5), i * MIB, 1, MS);
    }
    json_t *json = books_json(&books);
    assert_int_equal(asked, 2); /* not for code in no file, and not for each stack */
    const json_t *site = json_node(json, "sites.2");
    static const char *const functions[] = {"inner", "middle", "outer", NULL, NULL, "main", "caller"};
    static const int lines[] = {7, 9, 0, 0, 0, 3, 12};
    assert_int_equal(json_array_size(json_node(site, "frames")), 7);
    for (size_t i = 0; i < 7; i++) {
        const json_t *frame = json_array_get(json_node(site, "frames"), i);
        const char *function = json_string_value(json_object_get(frame, "function"));
        assert_true(functions[i] ? function && strcmp(functions[i], function) == 0 : !function);
        assert_int_equal(json_integer_value(json_object_get(frame, "line")), lines[i]);
        assert_int_equal(json_is_null(json_object_get(frame, "line")), lines[i] == 0);
        assert_string_equal(json_text_at(frame, "kind"), i < 5 ? "native" : "python");
        assert_int_equal(json_is_null(json_object_get(frame, "offset")), i >= 5);
        assert_int_equal(json_is_null(json_object_get(frame, "module")), i >= 4);
    }
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(json_at(json_array_get(json_node(site, "frames"), i), "offset"), 0x10);
    assert_int_equal(json_at(site, "frames.4.offset"), 0x7f00);
    json_decref(json);
    books_close(&books);
}

enum { OWN_SITES = 12, OWN_BLOCKS = 200, OWN_EVENTS = 4000 };

/* Books kept beside the report's. */
struct own_books {
    uint32_t sites[OWN_SITES];
    struct own_site {
        long long allocs, frees, allocated, live, blocks, at_peak, blocks_at_peak;
    } own[OWN_SITES];
    struct {
        uint32_t site;
        uint64_t size;
    } held[OWN_BLOCKS];
    long long live, peak, allocs, frees;
    uint64_t peak_time;
};

static void own_free(struct own_books *own, uint32_t slot)
{
    struct own_site *site = &own->own[own->held[slot].site];
    site->frees++;
    site->live -= (long long)own->held[slot].size;
    site->blocks--;
    own->live -= (long long)own->held[slot].size;
    own->frees++;
    own->held[slot].size = 0;
}

static void own_alloc(struct own_books *own, uint32_t slot, uint64_t time)
{
    struct own_site *site = &own->own[own->held[slot].site];
    long long size = (long long)own->held[slot].size;
    site->allocs++;
    site->allocated += size;
    site->live += size;
    site->blocks++;
    own->live += size;
    own->allocs++;
    if (own->live <= own->peak)
        return;
    own->peak = own->live;
    own->peak_time = time;
    for (int i = 0; i < OWN_SITES; i++) {
        own->own[i].at_peak = own->own[i].live;
        own->own[i].blocks_at_peak = own->own[i].blocks;
    }
}

/* A slot that holds a block gives it back, another one takes one. */
static void happen_at_random(struct books *books, struct own_books *own)
{
    uint32_t seed = 20240229;
    for (uint32_t i = 0; i < OWN_SITES; i++) {
        uint32_t frame = books_python(books, "f", "/home/me/a.py", (int)i + 1);
        own->sites[i] = books_plain(books, &frame, 1);
    }
    for (uint64_t n = 1; n <= OWN_EVENTS; n++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t slot = (seed >> 8) % OWN_BLOCKS;
        uint64_t address = (slot + 1) * 16 * MIB;
        if (own->held[slot].size) {
            books_free(books, own->sites[own->held[slot].site], address, n);
            own_free(own, slot);
            continue;
        }
        own->held[slot].size = (seed >> 4) % (8 * MIB) + 1;
        own->held[slot].site = (seed >> 16) % OWN_SITES;
        books_alloc(books, own->sites[own->held[slot].site], address, own->held[slot].size, n);
        own_alloc(own, slot, n);
    }
}

static void expect_sites(const json_t *json, const struct own_books *own)
{
    assert_int_equal(json_array_size(json_node(json, "sites")), OWN_SITES);
    for (size_t i = 0; i < OWN_SITES; i++) {
        const json_t *site = json_array_get(json_node(json, "sites"), i);
        assert_int_equal(json_at(site, "allocs"), own->own[i].allocs);
        assert_int_equal(json_at(site, "frees"), own->own[i].frees);
        assert_int_equal(json_at(site, "allocated_bytes"), own->own[i].allocated);
        assert_int_equal(json_at(site, "live_bytes"), own->own[i].live);
        assert_int_equal(json_at(site, "live_blocks"), own->own[i].blocks);
        assert_int_equal(json_at(site, "bytes_at_peak"), own->own[i].at_peak);
        assert_int_equal(json_at(site, "blocks_at_peak"), own->own[i].blocks_at_peak);
    }
}

/* Leaks and the peak: most bytes first, and what they add up to. */
static void expect_lists(const json_t *json, const struct own_books *own)
{
    long long before = INT64_MAX, sum = 0;
    size_t index;
    json_t *entry;
    json_array_foreach(json_node(json, "leaks.sites"), index, entry)
    {
        long long bytes = own->own[json_integer_value(entry)].live;
        assert_true(bytes <= before && bytes > 0);
        before = bytes;
        sum += bytes;
    }
    assert_int_equal(sum, own->live);
    before = INT64_MAX, sum = 0;
    json_array_foreach(json_node(json, "peaks.0.sites"), index, entry)
    {
        assert_int_equal(json_at(entry, "bytes"), own->own[json_at(entry, "site")].at_peak);
        assert_int_equal(json_at(entry, "blocks"), own->own[json_at(entry, "site")].blocks_at_peak);
        assert_true(json_at(entry, "bytes") <= before);
        before = json_at(entry, "bytes");
        sum += before;
    }
    assert_int_equal(sum, own->peak);
}

static void test_random_events_agree_with_books_of_our_own(void **state)
{
    (void)state;
    struct books books;
    struct own_books own = {0};
    books_open(&books);
    happen_at_random(&books, &own);
    json_t *json = books_json(&books);
    assert_int_equal(json_at(json, "counters.allocs"), own.allocs);
    assert_int_equal(json_at(json, "counters.frees"), own.frees);
    assert_int_equal(json_at(json, "counters.events"), OWN_EVENTS);
    assert_int_equal(json_at(json, "leaks.live_bytes"), own.live);
    assert_int_equal(json_at(json, "spaces.0.peak_bytes"), own.peak);
    assert_int_equal(json_at(json, "spaces.0.peak_time_ns"), own.peak_time);
    assert_int_equal(json_at(json, "peaks.0.bytes"), own.peak);
    expect_sites(json, &own);
    expect_lists(json, &own);
    json_decref(json);
    books_close(&books);
}

static void test_figures_beyond_what_json_readers_take_are_held_at_their_limit(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    books_event(&books,
                (struct event){.type = EVENT_MEMORY, .time_ns = UINT64_MAX, .total_bytes = UINT64_MAX});
    books.process.duration_ns = UINT64_MAX;
    json_t *json = books_json(&books);
    assert_int_equal(json_at(json, "memory_map.0.total_bytes"), LEDGER_LIVE_MAX);
    assert_int_equal(json_at(json, "process.duration_ns"), INT64_MAX);
    json_decref(json);
    books_close(&books);
}

static void test_every_site_is_on_a_line_of_its_own(void **state)
{
    (void)state;
    struct training training;
    training_open(&training);
    char *text = books_json_text(&training.books);
    int lines = 0;
    for (const char *at = text; (at = strstr(at, "\n{\"id\":")); at++)
        lines++;
    assert_int_equal(lines, 6);
    free(text);
    training_close(&training);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_report_has_every_key_of_the_schema),
        cmocka_unit_test(test_empty_books_make_a_whole_report),
        cmocka_unit_test(test_process_is_described),
        cmocka_unit_test(test_start_time_is_what_gmtime_says),
        cmocka_unit_test(test_sites_that_nothing_happened_at_are_left_out_and_ids_are_indices),
        cmocka_unit_test(test_native_frames_get_all_their_names_and_are_asked_for_once),
        cmocka_unit_test(test_random_events_agree_with_books_of_our_own),
        cmocka_unit_test(test_figures_beyond_what_json_readers_take_are_held_at_their_limit),
        cmocka_unit_test(test_every_site_is_on_a_line_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
