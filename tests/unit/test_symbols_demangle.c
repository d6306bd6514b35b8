/* Mangled names become readable; right answers are those of the Itanium C++ ABI and of Rust's RFC 2603. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/demangle.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 0
#elif defined(__has_feature)
#define OWN_MALLOC (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define OWN_MALLOC 1
#endif

static size_t allocations;

#if OWN_MALLOC
void *__libc_malloc(size_t bytes);

void *malloc(size_t bytes)
{
    allocations++;
    return __libc_malloc(bytes);
}
#endif

static void expect(const char *name, const char *readable)
{
    char text[512];
    assert_int_equal(demangle(name, text, sizeof(text)), strlen(readable));
    assert_string_equal(text, readable);
}

static void test_cpp_names_have_scope_and_parameters_but_no_return_type(void **state)
{
    (void)state;
    expect("_ZN3foo3barEv", "foo::bar()");
    expect("_ZN5ArenaC2Em", "Arena::Arena(unsigned long)");
    expect("_Z1fIiEvT_", "f<int>(int)");
    expect("_ZN12_GLOBAL__N_14growEPc", "(anonymous namespace)::grow(char*)");
}

static void test_rust_names_lose_their_hash(void **state)
{
    (void)state;
    expect("_RNvC6_123foo3bar", "123foo::bar");
    expect("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
}

static void test_marks_of_clones_are_left_out(void **state)
{
    static const char *const pairs[][2] = {{"_ZN3foo3barEv.constprop.0", "foo::bar()"},
                                           {"_ZN3foo3barEv.part.0.cold", "foo::bar()"},
                                           {"grow.isra.0", "grow"},
                                           {"grow.cold", "grow"},
                                           {"foo::bar() [clone .lto_priv.0]", "foo::bar()"},
                                           {"grow", "grow"},
                                           {".cold", ".cold"},
                                           {"libfoo.partial", "libfoo.partial"}};
    char text[512];
    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        assert_int_equal(readable_name(pairs[i][0], text, sizeof(text)), strlen(pairs[i][1]));
        assert_string_equal(text, pairs[i][1]);
    }
}

static void test_what_is_not_mangled_stays_alone(void **state)
{
    (void)state;
    expect("cudaMalloc", "");
    expect("_Zzz", "");
    expect("_ZN3foo", "");
    expect("", "");
}

static void test_a_long_name_is_cut_to_the_buffer(void **state)
{
    char text[8];
    (void)state;
    assert_int_equal(demangle("_ZN3foo3barEv", text, sizeof(text)), 7);
    assert_string_equal(text, "foo::ba");
    assert_int_equal(demangle("_ZN3foo3barEv", text, 0), 0);
    assert_int_equal(demangle("_ZN3foo3barEv", text, 1), 0);
}

static void test_endless_names_are_refused(void **state)
{
    static char name[DEMANGLE_INPUT_MAX + 64];
    char text[256];
    (void)state;
    memset(name, 'P', sizeof(name) - 1);
    memcpy(name, "_Z1f", 4);
    assert_int_equal(demangle(name, text, sizeof(text)), 0);
    name[DEMANGLE_INPUT_MAX - 1] = 'i';
    name[DEMANGLE_INPUT_MAX] = 0;
    demangle(name, text,
             sizeof(text)); /* pointers to pointers, 8,000 deep: any answer, but no end of the stack */
}

static void test_nothing_is_allocated(void **state)
{
    char text[512];
    (void)state;
    size_t before = allocations;
    demangle("_ZNSt6vectorIN2at6TensorESaIS1_EE17_M_realloc_insertIJRKS1_EEEvN9__gnu_cxx17__normal_"
             "iteratorIPS1_S3_EEDpOT_",
             text, sizeof(text));
    demangle("_RNvMs_NtCs1234_7mycrate3fooNtB4_3Bar3baz", text, sizeof(text));
    assert_int_equal(allocations, before);
    assert_true(!OWN_MALLOC || allocations > 0); /* the harness allocates, so it was counted at all */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpp_names_have_scope_and_parameters_but_no_return_type),
        cmocka_unit_test(test_rust_names_lose_their_hash),
        cmocka_unit_test(test_marks_of_clones_are_left_out),
        cmocka_unit_test(test_what_is_not_mangled_stays_alone),
        cmocka_unit_test(test_a_long_name_is_cut_to_the_buffer),
        cmocka_unit_test(test_endless_names_are_refused),
        cmocka_unit_test(test_nothing_is_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
