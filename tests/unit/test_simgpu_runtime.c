/* The simulated runtime, shared and static, and the two flavours of the driver under an interposer. */
#include "simgpu/child.h"

/* What a program prints, its libraries found in a folder of the simulated GPU; "failed" when it does not end
 * well. */
static const char *output_of(const char *settings, const char *folder, const char *program)
{
    static char text[4096];
    char command[16384], libraries[4096], path[4096];
    snprintf(libraries, sizeof libraries, "%s", simgpu_path(folder));
    snprintf(path, sizeof path, "%s", simgpu_path(program));
    snprintf(command, sizeof command, "%s LD_LIBRARY_PATH=%s:%s %s", settings, libraries, simgpu_path(""),
             path);
    FILE *pipe = popen(command, "r");
    size_t length = pipe ? fread(text, 1, sizeof text - 1, pipe) : 0;
    text[length] = '\0';
    if (!pipe || pclose(pipe))
        print_message("%s: %s", command, text);
    return text;
}

static void test_every_runtime_works_alike(void **state)
{
    (void)state;
    assert_string_equal(output_of("SIMGPU_DEVICES=2", "", "tests/runtime_12 12"), "done\n");
    assert_string_equal(output_of("SIMGPU_DEVICES=2", "", "tests/runtime_13 13"), "done\n");
    assert_string_equal(output_of("SIMGPU_DEVICES=2", "", "tests/runtime_static 13"), "done\n");
    assert_string_equal(output_of("SIMGPU_DEVICES=2", "got", "tests/runtime_13 13"), "done\n");
}

/* NVIDIA's libraries version their names with the library's own: programs ask for them so. */
static void test_names_carry_the_version_of_the_library(void **state)
{
    (void)state;
    const char *const files[] = {"libcudart.so.12", "libcudart.so.13"};
    for (int i = 0; i < 2; i++) {
        void *library = dlopen(simgpu_path(files[i]), RTLD_NOW | RTLD_LOCAL);
        assert_non_null(library);
        assert_non_null(dlvsym(library, "cudaMalloc", files[i]));
        assert_non_null(dlvsym(library, "__cudaRegisterFatBinary", files[i]));
        assert_null(dlvsym(library, "cudaMalloc", files[1 - i]));
        assert_null(dlsym(library, "runtime_ready"));
    }
}

static void test_the_static_runtime_stays_inside_the_program(void **state)
{
    (void)state;
    char command[8192];
    snprintf(command, sizeof command, "nm -D %s | grep -c cuda", simgpu_path("tests/runtime_static"));
    FILE *pipe = popen(command, "r");
    int count = -1;
    if (!pipe) {
        fail_msg("no shell");
        return;
    }
    assert_int_equal(fscanf(pipe, "%d", &count), 1);
    pclose(pipe);
    assert_int_equal(count, 0);
}

/* NVIDIA's driver calls its own functions directly; the other flavour goes through the dynamic linker. */
static void test_an_interposer_is_met_in_one_flavour_only(void **state)
{
    (void)state;
    char preload[4096 + sizeof "LD_PRELOAD="];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", simgpu_path("tests/interposer.so"));
    assert_string_equal(output_of(preload, "", "tests/lookup"), "interposed 0 0\n");
    assert_string_equal(output_of(preload, "got", "tests/lookup"), "interposed 1 1\n");
}

int main(void)
{
    const char *sanitizer = getenv("SANITIZE");
    if (sanitizer && *sanitizer) { /* its runtime must come first, before any preload */
        print_message("skipped: the programs of this test run without a sanitizer\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_runtime_works_alike),
        cmocka_unit_test(test_names_carry_the_version_of_the_library),
        cmocka_unit_test(test_the_static_runtime_stays_inside_the_program),
        cmocka_unit_test(test_an_interposer_is_met_in_one_flavour_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
