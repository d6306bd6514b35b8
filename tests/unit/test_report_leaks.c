/* What is still allocated: in which order it is listed, and what suppressions leave out. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_books.h"

static void test_patterns_match_as_leaksanitizers_do(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *name;
        bool matches;
    } rows[] = {
        /* anywhere in the name, unless it is held to an end */
        {"pool", "Arena::pool_new", true},
        {"pool", "po_ol", false},
        {"^pool", "pool_new", true},
        {"^pool", "a_pool", false},
        {"pool$", "a_pool", true},
        {"pool$", "pool_new", false},
        {"^pool$", "pool", true},
        {"^pool$", "pool2", false},
        /* a star is any text, also none */
        {"a*c", "xabcx", true},
        {"a*c", "xacx", true},
        {"a*c", "cba", false},
        {"^a*c$", "abcbc", true},
        {"^a*c$", "abcb", false},
        {"^*c$", "ac", true},
        {"a*b*c", "a-c-b-c", true},
        {"a*b*c", "a-c-b", false},
        {"*", "", true},
        {"^a*$", "a", true},
        /* what is tried again begins behind the first match */
        {"aab$", "aaab", true},
        {"^x*aab$", "xaaab", true},
        /* signs that mean nothing elsewhere */
        {"a.c", "abc", false},
        {"operator^", "operator^=", true},
        {"$x", "a$x", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (suppression_matches(rows[i].pattern, rows[i].name) != rows[i].matches)
            fail_msg("%s and %s", rows[i].pattern, rows[i].name);
}

struct complaints {
    int count;
    char last[256];
};

static void complain(void *arg, const char *sentence)
{
    struct complaints *complaints = arg;
    complaints->count++;
    snprintf(complaints->last, sizeof complaints->last, "%s", sentence);
}

static void parse(struct suppressions *suppressions, struct arena *arena, const char *text,
                  struct complaints *complaints)
{
    char *copy = strdup(text);
    assert_true(
        suppressions_parse(suppressions, "/my.supp", copy, strlen(copy), arena, complain, complaints));
    free(copy);
}

static void test_a_file_is_read_line_by_line_and_a_bad_line_is_named(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct suppressions suppressions;
    struct complaints complaints = {0};
    parse(&suppressions, &arena,
          "# what we keep\n\nleak:Server.load\r\n  leak: lambda()#1   # held  by  design  \nleak:last",
          &complaints);
    assert_int_equal(complaints.count, 0);
    assert_int_equal(suppressions.count, 3);
    assert_string_equal(suppressions.list[0].pattern, "Server.load");
    assert_null(suppressions.list[0].reason);
    assert_int_equal(suppressions.list[0].line, 3);
    assert_string_equal(suppressions.list[1].pattern, "lambda()#1");
    assert_string_equal(suppressions.list[1].reason, "held  by  design");
    assert_int_equal(suppressions.list[1].line, 4);
    assert_string_equal(suppressions.list[2].pattern, "last");
    assert_int_equal(suppressions.list[2].line, 5);

    parse(&suppressions, &arena, "leak:good\nrace:other\n", &complaints);
    assert_int_equal(complaints.count, 1);
    assert_string_equal(complaints.last, "/my.supp:2 is no suppression: not of the form leak:PATTERN");
    assert_int_equal(suppressions.count, 1);
    parse(&suppressions, &arena, "leak:\nleak:  # why\n", &complaints);
    assert_int_equal(complaints.count, 3);
    assert_int_equal(suppressions.count, 0);
    assert_false(suppressions_read(&suppressions, "/nowhere/my.supp", &arena, complain, &complaints));
    assert_string_equal(complaints.last,
                        "cannot read suppressions from /nowhere/my.supp: No such file or directory");
    arena_release(&arena);
}

/* Three sites: in Python a cache by design, in C++ a workspace, and one that is neither. */
struct keepers {
    struct books books;
    uint32_t cache, workspace, other;
};

static size_t name_workspace(void *source, const struct module *module, uint64_t offset,
                             struct native_name *names, size_t max)
{
    (void)source, (void)module, (void)offset, (void)max;
    names[0] = (struct native_name){"Workspace::reserve(unsigned long)", "/home/me/ext/workspace.cpp", 12};
    return 1;
}

static void keepers_open(struct keepers *keepers)
{
    static const struct symbol_source symbols = {.resolve = name_workspace};
    struct books *books = &keepers->books;
    books_open(books);
    books->input.symbols = &symbols;
    uint32_t cache = books_python(books, "Cache.fill", "/home/me/cache.py", 3);
    uint32_t native = books_native(books, books_module(books, "/home/me/ext/libext.so"), 0x10);
    uint32_t other = books_python(books, "main", "/home/me/main.py", 9);
    keepers->cache = books_plain(books, (uint32_t[]){cache, other}, 2);
    keepers->workspace = books_plain(books, (uint32_t[]){native, other}, 2);
    keepers->other = books_plain(books, &other, 1);
    books_alloc(books, keepers->cache, 1 * GIB, 10 * MIB, MS);
    books_alloc(books, keepers->cache, 2 * GIB, 11 * MIB, MS);
    books_alloc(books, keepers->workspace, 3 * GIB, 20 * MIB, MS);
    books_alloc(books, keepers->other, 4 * GIB, 40 * MIB, MS);
}

static void test_suppressed_memory_is_counted_apart_with_its_reason(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t cache, workspace; /* suppressed bytes of each */
    } rows[] = {
        {"leak:^Cache.fill$ # by design", 21 * MIB, 0},
        {"leak:workspace.cpp", 0, 20 * MIB},
        {"leak:^*/libext.so$", 0, 20 * MIB},
        {"leak:Workspace::*(\nleak:cache.py # by design", 21 * MIB, 20 * MIB},
        /* the first that fits counts */
        {"leak:ext\nleak:libext", 0, 20 * MIB},
        {"leak:fill(\nleak:^ache", 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct keepers keepers;
        struct suppressions suppressions;
        struct complaints complaints = {0};
        keepers_open(&keepers);
        parse(&suppressions, &keepers.books.arena, rows[i].text, &complaints);
        keepers.books.input.suppressions = &suppressions;
        json_t *json = books_json(&keepers.books);
        uint64_t hidden = rows[i].cache + rows[i].workspace;
        assert_int_equal(json_at(json, "leaks.live_bytes"), 81 * MIB - hidden);
        assert_int_equal(json_at(json, "leaks.suppressed_bytes"), hidden);
        assert_int_equal(json_array_size(json_node(json, "leaks.suppressed")),
                         (rows[i].cache > 0) + (rows[i].workspace > 0));
        assert_int_equal(json_is_true(json_node(json, "sites.0.suppressed")), rows[i].cache > 0);
        assert_int_equal(json_is_true(json_node(json, "sites.1.suppressed")), rows[i].workspace > 0);
        assert_true(json_is_false(json_node(json, "sites.2.suppressed")));
        assert_int_equal(json_array_size(json_node(json, "leaks.sites")),
                         3 - (rows[i].cache > 0) - (rows[i].workspace > 0));
        /* All of it is in every other figure. */
        assert_int_equal(json_at(json, "spaces.0.live_bytes"), 81 * MIB);
        json_decref(json);
        char *text = books_text(&keepers.books, false);
        if (rows[i].cache)
            assert_has(text, "2 blocks, leak:");
        if (i == 0)
            assert_has(text, "    21.0 MiB   100.0% 2 blocks, leak:^Cache.fill$ at my.supp:1: by design\n");
        free(text);
        books_close(&keepers.books);
    }
}

static void test_workspaces_of_cudas_libraries_are_suppressed_unless_they_add_up(void **state)
{
    (void)state;
    static const struct {
        const char *module;
        int blocks;
        bool suppressed;
    } rows[] = {
        {"/opt/nvidia/cublas/lib/libcublas.so.12", 2, true},
        {"/opt/nvidia/cublas/lib/libcublasLt.so.12", 2, true},
        {"/opt/nvidia/nccl/lib/libnccl.so.2", 2, true},
        {"/opt/nvidia/cudnn/lib/libcudnn_ops.so.9", 2, true},
        /* a handle in every step */
        {"/opt/nvidia/cublas/lib/libcublas.so.12", 60, false},
        /* a plan is the program's to destroy */
        {"/opt/nvidia/cufft/lib/libcufft.so.11", 2, false},
        {"/home/me/libcudnn-tests/libmine.so", 2, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct books books;
        books_open(&books);
        uint32_t frames[] = {books_native(&books, books_module(&books, rows[i].module), 0x40),
                             books_python(&books, "step", "/home/me/train.py", 3)};
        uint32_t site = books_plain(&books, frames, 2);
        for (int k = 0; k < rows[i].blocks; k++)
            books_alloc(&books, site, (uint64_t)(k + 1) * GIB, MIB, MS + (uint64_t)k * 150 * MS);
        json_t *json = books_json(&books);
        assert_int_equal(json_is_true(json_node(json, "sites.0.suppressed")), rows[i].suppressed);
        assert_int_equal(json_at(json, "leaks.live_blocks"), rows[i].suppressed ? 0 : rows[i].blocks);
        json_decref(json);
        char *text = books_text(&books, false);
        assert_has(text, rows[i].suppressed ? "Nothing else was still allocated at exit" : "Still allocated");
        free(text);
        books_close(&books);
    }
}

/* A run of ten seconds. */
static void test_lines_come_in_the_order_of_how_much_they_are_worth_a_look(void **state)
{
    (void)state;
    static const struct {
        const char *reason;
        uint64_t size, from_ms, every_ms;
        int blocks, freed;
        uint64_t last_ms; /* of the last block; 0: as the others */
    } lines[] = {
        {"grew", KIB, 100, 200, 48, 0, 0},      {"adds_up", 2 * KIB, 100, 10, 9, 0, 8000},
        {"late", 2 * KIB, 6000, 100, 10, 0, 0}, {"many", 900 * MIB, 100, 1, 8, 0, 0},
        {"many", MIB, 6000, 10, 20, 1, 0},      {"rest", 90 * GIB, 100, 1, 1, 0, 0},
        {"rest", GIB, 100, 1, 7, 0, 0},         {"rest", 100 * MIB, 7000, 100, 7, 1, 0},
    };
    enum { LINES = sizeof lines / sizeof lines[0] };
    struct books books;
    uint32_t sites[LINES];
    books_open(&books);
    for (int i = LINES - 1; i >= 0; i--) {
        uint32_t frame = books_python(&books, "f", "/home/me/a.py", i + 1);
        sites[i] = books_plain(&books, &frame, 1);
        for (int k = 0; k < lines[i].blocks + lines[i].freed; k++)
            books_alloc(&books, sites[i], (uint64_t)(i * 100 + k + 1) << 36, lines[i].size,
                        (lines[i].last_ms && k + 1 == lines[i].blocks
                             ? lines[i].last_ms
                             : lines[i].from_ms + (uint64_t)k * lines[i].every_ms) *
                            MS);
        if (lines[i].freed)
            books_free(&books, sites[i], (uint64_t)(i * 100 + 1) << 36, 9 * SEC);
    }
    json_t *json = books_json(&books);
    assert_int_equal(json_array_size(json_node(json, "leaks.lines")), LINES);
    for (int i = 0; i < LINES; i++) {
        char path[64];
        snprintf(path, sizeof path, "leaks.lines.%d.reason", i);
        assert_string_equal(json_text_at(json, path), lines[i].reason);
        snprintf(path, sizeof path, "leaks.lines.%d.bytes", i);
        assert_int_equal(json_at(json, path), lines[i].size * (uint64_t)lines[i].blocks);
    }
    json_decref(json);
    books_close(&books);
}

static void test_what_a_framework_handed_out_is_listed_beside_its_cache(void **state)
{
    (void)state;
    struct books books;
    books_open(&books);
    uint32_t frame = books_python(&books, "f", "/home/me/a.py", 1);
    uint32_t other = books_python(&books, "g", "/home/me/a.py", 2);
    uint32_t cache = books_plain(&books, &frame, 1);
    uint32_t tensor = books_site(&books, "pytorch", FAMILY_TORCH, SPACE_DEVICE, 0, &other, 1);
    books_alloc(&books, cache, GIB, 20 * MIB, MS);
    books_alloc(&books, tensor, GIB, 3 * MIB, MS);
    books_alloc(&books, tensor, GIB + 3 * MIB, 4 * MIB, MS);
    json_t *json = books_json(&books);
    assert_int_equal(json_at(json, "leaks.live_bytes"), 20 * MIB);
    assert_int_equal(json_at(json, "leaks.framework_bytes"), 7 * MIB);
    assert_int_equal(json_at(json, "leaks.framework_blocks"), 2);
    assert_int_equal(json_at(json, "leaks.framework_lines.0.bytes"), 7 * MIB);
    json_decref(json);
    char *text = books_text(&books, false);
    assert_has(text, "Of it, handed out by frameworks (tensors): 7.0 MiB in 2 blocks, by line of code");
    assert_has(text, "7.0 MiB    100.0% a.py:2 in g");
    free(text);
    books_close(&books);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns_match_as_leaksanitizers_do),
        cmocka_unit_test(test_a_file_is_read_line_by_line_and_a_bad_line_is_named),
        cmocka_unit_test(test_suppressed_memory_is_counted_apart_with_its_reason),
        cmocka_unit_test(test_workspaces_of_cudas_libraries_are_suppressed_unless_they_add_up),
        cmocka_unit_test(test_lines_come_in_the_order_of_how_much_they_are_worth_a_look),
        cmocka_unit_test(test_what_a_framework_handed_out_is_listed_beside_its_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
