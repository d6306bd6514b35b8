/* Long C++ and Rust names: what is left out, in which order, and that nothing is lost of what fits. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "report/frames.h"

static void expect(const char *function, int columns, const char *wanted)
{
    char text[SHORT_NAME_MAX];
    assert_string_equal(short_name(function, columns, text), wanted);
}

#define STRING "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"

static void test_a_name_that_fits_is_not_changed(void **state)
{
    static const char name[] = "std::vector<int, std::allocator<int> >::push_back(int)";
    (void)state;
    expect(name, (int)strlen(name), name);
    expect("grow", 4, "grow");
    expect("größer", 6, "größer"); /* columns, not bytes */
    expect("", 0, "");
}

static void test_what_says_nothing_goes_first(void **state)
{
    (void)state;
    expect("std::vector<int, std::allocator<int> >::push_back(int)", 40, "std::vector<int>::push_back(int)");
    expect("put(" STRING " const&, std::vector<" STRING ", std::allocator<" STRING " > >)", 60,
           "put(std::string const&, std::vector<std::string>)");
    expect("std::__1::map<int, float, std::__1::less<int>, std::__1::allocator<std::__1::pair<int const, "
           "float> > >::at(int)",
           60, "std::map<int, float>::at(int)");
    expect("std::unique_ptr<Tensor, std::default_delete<Tensor> >::reset(Tensor*)", 60,
           "std::unique_ptr<Tensor>::reset(Tensor*)");
    /* The reader's own allocator says something. */
    expect("std::vector<int, PinnedAllocator<int> >::push_back(int const&)", 61,
           "std::vector<int, PinnedAllocator<int>>::push_back(int const&)");
}

static void test_then_parameters_then_arguments_from_the_inside_out(void **state)
{
    static const char name[] =
        "net::Layer<Map<Key<int>, Value<float> >, 128>::forward(Tensor const&, Map<Key<int>, int>)";
    (void)state;
    expect(name, 70, "net::Layer<Map<Key<int>, Value<float>>, 128>::forward(…)");
    expect(name, 52, "net::Layer<Map<Key<…>, Value<…>>, 128>::forward(…)");
    expect(name, 40, "net::Layer<Map<…>, 128>::forward(…)");
    expect(name, 30, "net::Layer<…>::forward(…)");
    expect(name, 1, "net::Layer<…>::forward(…)"); /* and no shorter */
}

static void test_brackets_that_are_part_of_a_name_stay(void **state)
{
    (void)state;
    expect("(anonymous namespace)::grow(char*, unsigned long, unsigned long)", 50,
           "(anonymous namespace)::grow(…)");
    expect("Matrix<double, 128, Layout::RowMajor>::operator<<(Stream&)", 30, "Matrix<…>::operator<<(…)");
    expect("Call<std::pair<int, int>, 3>::operator()(std::pair<int, int>) const", 30,
           "Call<…>::operator()(…) const");
    expect("Pointer<std::pair<int, int>, 3, 4, 5>::operator->() const", 30, "Pointer<…>::operator->() const");
    expect("main::{lambda(std::pair<int, int>)#1}::operator()(std::pair<int, int>) const", 50,
           "main::{lambda(…)#1}::operator()(…) const");
    expect("take<(Kind)2, ((3)>(2))>(int, int, int, int)", 30, "take<(Kind)2, ((3)>(2))>(…)");
    expect("std::function<void (int, int, int)>::operator()(int, int, int) const", 60,
           "std::function<void (int, int, int)>::operator()(…) const");
    expect("my_operator<int, int, int>(char, char, char)", 20, "my_operator<…>(…)");
}

static void test_paths_of_rust_keep_their_types(void **state)
{
    (void)state;
    expect("<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop", 40,
           "<alloc::vec::Vec<…> as core::ops::drop::Drop>::drop");
    expect("ring::<impl core::fmt::Debug for ring::Buffer<T, N>>::fmt", 40,
           "ring::<impl core::fmt::Debug for ring::Buffer<…>>::fmt");
}

static void test_any_bytes_are_survived(void **state)
{
    static const char bytes[] = "<>(){}[]-:, abop\xc3\xb6*";
    uint64_t seed = 5;
    char name[2000], text[SHORT_NAME_MAX];
    (void)state;
    for (int round = 0; round < 3000; round++) {
        size_t length = random_below(&seed, round % 10 == 0 ? sizeof name : 100);
        for (size_t i = 0; i < length; i++)
            name[i] = bytes[random_below(&seed, sizeof bytes - 1)];
        name[length ? length - 1 : 0] = '\0';
        if (round % 3 == 0 && length > 20)
            memcpy(name, "f::operator", strlen("f::operator"));
        assert_true(strlen(short_name(name, 30, text)) < sizeof name);
    }
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(strlen(short_name(name, 30, text)), SHORT_NAME_MAX - 1);
    /* Cut between characters. */
    for (size_t i = 1; i + 1 < sizeof name - 1; i += 2)
        memcpy(name + i, "\xc3\xb6", 2);
    const char *cut = short_name(name, 30, text);
    assert_true(strlen(cut) >= SHORT_NAME_MAX - 3 && strlen(cut) % 2 == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_that_fits_is_not_changed),
        cmocka_unit_test(test_what_says_nothing_goes_first),
        cmocka_unit_test(test_then_parameters_then_arguments_from_the_inside_out),
        cmocka_unit_test(test_brackets_that_are_part_of_a_name_stay),
        cmocka_unit_test(test_paths_of_rust_keep_their_types),
        cmocka_unit_test(test_any_bytes_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
