/* Which file an address is in (capture/modules.h). What a file is comes from libelf and stat(). */
#include "unit.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/modules.h"
#include "scratch.h"

static struct loaded_module found;

static void expect_file(const struct module *module, const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(module->file_size, status.st_size);
    assert_int_equal(module->file_mtime_ns,
                     (uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec);
    int fd = open(path, O_RDONLY);
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    const void *id;
    ssize_t bytes = dwelf_elf_gnu_build_id(elf, &id);
    assert_int_equal(module->build_id_bytes, bytes > 0 ? bytes : 0);
    if (bytes > 0)
        assert_memory_equal(module->build_id, id, (size_t)bytes);
    elf_end(elf);
    close(fd);
}

static void test_program_is_named_by_its_file(void **state)
{
    (void)state;
    char exe[4096] = "";
    assert_true(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    assert_true(modules_find((uintptr_t)&test_program_is_named_by_its_file, &found));
    assert_string_equal(found.module.path, exe);
    assert_ptr_equal(found.module.path, found.path);
    assert_true(found.module.start <= (uintptr_t)&expect_file && (uintptr_t)&expect_file < found.module.end);
    expect_file(&found.module, exe);
}

static void test_library_is_where_the_linker_put_it(void **state)
{
    (void)state;
    struct link_map *map;
    Dl_info info;
    void *address = dlsym(RTLD_DEFAULT, "qsort");
    assert_true(dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) != 0);
    for (int twice = 0; twice < 2; twice++) {
        assert_true(modules_find((uintptr_t)address, &found));
        assert_string_equal(found.module.path, map->l_name);
        assert_int_equal(found.module.bias, map->l_addr);
        expect_file(&found.module, map->l_name);
    }
}

static void test_kernels_page_has_a_name(void **state)
{
    (void)state;
    uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    if (vdso == 0)
        skip();
    assert_true(modules_find(vdso + 64, &found));
    assert_string_equal(found.module.path, "[vdso]");
    assert_int_equal(found.module.file_size, 0);
}

static void test_address_outside_of_files_has_no_module(void **state)
{
    (void)state;
    void *heap = malloc(100);
    int local;
    assert_false(modules_find((uintptr_t)heap, &found));
    assert_false(modules_find((uintptr_t)&local, &found));
    assert_false(modules_find(0, &found));
    assert_false(modules_find(UINTPTR_MAX, &found));
    free(heap);
}

/* A library with one function, at FOLDER/name; false without a compiler. */
static bool make_library(const char *name, const char *body)
{
    char command[1024];
    const char *compiler = getenv("CC") != NULL ? getenv("CC") : "cc";
    scratch_write(scratch_path("made.c"), body, strlen(body));
    snprintf(command, sizeof command, "%s -shared -fPIC -Wl,--build-id -o %s %s", compiler,
             scratch_path(name), scratch_path("made.c"));
    return system(command) == 0;
}

static void test_relative_name_becomes_absolute(void **state)
{
    (void)state;
    assert_true(make_library("relative.so", "int made(void) { return 1; }"));
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(scratch_folder()), 0);
    void *library = dlopen("./relative.so", RTLD_NOW);
    assert_int_equal(chdir(before), 0);
    assert_non_null(library);
    assert_true(modules_find((uintptr_t)dlsym(library, "made"), &found));
    char real[4096];
    assert_non_null(realpath(scratch_path("relative.so"), real));
    assert_string_equal(found.module.path, real);
    expect_file(&found.module, real);
    dlclose(library);
}

static void test_reloaded_file_is_the_new_one(void **state)
{
    (void)state;
    for (int turn = 0; turn < 6; turn++) {
        char body[64];
        snprintf(body, sizeof body, "int made(void) { return %d; }", turn % 2);
        unlink(scratch_path("reloaded.so"));
        assert_true(make_library("reloaded.so", body));
        void *library = dlopen(scratch_path("reloaded.so"), RTLD_NOW);
        assert_non_null(library);
        uintptr_t made = (uintptr_t)dlsym(library, "made");
        assert_true(modules_find(made, &found));
        assert_string_equal(found.module.path, scratch_path("reloaded.so"));
        expect_file(&found.module, scratch_path("reloaded.so"));
        dlclose(library);
        assert_false(modules_find(made, &found));
    }
}

static void test_errno_is_kept(void **state)
{
    (void)state;
    errno = 12345;
    modules_find((uintptr_t)&qsort, &found);
    modules_find((uintptr_t)&found, &found);
    assert_int_equal(errno, 12345);
}

static void *find_many(void *arg)
{
    struct loaded_module mine;
    uintptr_t addresses[] = {(uintptr_t)&find_many, (uintptr_t)dlsym(RTLD_DEFAULT, "qsort")};
    intptr_t wrong = 0;
    for (int i = 0; i < 5000; i++)
        wrong += !modules_find(addresses[i % 2], &mine) || addresses[i % 2] < mine.module.start ||
                 addresses[i % 2] >= mine.module.end;
    return (void *)(wrong + (intptr_t)arg);
}

static void test_threads_look_up_together(void **state)
{
    (void)state;
    pthread_t threads[4];
    void *library = make_library("other.so", "int made(void) { return 1; }") ? (void *)1 : NULL;
    assert_non_null(library);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_many, NULL), 0);
    for (int i = 0; i < 200; i++)
        dlclose(dlopen(scratch_path("other.so"), RTLD_NOW));
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program_is_named_by_its_file),
        cmocka_unit_test(test_library_is_where_the_linker_put_it),
        cmocka_unit_test(test_kernels_page_has_a_name),
        cmocka_unit_test(test_address_outside_of_files_has_no_module),
        cmocka_unit_test(test_relative_name_becomes_absolute),
        cmocka_unit_test(test_reloaded_file_is_the_new_one),
        cmocka_unit_test(test_errno_is_kept),
        cmocka_unit_test(test_threads_look_up_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
