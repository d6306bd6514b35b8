/* Names from symbol tables, the dynamic linker as the oracle; and files that are not what they should be. */
#include "unit.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "own_modules.h"
#include "symbols/elf_file.h"
#include "symbols/symbols.h"

static struct arena arena;
static struct symbol_source *source;

static int start(void **state)
{
    (void)state;
    source = dynsym_source_create(&arena);
    return source ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    dynsym_source_close(source);
    arena_release(&arena);
    return 0;
}

static const char *name_at(const struct module *module, uint64_t offset)
{
    struct native_name name = {0};
    return source->resolve(source->source, module, offset, &name, 1) == 1 ? name.function : NULL;
}

__attribute__((noinline)) static void *a_static_function(void)
{
    return __builtin_return_address(0);
}

__attribute__((noinline)) void *an_exported_function(void)
{
    void *inside = a_static_function();
    __asm__ volatile("" : "+r"(inside));
    return inside;
}

static void test_functions_of_the_program_have_their_names(void **state)
{
    char path[PATH_MAX];
    (void)state;
    uintptr_t address = (uintptr_t)an_exported_function();
    struct module module = own_module((void *)address, path);
    assert_string_equal(name_at(&module, address - module.bias), "an_exported_function");
    /* Only .symtab has static functions; test programs are not stripped. */
    uintptr_t hidden = (uintptr_t)&a_static_function;
    assert_string_equal(name_at(&module, hidden + 1 - module.bias), "a_static_function");
}

static void test_names_agree_with_the_dynamic_linker(void **state)
{
    static const char *const names[] = {"malloc",   "free", "qsort",          "printf", "getenv",    "strtol",
                                        "fopen",    "poll", "pthread_create", "dlopen", "sigaction", "mmap",
                                        "realpath", "exit"};
    char path[PATH_MAX];
    (void)state;
    void *libc = dlopen("libc.so.6", RTLD_LAZY);
    assert_non_null(libc);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        uintptr_t address = (uintptr_t)dlsym(libc, names[i]);
        struct module *module = malloc(sizeof(*module)); /* each is asked anew */
        *module = own_module((void *)address, path);
        const char *found = name_at(module, address + 1 - module->bias);
        assert_non_null(found);
        /* Several names may belong to one function: the one that was found must be one of them. */
        assert_int_equal((uintptr_t)dlsym(libc, found), address);
        free(module);
    }
}

static void test_functions_without_size_or_type_have_their_names(void **state)
{
    char path[PATH_MAX];
    (void)state;
    struct module module = own_module(sizeless, path);
    assert_string_equal(name_at(&module, (uintptr_t)sizeless + 1 - module.bias), "sizeless");
    assert_string_equal(name_at(&module, (uintptr_t)untyped - module.bias), "sizeless");
    assert_string_equal(name_at(&module, (uintptr_t)untyped + 1 - module.bias), "untyped");
    assert_string_equal(name_at(&module, (uintptr_t)sized_one - module.bias), "untyped");
    assert_string_equal(name_at(&module, (uintptr_t)label_within + 1 - module.bias), "sized_one");
}

static void test_it_is_said_why_a_function_has_no_name(void **state)
{
    char path[PATH_MAX];
    (void)state;
    struct module here = own_module((void *)&an_exported_function, path), rebuilt = here;
    struct module gone = {.path = "/nowhere/libgone.so"};
    rebuilt.build_id_bytes = 20;
    assert_string_equal(source->why(source->source, &here), "no symbol there");
    assert_string_equal(source->why(source->source, &rebuilt), "has changed since the recording");
    assert_string_equal(source->why(source->source, &gone), "cannot be opened");
}

static void test_an_address_between_functions_has_no_name(void **state)
{
    char path[PATH_MAX];
    (void)state;
    struct module module = own_module((void *)&an_exported_function, path);
    assert_null(name_at(&module, 0));
    assert_null(name_at(&module, 1));
    assert_null(name_at(&module, UINT64_MAX));
    /* A return address at a function's first byte belongs to the call that ends the function before it. */
    const char *before = name_at(&module, (uintptr_t)&an_exported_function - module.bias);
    assert_true(!before || strcmp(before, "an_exported_function") != 0);
}

static void copy_file(const char *from, const char *to)
{
    char command[3 * PATH_MAX];
    snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
}

static void test_a_file_that_changed_is_not_read(void **state)
{
    char path[PATH_MAX];
    struct stat status;
    (void)state;
    struct module real = own_module((void *)&an_exported_function, path);
    uint64_t offset = (uintptr_t)&an_exported_function + 1 - real.bias;
    assert_int_equal(stat(path, &status), 0);
    struct module same = real, longer = real, later = real, rebuilt = real;
    same.file_size = longer.file_size = later.file_size = (uint64_t)status.st_size;
    same.file_mtime_ns = longer.file_mtime_ns = later.file_mtime_ns =
        (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec;
    longer.file_size++;
    later.file_mtime_ns++;
    rebuilt.build_id_bytes = 20;
    assert_string_equal(name_at(&same, offset), "an_exported_function");
    assert_null(name_at(&longer, offset));
    assert_null(name_at(&later, offset));
    assert_null(name_at(&rebuilt, offset));
}

static void test_a_copied_file_is_known_by_its_build_id(void **state)
{
    char path[PATH_MAX];
    struct elf_file file;
    (void)state;
    void *libc = dlopen("libc.so.6", RTLD_LAZY);
    uintptr_t address = (uintptr_t)dlsym(libc, "qsort");
    struct module module = own_module((void *)address, path);
    assert_int_equal(elf_open(&file, path), ELF_NONE);
    module.build_id_bytes = (uint32_t)elf_build_id(&file, module.build_id);
    elf_close(&file);
    if (module.build_id_bytes == 0)
        skip();
    module.file_size = 1; /* as if it had been copied and cut since: the build-id says more */
    assert_string_equal(name_at(&module, address + 1 - module.bias), "qsort");
}

static void test_what_is_no_elf_file_has_no_names(void **state)
{
    char folder[] = "/tmp/test_symbols.XXXXXX", path[PATH_MAX];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    struct module modules[] = {
        {.path = "/"},          {.path = "/nowhere/at/all"}, {.path = "[vdso]"}, {.path = "relative"},
        {.path = ""},           {.path = "/dev/zero"},       {.path = path},     {.path = NULL},
        {.path = "/etc/passwd"}};
    for (size_t i = 0; i < sizeof(modules) / sizeof(*modules); i++)
        assert_null(name_at(&modules[i], 4096));
    unlink(path);
    rmdir(folder);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Overwrites one byte to eight of what an ELF reader trusts: the header, the section headers, the symbols. */
static void damage(int fd, const struct elf_file *file, uint64_t *random)
{
    static const uint64_t values[] = {0, 1, 0x7fffffff, UINT64_MAX, UINT64_MAX - 63, UINT64_C(1) << 63};
    Elf64_Shdr table;
    uint64_t where = next_random(random) % 3, start_at = 0, bytes = sizeof(file->header);
    if (where == 1) {
        start_at = file->header.e_shoff;
        bytes = (uint64_t)file->header.e_shnum * sizeof(table);
    } else if (where == 2 && elf_section(file, SHT_DYNSYM, &table)) {
        start_at = table.sh_offset;
        bytes = table.sh_size;
    }
    uint64_t value = values[next_random(random) % 6];
    size_t width = (size_t)1 << next_random(random) % 4;
    uint64_t at = start_at + next_random(random) % bytes / width * width;
    assert_int_equal(pwrite(fd, &value, width, (off_t)at), (ssize_t)width);
}

static void test_damaged_files_are_survived(void **state)
{
    char path[PATH_MAX], copy[] = "/tmp/test_symbols.XXXXXX";
    struct elf_file file;
    uint64_t random = 1;
    (void)state;
    uintptr_t address = (uintptr_t)dlsym(RTLD_DEFAULT, "_cmocka_run_group_tests");
    struct module module = own_module((void *)address, path);
    close(mkstemp(copy));
    for (int round = 0; round < 300; round++) {
        copy_file(path, copy);
        int fd = open(copy, O_RDWR);
        assert_int_equal(elf_open(&file, copy), ELF_NONE);
        for (int n = 0; n < 3; n++)
            damage(fd, &file, &random);
        if (round % 10 == 0)
            assert_int_equal(ftruncate(fd, (off_t)(next_random(&random) % file.size)), 0);
        elf_close(&file);
        close(fd);
        struct module damaged = module;
        damaged.path = copy;
        struct arena own = {0};
        struct symbol_source *one = dynsym_source_create(&own);
        struct native_name name;
        for (uint64_t offset = 1; offset < module.end - module.bias; offset += 512)
            one->resolve(one->source, &damaged, offset, &name, 1);
        dynsym_source_close(one);
        arena_release(&own);
    }
    unlink(copy);
}

static void test_more_modules_than_files_kept_open(void **state)
{
    static struct module modules[32];
    static char path[PATH_MAX];
    (void)state;
    uint64_t offset = 0;
    for (size_t i = 0; i < 32; i++) {
        modules[i] = own_module((void *)&an_exported_function, path);
        offset = (uintptr_t)&an_exported_function + 1 - modules[i].bias;
        assert_string_equal(name_at(&modules[i], offset), "an_exported_function");
    }
    /* Names not asked before need the files again; those closed meanwhile are opened again. */
    offset = (uintptr_t)&a_static_function + 1 - modules[0].bias;
    for (size_t i = 0; i < 32; i++)
        assert_string_equal(name_at(&modules[i], offset), "a_static_function");
}

/* A C++ function with 300 parameters, whose name is over 1,000 bytes long when mangled. */
#define TEN(text)       text text text text text text text text text text
#define LONG_PARAMETERS TEN(TEN("PKc")) TEN(TEN("PKi")) TEN(TEN("PKc"))

void long_name(void) __asm__("_ZN4with4long4nameE" LONG_PARAMETERS);

__attribute__((noinline)) void long_name(void)
{
    __asm__ volatile("");
}

struct small_thread {
    struct module module;
    uint64_t offset;
    const char *name;
};

static void *resolve_in_thread(void *arg)
{
    struct small_thread *thread = arg;
    thread->name = name_at(&thread->module, thread->offset);
    return NULL;
}

static void test_a_small_stack_is_enough_for_long_names(void **state)
{
    char path[PATH_MAX];
    struct small_thread small;
    pthread_attr_t attributes;
    pthread_t thread;
    (void)state;
    small.module = own_module((void *)&long_name, path);
    small.offset = (uintptr_t)&long_name + 1 - small.module.bias;
    const char *sanitizer = getenv("SANITIZE");
    if (sanitizer && strcmp(sanitizer, "address") == 0)
        skip(); /* the sanitizer cannot follow a switch of stacks, so none is made */
    pthread_attr_init(&attributes);
    /* 70 bytes of stack for each byte of such a name would not fit. */
    assert_int_equal(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
    assert_int_equal(pthread_create(&thread, &attributes, resolve_in_thread, &small), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    assert_non_null(small.name);
    if (!small.name)
        return;
    assert_memory_equal(small.name, "with::long::name(char const*, char const*, ", 43);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_functions_of_the_program_have_their_names, start, stop),
        cmocka_unit_test_setup_teardown(test_names_agree_with_the_dynamic_linker, start, stop),
        cmocka_unit_test_setup_teardown(test_functions_without_size_or_type_have_their_names, start, stop),
        cmocka_unit_test_setup_teardown(test_it_is_said_why_a_function_has_no_name, start, stop),
        cmocka_unit_test_setup_teardown(test_an_address_between_functions_has_no_name, start, stop),
        cmocka_unit_test_setup_teardown(test_a_file_that_changed_is_not_read, start, stop),
        cmocka_unit_test_setup_teardown(test_a_copied_file_is_known_by_its_build_id, start, stop),
        cmocka_unit_test_setup_teardown(test_what_is_no_elf_file_has_no_names, start, stop),
        cmocka_unit_test_setup_teardown(test_more_modules_than_files_kept_open, start, stop),
        cmocka_unit_test_setup_teardown(test_a_small_stack_is_enough_for_long_names, start, stop),
        cmocka_unit_test(test_damaged_files_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
