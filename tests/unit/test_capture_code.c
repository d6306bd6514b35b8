/* Native stacks (capture/capture.h) through what is no ordinary call: signal handlers, and, on x86-64, code
 * that no table tells about, with frame pointers or astray, and libraries that take each other's place. */
#include "unit.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/call_site.h"
#include "scratch.h"
#include "stack_places.h"

enum { DEPTH = 100 };

static struct raw_stack in_handler;
static uintptr_t handled[DEPTH];

VISIBLE void handler(int number)
{
    (void)number;
    taker(&in_handler);
    memcpy(handled, in_handler.native, in_handler.native_count * sizeof *handled);
}

VISIBLE void interrupted(void)
{
    raise(SIGUSR2);
    KEEP;
}

static void expect_signal_frames(void)
{
    in_handler.native_count = 0;
    interrupted();
    KEEP;
    assert_true(in_handler.native_count > 4);
    assert_true(is_in(handled[0], "taker"));
    assert_true(is_in(handled[1], "handler"));
    bool reached = false;
    for (uint32_t i = 2; i < in_handler.native_count; i++)
        reached |= is_in(handled[i], "interrupted");
    assert_true(reached);
}

static void test_signal_handler_and_what_it_interrupted(void **state)
{
    (void)state;
    signal(SIGUSR2, handler);
    expect_signal_frames();
    expect_signal_frames();
    signal(SIGUSR2, SIG_DFL);
}

static void test_signal_handler_on_a_stack_of_its_own(void **state)
{
    (void)state;
    stack_t alternate = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16}, old;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    assert_int_equal(sigaltstack(&alternate, &old), 0);
    sigaction(SIGUSR2, &action, NULL);
    expect_signal_frames();
    signal(SIGUSR2, SIG_DFL);
    sigaltstack(&old, NULL);
    free(alternate.ss_sp);
}

#ifdef __x86_64__

/* Machine code that calls its first argument with the second, and about which no table says anything. */
static const uint8_t calls[] = {0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0xf8,
                                0x48, 0x89, 0xf7, /* sub $24,%rsp; … */
                                0xff, 0xd0, 0x48, 0x83, 0xc4, 0x18, 0xc3};
/* The same, with a frame pointer that points nowhere. */
static const uint8_t calls_astray[] = {0x55, 0x48, 0x83, 0xec, 0x10, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7,
                                       0x31, 0xed, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3};

static void *make_code(const uint8_t *code, size_t bytes)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NULL : memcpy(page, code, bytes);
}

static void expect_clean_end(const uint8_t *code, size_t bytes)
{
    struct raw_stack stack;
    void *page = make_code(code, bytes);
    if (page == NULL)
        skip();
    void (*call)(void (*)(struct raw_stack *), struct raw_stack *) =
        (void (*)(void (*)(struct raw_stack *), struct raw_stack *))page;
    for (int i = 0; i < 3; i++) {
        call(from_one_place, &stack);
        assert_true(stack.native_count >= 3);
        assert_true(is_in(stack.native[0], "taker"));
        assert_true(is_in(stack.native[1], "from_one_place"));
        assert_true(stack.native[2] - (uintptr_t)page <= bytes);
    }
    munmap(page, 4096);
}

static void test_code_without_tables_ends_a_stack_cleanly(void **state)
{
    (void)state;
    expect_clean_end(calls, sizeof calls);
    expect_clean_end(calls_astray, sizeof calls_astray);
}

/* push %rbp; sub $16,%rsp; and then as above, but with a frame pointer that is the third argument. */
static const uint8_t calls_misled[] = {0x55, 0x48, 0x83, 0xec, 0x10, 0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7,
                                       0x48, 0x89, 0xd5, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3};
/* push %rbp; mov %rsp,%rbp: a frame pointer as it should be. */
static const uint8_t calls_proper[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8,
                                       0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};

typedef void made_function(void (*)(struct raw_stack *), struct raw_stack *, void *);

VISIBLE void calls_made(made_function *made, struct raw_stack *stack, void *frame)
{
    made(from_one_place, stack, frame);
    KEEP;
}

static void test_what_only_looks_like_a_frame_is_left_out(void **state)
{
    (void)state;
    void *code = make_code(calls_misled, sizeof calls_misled);
    if (code == NULL)
        skip();
    struct raw_stack stack;
    /* Data of the program's, a place in it that no call returns to, and nothing at all. */
    uintptr_t wrong[] = {(uintptr_t)&stack, (uintptr_t)&from_another + 1, 0x1234, (uintptr_t)-4096};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        uintptr_t frames[4] = {(uintptr_t)&frames[2], wrong[i], 0, 0};
        calls_made((made_function *)code, &stack, frames);
        assert_true(is_in(stack.native[1], "from_one_place"));
        for (uint32_t k = 0; k < stack.native_count; k++)
            assert_true(stack.native[k] != wrong[i]);
    }
    munmap(code, 4096);
}

static void test_code_without_tables_but_with_frame_pointers_is_passed(void **state)
{
    (void)state;
    void *code = started_with_libunwind() ? make_code(calls_proper, sizeof calls_proper) : NULL;
    if (code == NULL)
        skip();
    struct raw_stack stack;
    calls_made((made_function *)code, &stack, NULL);
    assert_true(is_in(stack.native[1], "from_one_place"));
    assert_true(is_in(stack.native[3], "calls_made"));
    munmap(code, 4096);
}

static void test_calls_are_known_by_what_stands_before_them(void **state)
{
    (void)state;
    /* As gas assembles them; the last byte is the last before the return address. */
    static const struct {
        uint8_t bytes[8];
        bool is_call;
    } instructions[] = {
        {{0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4}, true},              /* call rel32 */
        {{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0}, true},  /* call *%rax */
        {{0x90, 0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd3}, true},  /* call *%r11 */
        {{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x55, 8}, true},     /* call *8(%rbp) */
        {{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x10}, true},  /* call *(%rax) */
        {{0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x14, 0x24}, true},  /* call *(%rsp) */
        {{0x90, 0x90, 0x90, 0x90, 0xff, 0x54, 0x24, 8}, true},     /* call *8(%rsp) */
        {{0x90, 0x90, 0xff, 0x15, 1, 2, 3, 4}, true},              /* call *disp(%rip) */
        {{0x90, 0x90, 0xff, 0x90, 1, 2, 3, 4}, true},              /* call *disp(%rax) */
        {{0x90, 0xff, 0x94, 0x24, 1, 2, 3, 4}, true},              /* call *disp(%rsp) */
        {{0x90, 0xff, 0x14, 0xc5, 1, 2, 3, 4}, true},              /* call *disp(,%rax,8) */
        {{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0}, false}, /* jmp *%rax */
        {{0x90, 0x90, 0x90, 0xe9, 1, 2, 3, 4}, false},             /* jmp rel32 */
        {{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3}, false}, /* ret */
        {{0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, false},
    };
    for (size_t i = 0; i < COUNT_OF(instructions); i++)
        assert_int_equal(call_site_precedes((uintptr_t)(instructions[i].bytes + 8)), instructions[i].is_call);
}

/* A library whose one function calls its argument from the same offset in it, with a frame of a shape of its
 * own. */
static void *make_library(const char *name, const char *before, const char *after)
{
    char source[1000], command[1000];
    snprintf(source, sizeof source,
             ".text\n.globl entry\n.type entry,@function\nentry:\n.cfi_startproc\n%s\n.p2align 6\ncall "
             "*%%rsi\n%s\nret\n"
             ".cfi_endproc\n.size entry,.-entry\n.section .note.GNU-stack,\"\",@progbits\n",
             before, after);
    scratch_write(scratch_path("entry.s"), source, strlen(source));
    snprintf(command, sizeof command, "%s -shared -o %s %s", getenv("CC") != NULL ? getenv("CC") : "cc",
             scratch_path(name), scratch_path("entry.s"));
    return system(command) == 0 ? strdup(scratch_path(name)) : NULL;
}

typedef void entry_function(struct raw_stack *, void (*)(struct raw_stack *));

static void test_library_loaded_where_another_was_is_read_by_its_own_tables(void **state)
{
    (void)state;
    char *paths[] = {
        make_library("small.so", "sub $0x28,%rsp\n.cfi_adjust_cfa_offset 0x28",
                     "add $0x28,%rsp\n.cfi_adjust_cfa_offset -0x28"),
        make_library("large.so", "sub $0x408,%rsp\n.cfi_adjust_cfa_offset 0x408",
                     "add $0x408,%rsp\n.cfi_adjust_cfa_offset -0x408"),
        make_library("pointer.so",
                     "push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbp,0\nmov %rsp,%rbp\n"
                     ".cfi_def_cfa_register %rbp\nsub $0x50,%rsp",
                     "leave\n.cfi_def_cfa %rsp,8"),
    };
    uintptr_t reused = 0, last = 0;
    for (int turn = 0; turn < 12; turn++) {
        struct raw_stack stack;
        assert_non_null(paths[turn * 7 % 3]);
        void *library = dlopen(paths[turn * 7 % 3], RTLD_NOW);
        assert_non_null(library);
        entry_function *entry = (entry_function *)dlsym(library, "entry");
        if (entry == NULL)
            abort();
        reused += (uintptr_t)entry == last;
        last = (uintptr_t)entry;
        uint32_t generation = capture_generation();
        for (int twice = 0; twice < 2; twice++) {
            entry(&stack, from_one_place);
            assert_true(is_in(stack.native[1], "from_one_place"));
            assert_true(is_in(stack.native[2], "entry"));
            assert_true(is_in(stack.native[stack.native_count - 1], "_start"));
        }
        dlclose(library);
        capture_modules_changed();
        assert_true(capture_generation() != generation);
    }
    assert_true(reused > 3);
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        free(paths[i]);
}

#endif

static int set_up(void **state)
{
    (void)state;
    return start_capture(DEPTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signal_handler_and_what_it_interrupted),
        cmocka_unit_test(test_signal_handler_on_a_stack_of_its_own),
#ifdef __x86_64__
        cmocka_unit_test(test_code_without_tables_ends_a_stack_cleanly),
        cmocka_unit_test(test_what_only_looks_like_a_frame_is_left_out),
        cmocka_unit_test(test_code_without_tables_but_with_frame_pointers_is_passed),
        cmocka_unit_test(test_calls_are_known_by_what_stands_before_them),
        cmocka_unit_test(test_library_loaded_where_another_was_is_read_by_its_own_tables),
        /* Again, with the unwinder that is used once something was unloaded. */
        cmocka_unit_test(test_signal_handler_and_what_it_interrupted),
        cmocka_unit_test(test_code_without_tables_ends_a_stack_cleanly),
        cmocka_unit_test(test_what_only_looks_like_a_frame_is_left_out),
#endif
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
