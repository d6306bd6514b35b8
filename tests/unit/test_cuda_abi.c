/*
 * Our CUDA headers against NVIDIA's: the same value, size and offset for every fact both can state. NVIDIA's
 * side is a small library built with the toolkit's headers where there are any.
 */
#include "unit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda/abi.h"
#include "cuda/abi_nvml.h"

struct abi_fact {
    const char *name;
    unsigned long long value;
};

#define VALUE(constant)         {#constant, (unsigned long long)(constant)},
#define AS_VALUE(constant, ...) VALUE(constant)
#define SIZE(type)              {"sizeof(" #type ")", sizeof(type)},
#define OFFSET(type, field)     {"offsetof(" #type ", " #field ")", offsetof(type, field)},
/* clang-format off */
static const struct abi_fact ours[] = {
    CUDA_DRIVER_ERRORS(AS_VALUE) CUDA_RUNTIME_ERRORS(AS_VALUE) CUDA_ARRAY_FORMATS(AS_VALUE)
#include "abi/facts.h"
};
/* clang-format on */

static const struct abi_fact ours_of_nvml[] = {
/* clang-format off */
#include "abi/nvml_facts.h"
    /* clang-format on */
};

/* Every fact of ours, against the list of the same name in the library; skips where that is empty. */
static void compare(const char *list, const struct abi_fact *facts, size_t count, const char *otherwise)
{
    const char *build = getenv("GPUMEMTRACE_BUILD");
    char path[4096];
    snprintf(path, sizeof path, "%s/simgpu/abi_facts.so", build ? build : "build");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    const struct abi_fact *theirs = dlsym(library, list);
    const int *version = dlsym(library, "abi_facts_version");
    assert_non_null(theirs);
    assert_non_null(version);
    if (!theirs->name) {
        print_message("skipped: %s\n", *version ? otherwise : "no cuda.h here");
        skip();
    }
    for (size_t i = 0; i < count; i++) {
        assert_non_null(theirs[i].name);
        assert_string_equal(facts[i].name, theirs[i].name);
        if (facts[i].value != theirs[i].value)
            fail_msg("%s: ours %llu, NVIDIA's %llu", facts[i].name, facts[i].value, theirs[i].value);
    }
    assert_null(theirs[count].name);
    print_message("%zu facts agree with CUDA %d\n", count, *version);
    dlclose(library);
}

static void test_our_headers_agree_with_the_toolkit(void **state)
{
    (void)state;
    compare("abi_facts", ours, sizeof ours / sizeof *ours, "the toolkit is older than CUDA 13.0");
}

static void test_our_nvml_header_agrees_with_the_toolkit(void **state)
{
    (void)state;
    compare("nvml_facts", ours_of_nvml, sizeof ours_of_nvml / sizeof *ours_of_nvml, "no nvml.h here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_our_headers_agree_with_the_toolkit),
                                       cmocka_unit_test(test_our_nvml_header_agrees_with_the_toolkit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
