/* Titles: which one line stands for a site, and whose code a line is. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report_books.h"

struct call {
    const char *function, *file;
    int line; /* 0 and a file: a native frame of that module; the function is its symbol */
};

#define CALLS_MAX 12

static struct native_name answers[64];
static size_t answer_count;

static size_t answer(void *source, const struct module *module, uint64_t offset, struct native_name *names,
                     size_t max)
{
    (void)source;
    (void)module;
    if (offset >= answer_count || max == 0 || !answers[offset].function)
        return 0;
    names[0] = answers[offset];
    return 1;
}

static const struct symbol_source symbols = {.resolve = answer};

static uint32_t add_call(struct books *books, const struct call *call)
{
    if (call->line)
        return books_python(books, call->function, call->file, call->line);
    answers[answer_count] = (struct native_name){.function = call->function};
    return books_native(books, books_module(books, call->file), answer_count++);
}

/* A site for each list of calls, innermost first; its title goes to `titles`. */
static void find_titles(const struct call (*stacks)[CALLS_MAX], size_t count, const char *exe,
                        char (*titles)[400])
{
    struct books books;
    answer_count = 0;
    books_open(&books);
    books.process.exe = exe;
    books.input.symbols = &symbols;
    for (size_t i = 0; i < count; i++) {
        uint32_t frames[CALLS_MAX], used = 0;
        for (; used < CALLS_MAX && stacks[i][used].file; used++)
            frames[used] = add_call(&books, &stacks[i][used]);
        books_alloc(&books, books_plain(&books, frames, used), (i + 1) * 2 * MIB, 1, MS);
    }
    json_t *json = books_json(&books);
    assert_int_equal(json_array_size(json_node(json, "sites")), count);
    for (size_t i = 0; i < count; i++)
        snprintf(titles[i], sizeof titles[i], "%s",
                 json_text_at(json_array_get(json_node(json, "sites"), i), "title"));
    json_decref(json);
    books_close(&books);
}

static void check_title(const struct call *stack, size_t calls, const char *exe, const char *wanted)
{
    struct call stacks[1][CALLS_MAX] = {0};
    char titles[1][400];
    memcpy(stacks[0], stack, calls * sizeof *stack);
    find_titles((const struct call(*)[CALLS_MAX])stacks, 1, exe, titles);
    assert_string_equal(titles[0], wanted);
}
#define CHECK(exe, wanted, ...)                                                                              \
    do {                                                                                                     \
        const struct call stack[] = {__VA_ARGS__};                                                           \
        check_title(stack, sizeof stack / sizeof stack[0], exe, wanted);                                     \
    } while (0)

#define PYTHON "/usr/bin/python3.11"

static void test_own_python_line_goes_before_packages_and_native_code(void **state)
{
    (void)state;
    CHECK(PYTHON, "train.py:42 in step", {"cudaMalloc", "/usr/local/cuda/lib64/libcudart.so.12", 0},
          {"at::empty", "/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so", 0},
          {"alloc", "/home/me/build/libmine.so", 0},
          {"forward", "/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", 125},
          {"_call_impl", "/usr/lib/python3/dist-packages/torch/nn/modules/module.py", 1553},
          {"step", "/home/me/train.py", 42}, {"<module>", "/home/me/train.py", 80});
    CHECK(PYTHON, "work.py:3 in <lambda>", {"_bootstrap", "/usr/lib/python3.11/threading.py", 1000},
          {"_find_and_load", "<frozen importlib._bootstrap>", 1178}, {"<lambda>", "/srv/python/work.py", 3});
    CHECK(PYTHON, "<string>:1 in <module>", {"<module>", "<string>", 1});
    CHECK(PYTHON, "python2things.py:5 in f", {"f", "/home/me/python2things.py", 5},
          {"g", "/home/me/b.py", 1});
}

static void test_own_native_code_is_named_where_no_python_is_the_readers(void **state)
{
    (void)state;
    CHECK("/home/me/app", "Trainer::step(int) in app",
          {"cudaMalloc", "/usr/local/cuda-13.0/lib64/libcudart.so.13", 0},
          {"std::vector<int>::resize", "/home/me/app", 0}, {"Trainer::step(int)", "/home/me/app", 0},
          {"main", "/home/me/app", 0}, {"__libc_start_main", "/lib/x86_64-linux-gnu/libc.so.6", 0});
    CHECK("/home/me/app", "app+0x1", {"malloc", "/lib/x86_64-linux-gnu/libc.so.6", 0},
          {NULL, "/home/me/app", 0});
    CHECK("/usr/bin/tool", "run in tool",
          {"run", "/usr/bin/tool", 0}); /* a program is its user's wherever it lies */
    CHECK(PYTHON, "torch/nn/modules/linear.py:125 in forward",
          {"x", "/usr/lib/x86_64-linux-gnu/libfoo.so.1", 0},
          {"forward", "/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", 125});
}

static void test_site_without_a_stack_is_named_by_its_call(void **state)
{
    (void)state;
    char titles[1][400];
    struct call none[1][CALLS_MAX] = {0};
    find_titles((const struct call(*)[CALLS_MAX])none, 1, PYTHON, titles);
    assert_string_equal(titles[0], "cuMemAlloc, no stack recorded");
}

static void test_helper_that_everything_allocates_through_names_nothing(void **state)
{
    (void)state;
    static const struct call stacks[][CALLS_MAX] = {
        {{"call", "/p/cu.py", 18},
         {"alloc", "/p/cu.py", 33},
         {"load", "/p/train.py", 24},
         {"<module>", "/p/train.py", 60}},
        {{"call", "/p/cu.py", 18},
         {"alloc", "/p/cu.py", 33},
         {"keep", "/p/train.py", 28},
         {"<module>", "/p/train.py", 61}},
        {{"call", "/p/cu.py", 18}, {"alloc", "/p/cu.py", 33}, {"<module>", "/p/train.py", 62}},
        {{"call", "/p/cu.py", 18},
         {"pinned", "/p/cu.py", 50},
         {"stage", "/p/train.py", 12},
         {"<module>", "/p/train.py", 63}},
    };
    char titles[4][400];
    find_titles(stacks, 4, PYTHON, titles);
    assert_string_equal(titles[0], "train.py:24 in load");
    assert_string_equal(titles[1], "train.py:28 in keep");
    assert_string_equal(titles[2], "train.py:62 in <module>");
    assert_string_equal(titles[3], "train.py:12 in stage");
}

static void test_helper_in_the_readers_own_file_names_nothing_either(void **state)
{
    (void)state;
    static const struct call stacks[][CALLS_MAX] = {
        {{"alloc", "/p/t.py", 9},
         {"load", "/p/t.py", 24},
         {"main", "/p/t.py", 60},
         {"<module>", "/p/t.py", 99}},
        {{"alloc", "/p/t.py", 9},
         {"keep", "/p/t.py", 28},
         {"main", "/p/t.py", 61},
         {"<module>", "/p/t.py", 99}},
        {{"alloc", "/p/t.py", 9},
         {"keep", "/p/t.py", 28},
         {"main", "/p/t.py", 62},
         {"<module>", "/p/t.py", 99}},
    };
    char titles[3][400];
    find_titles(stacks, 3, PYTHON, titles);
    assert_string_equal(titles[0], "t.py:24 in load");
    /* Two sites of one line: the reader is told the line, not who called it. */
    assert_string_equal(titles[2], titles[1]);
}

static void test_line_called_twice_by_one_function_keeps_its_title(void **state)
{
    (void)state;
    static const struct call stacks[][CALLS_MAX] = {
        {{"code", "/p/cu.py", 22},
         {"try_alloc", "/p/cu.py", 40},
         {"next_batch", "/p/t.py", 14},
         {"<module>", "/p/t.py", 21}},
        {{"code", "/p/cu.py", 22},
         {"try_alloc", "/p/cu.py", 40},
         {"next_batch", "/p/t.py", 14},
         {"<module>", "/p/t.py", 23}},
    };
    char titles[2][400];
    find_titles(stacks, 2, PYTHON, titles);
    assert_string_equal(titles[0], "t.py:14 in next_batch");
    assert_string_equal(titles[1], "t.py:14 in next_batch");
}

static void test_line_that_few_sites_share_keeps_its_title(void **state)
{
    (void)state;
    static const struct call stacks[][CALLS_MAX] = {
        {{"forward", "/p/model.py", 42}, {"train", "/p/train.py", 10}},
        {{"forward", "/p/model.py", 42}, {"evaluate", "/p/train.py", 20}},
        {{"setup", "/p/model.py", 5}, {"train", "/p/train.py", 8}},
        {{"setup", "/p/model.py", 6}, {"train", "/p/train.py", 8}},
        {{"setup", "/p/model.py", 7}, {"train", "/p/train.py", 8}},
    };
    char titles[5][400];
    find_titles(stacks, 5, PYTHON, titles);
    assert_string_equal(titles[0], "model.py:42 in forward");
    assert_string_equal(titles[1], "model.py:42 in forward");
    assert_string_equal(titles[4], "model.py:7 in setup");
}

static void test_recursive_helper_ends(void **state)
{
    (void)state;
    static const struct call stacks[][CALLS_MAX] = {
        {{"f", "/p/a.py", 1}, {"f", "/p/a.py", 1}, {"f", "/p/a.py", 1}},
        {{"f", "/p/a.py", 1}, {"f", "/p/a.py", 1}},
    };
    char titles[2][400];
    find_titles(stacks, 2, PYTHON, titles);
    assert_string_equal(titles[0], "a.py:1 in f");
    assert_string_equal(titles[1], "a.py:1 in f");
}

static void test_files_of_one_name_are_told_apart_by_their_folder(void **state)
{
    (void)state;
    static const struct call stacks[][CALLS_MAX] = {
        {{"f", "/p/model/utils.py", 1}},    {{"g", "/p/data/utils.py", 2}}, {{"h", "/p/train.py", 3}},
        {{"i", "/p/model/__init__.py", 4}}, {{"j", "utils.py", 5}},
    };
    char titles[5][400];
    find_titles(stacks, 5, PYTHON, titles);
    assert_string_equal(titles[0], "model/utils.py:1 in f");
    assert_string_equal(titles[1], "data/utils.py:2 in g");
    assert_string_equal(titles[2], "train.py:3 in h");
    assert_string_equal(titles[3], "model/__init__.py:4 in i");
    assert_string_equal(titles[4], "utils.py:5 in j");
}

static void test_code_in_no_file_is_named_only_where_no_file_is(void **state)
{
    (void)state;
    CHECK(PYTHON, "train.py:9 in run", {"<module>", "<string>", 1}, {"run", "/home/me/train.py", 9});
    CHECK(PYTHON, "<string>:4 in grow", {"at::empty", "/home/me/libmine.so", 0},
          {"forward", "/v/lib/python3.12/site-packages/torch/nn/modules/linear.py", 125},
          {"grow", "<string>", 4}, {"<module>", "<string>", 9});
    CHECK(PYTHON, "<stdin>:1 in <module>", {"<module>", "<stdin>", 1});
}

static void test_cells_of_a_notebook_are_the_readers_own(void **state)
{
    (void)state;
    CHECK(PYTHON, "ipykernel_4711/4037198282.py:3 in <module>",
          {"forward", "/v/lib/python3.12/site-packages/torch/nn/modules/linear.py", 125},
          {"<module>", "/tmp/ipykernel_4711/4037198282.py", 3},
          {"run_code", "/v/lib/python3.12/site-packages/IPython/core/interactiveshell.py", 3553});
    CHECK(PYTHON, "<ipython-input-3-5b2a>:7 in step", {"step", "<ipython-input-3-5b2a>", 7},
          {"run_code", "/v/lib/python3.12/site-packages/IPython/core/interactiveshell.py", 3553});
}

/* What starts with a package: python -m vllm…, or the script that pip made for it. */
static void test_package_that_the_run_began_in_stands_in_where_nothing_is_the_readers(void **state)
{
    (void)state;
    CHECK(PYTHON, "vllm/worker/model_runner.py:1021 in profile_run",
          {"forward", "/v/lib/python3.12/site-packages/torch/nn/modules/linear.py", 125},
          {"profile_run", "/v/lib/python3.12/site-packages/vllm/worker/model_runner.py", 1021},
          {"<module>", "/v/lib/python3.12/site-packages/vllm/entrypoints/api_server.py", 80},
          {"_run_code", "<frozen runpy>", 88});
    CHECK(PYTHON, "vllm/engine.py:7 in start",
          {"forward", "/v/lib/python3.12/site-packages/torch/nn/modules/linear.py", 125},
          {"start", "/v/lib/python3.12/site-packages/vllm/engine.py", 7}, {"<module>", "/v/bin/vllm", 8});
    /* A script in a bin folder that is its author's. */
    CHECK(PYTHON, "train:8 in <module>",
          {"forward", "/v/lib/python3.12/site-packages/torch/nn/modules/linear.py", 125},
          {"<module>", "/home/me/bin/train", 8});
    CHECK(PYTHON, "threading.py:9 in run", {"run", "/usr/lib/python3.12/threading.py", 9});
}

static void test_what_an_environment_brought_is_not_the_readers_wherever_it_lies(void **state)
{
    (void)state;
    static const char *const theirs[] = {
        "/home/me/project/.venv/lib/python3.12/site-packages/numpy/core.py",
        "/opt/conda/lib/python3.12/site-packages/numpy/core.py",
        "/opt/conda/lib/python3.12/json/decoder.py",
        "/usr/lib/python3/dist-packages/numpy/core.py",
        "/home/me/.pyenv/versions/3.12.1/lib/python3.12/runpy.py",
        "/usr/lib/python312.zip/json/decoder.py",
        "/home/me/.pex/installed_wheels/ab/numpy-2.0-cp312.whl/numpy/core.py",
        "/tmp/torchinductor_me/x/cx.py",
        "<frozen importlib._bootstrap>",
        "<eval_with_key>.3",
    };
    for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++)
        CHECK(PYTHON, "step.py:3 in step", {"inner", theirs[i], 1}, {"step", "/home/me/app.zip/step.py", 3},
              {"outer", theirs[i], 1});
    CHECK("/opt/conda/bin/python3.12", "grow() in mine.so", {"x", "/opt/conda/lib/libfoo.so.1", 0},
          {"grow()", "/opt/conda/mine.so", 0}, {"y", "/opt/conda/lib/libfoo.so.1", 0});
}

static void test_long_cpp_names_are_shortened(void **state)
{
    (void)state;
    CHECK("/home/me/app", "ns::Arena<std::pair<int, std::vector<float>>>::grow(…) const in app",
          {"ns::Arena<std::pair<int, std::vector<float, std::allocator<float> > > >::grow(unsigned long, "
           "int) const",
           "/home/me/app", 0});
    CHECK("/home/me/app", "short<int>(char) in app", {"short<int>(char)", "/home/me/app", 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_python_line_goes_before_packages_and_native_code),
        cmocka_unit_test(test_own_native_code_is_named_where_no_python_is_the_readers),
        cmocka_unit_test(test_site_without_a_stack_is_named_by_its_call),
        cmocka_unit_test(test_helper_that_everything_allocates_through_names_nothing),
        cmocka_unit_test(test_helper_in_the_readers_own_file_names_nothing_either),
        cmocka_unit_test(test_line_called_twice_by_one_function_keeps_its_title),
        cmocka_unit_test(test_line_that_few_sites_share_keeps_its_title),
        cmocka_unit_test(test_recursive_helper_ends),
        cmocka_unit_test(test_files_of_one_name_are_told_apart_by_their_folder),
        cmocka_unit_test(test_code_in_no_file_is_named_only_where_no_file_is),
        cmocka_unit_test(test_cells_of_a_notebook_are_the_readers_own),
        cmocka_unit_test(test_package_that_the_run_began_in_stands_in_where_nothing_is_the_readers),
        cmocka_unit_test(test_what_an_environment_brought_is_not_the_readers_wherever_it_lies),
        cmocka_unit_test(test_long_cpp_names_are_shortened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
