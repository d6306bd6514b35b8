/* Functions, lines and inlined calls from this program's own debug information; __LINE__ is the oracle. */
#include "unit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "own_modules.h"
#include "symbols/elf_file.h"
#include "symbols/source_path.h"
#include "symbols/symbols.h"

static struct symbol_source *source;

static int start(void **state)
{
    (void)state;
    source = dwarf_source_create(NULL);
    return source ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    dwarf_source_destroy(source);
    return 0;
}

__attribute__((noinline)) static uintptr_t here(void)
{
    uintptr_t address = (uintptr_t)__builtin_return_address(0);
    __asm__ volatile("" : "+r"(address));
    return address;
}

struct called {
    uintptr_t address;
    int line;
};

/* Each on a line of its own, which __LINE__ tells. */
#define CALL_HERE(called)                                                                                    \
    (called)->address = here();                                                                              \
    (called)->line = __LINE__

__attribute__((noinline)) static void plain(struct called *called)
{
    CALL_HERE(called);
    __asm__ volatile("");
}

__attribute__((always_inline)) static inline void inner(struct called *called)
{
    CALL_HERE(called);
}

static int outer_line, whole_line;

__attribute__((always_inline)) static inline void outer(struct called *called)
{
    inner(called), outer_line = __LINE__;
}

__attribute__((noinline)) static void whole(struct called *called)
{
    outer(called), whole_line = __LINE__;
    __asm__ volatile("");
}

static size_t resolve(const struct module *module, uintptr_t address, struct native_name *names, size_t max)
{
    return source->resolve(source->source, module, address - module->bias, names, max);
}

static void expect(const struct native_name *name, const char *function, int line)
{
    const char *file = name->file ? strrchr(name->file, '/') : NULL;
    assert_non_null(name->function);
    assert_string_equal(name->function, function);
    assert_non_null(name->file);
    assert_string_equal(file ? file + 1 : name->file, "test_symbols_dwarf.c");
    assert_int_equal(name->line, line);
}

static void test_a_call_has_its_function_file_and_line(void **state)
{
    char path[PATH_MAX];
    struct native_name names[8];
    struct called called;
    (void)state;
    plain(&called);
    struct module module = own_module((void *)called.address, path);
    assert_int_equal(resolve(&module, called.address, names, 8), 1);
    expect(&names[0], "plain", called.line);
    assert_null(dwarf_source_problem(source, &module));
}

static void test_inlined_calls_are_told_innermost_first(void **state)
{
    char path[PATH_MAX];
    struct native_name names[8];
    struct called called;
    (void)state;
    whole(&called);
    struct module module = own_module((void *)called.address, path);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(resolve(&module, called.address, names, 8), 3);
        expect(&names[0], "inner", called.line);
        expect(&names[1], "outer", outer_line);
        expect(&names[2], "whole", whole_line);
    }
    /* With too little room, the function itself is told rather than what it inlined last. */
    assert_int_equal(resolve(&module, called.address, names, 2), 2);
    expect(&names[0], "inner", called.line);
    expect(&names[1], "whole", whole_line);
    assert_int_equal(resolve(&module, called.address, names, 0), 0);
}

static void test_functions_without_debug_information_have_their_symbol(void **state)
{
    char path[PATH_MAX];
    struct native_name names[8] = {0};
    (void)state;
    uintptr_t address = (uintptr_t)&_cmocka_run_group_tests;
    struct module module = own_module((void *)address, path);
    assert_in_range(resolve(&module, address + 1, names, 8), 1, 8);
    assert_string_equal(names[0].function, "_cmocka_run_group_tests");
}

static void test_functions_without_size_or_type_have_their_symbol(void **state)
{
    char path[PATH_MAX];
    struct native_name names[8] = {0};
    static const struct {
        const char *address, *name;
    } wanted[] = {
        {sizeless, "sizeless"}, {untyped, "untyped"}, {sized_one, "sized_one"}, {label_within, "sized_one"}};
    (void)state;
    struct module module = own_module(sizeless, path);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        assert_int_equal(resolve(&module, (uintptr_t)wanted[i].address + 1, names, 8), 1);
        assert_string_equal(names[0].function, wanted[i].name);
    }
}

/* Many modules that are one file: it is read once, and each address in it is looked up once. */
static void test_modules_of_one_file_share_its_names(void **state)
{
    char path[PATH_MAX];
    struct native_name names[2][8];
    struct called called;
    (void)state;
    plain(&called);
    struct module module = own_module((void *)called.address, path), twice[2] = {module, module};
    twice[1].bias += 0x1000000; /* as after dlclose() and dlopen() */
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            source->resolve(source->source, &twice[i], called.address - module.bias, names[i], 8), 1);
    assert_ptr_equal(names[0][0].function, names[1][0].function);
}

static void test_a_rebuilt_file_is_noticed_and_not_misread(void **state)
{
    char path[PATH_MAX], wanted[PATH_MAX + 80];
    struct native_name names[8];
    struct called called;
    (void)state;
    plain(&called);
    struct module module = own_module((void *)called.address, path);
    module.build_id_bytes = 20;
    memset(module.build_id, 0x5a, 20);
    assert_int_equal(resolve(&module, called.address, names, 8), 0);
    snprintf(wanted, sizeof(wanted),
             "%s has changed since the recording: its functions are shown as offsets.", path);
    assert_string_equal(dwarf_source_problem(source, &module), wanted);
}

static void test_a_missing_file_is_noticed(void **state)
{
    struct native_name names[8];
    struct module module = {.path = "/nowhere/libgone.so", .start = 0x10000, .end = 0x20000, .bias = 0x10000};
    (void)state;
    assert_int_equal(resolve(&module, 0x10000 + 64, names, 8), 0);
    assert_string_equal(dwarf_source_problem(source, &module),
                        "/nowhere/libgone.so cannot be opened: its functions are shown as offsets.");
}

static void test_a_debug_file_is_found_by_build_id_alone(void **state)
{
    char path[PATH_MAX], debug_file[PATH_MAX];
    struct native_name names[8] = {0};
    struct elf_file file;
    (void)state;
    struct module module = own_module((void *)&qsort, path);
    assert_int_equal(elf_open(&file, path), ELF_NONE);
    module.build_id_bytes = (uint32_t)elf_build_id(&file, module.build_id);
    elf_close(&file);
    int used = snprintf(debug_file, sizeof(debug_file), "/usr/lib/debug/.build-id/%02x/", module.build_id[0]);
    for (uint32_t i = 1; i < module.build_id_bytes; i++)
        used += snprintf(debug_file + used, sizeof(debug_file) - (size_t)used, "%02x", module.build_id[i]);
    snprintf(debug_file + used, sizeof(debug_file) - (size_t)used, ".debug");
    if (access(debug_file, R_OK) != 0)
        skip();                         /* the C library's debug package is not installed */
    module.path = "/nowhere/libc.so.6"; /* as when the recording comes from another machine */
    assert_in_range(resolve(&module, (uintptr_t)&qsort + 1, names, 8), 1, 8);
    assert_non_null(names[0].file);
    assert_true(names[0].line > 0);
    assert_null(dwarf_source_problem(source, &module));
}

static void test_source_paths_are_cleaned(void **state)
{
    static const char *const pairs[][2] = {
        {"/a/./b//c/../d.c", "/a/b/d.c"}, {"./x.c", "x.c"}, {"../../y.c", "../../y.c"},
        {"a/../../z.c", "../z.c"},        {"/", "/"},       {"/../r.c", "/../r.c"},
        {"plain.c", "plain.c"},           {"", ""}};
    char text[SOURCE_PATH_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++)
        assert_string_equal(source_path(pairs[i][0], text), pairs[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_call_has_its_function_file_and_line, start, stop),
        cmocka_unit_test_setup_teardown(test_inlined_calls_are_told_innermost_first, start, stop),
        cmocka_unit_test_setup_teardown(test_functions_without_debug_information_have_their_symbol, start,
                                        stop),
        cmocka_unit_test_setup_teardown(test_functions_without_size_or_type_have_their_symbol, start, stop),
        cmocka_unit_test_setup_teardown(test_modules_of_one_file_share_its_names, start, stop),
        cmocka_unit_test_setup_teardown(test_a_rebuilt_file_is_noticed_and_not_misread, start, stop),
        cmocka_unit_test_setup_teardown(test_a_missing_file_is_noticed, start, stop),
        cmocka_unit_test_setup_teardown(test_a_debug_file_is_found_by_build_id_alone, start, stop),
        cmocka_unit_test(test_source_paths_are_cleaned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
