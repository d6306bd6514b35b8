/* Native stacks (capture/capture.h) in all places where a program may allocate. Names come from dladdr(). */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/call_site.h"
#include "capture/capture.h"
#include "scratch.h"

/* Under ThreadSanitizer there is no libunwind, and no thread in a child. */
#ifdef __SANITIZE_THREAD__
#define WITH_LIBUNWIND 0
#elif defined(__has_feature)
#define WITH_LIBUNWIND (!__has_feature(thread_sanitizer))
#else
#define WITH_LIBUNWIND 1
#endif

enum { DEPTH = 100 };

static char notes[1000];

static void add_note(const char *sentence)
{
    strncat(notes, sentence, sizeof notes - strlen(notes) - 1);
}

static bool is_in(uintptr_t return_address, const char *function)
{
    Dl_info info;
    return dladdr((void *)(return_address - 1), &info) != 0 && info.dli_sname != NULL &&
           strcmp(info.dli_sname, function) == 0;
}

/* Visible, so that dladdr() knows them; the work after a call keeps it from being a jump. */
#define VISIBLE __attribute__((noinline, visibility("default")))
#define KEEP    __asm__ volatile("" : : : "memory")

VISIBLE void taker(struct raw_stack *stack)
{
    capture_take(stack); /* NOLINT(bugprone-signal-handler): that is what is tried */
    KEEP;
}

VISIBLE void from_one_place(struct raw_stack *stack)
{
    taker(stack);
    KEEP;
}

VISIBLE void from_another(struct raw_stack *stack)
{
    taker(stack);
    KEEP;
}

VISIBLE void recursive(int levels, struct raw_stack *stack)
{
    if (levels > 1)
        recursive(levels - 1, stack);
    else
        taker(stack);
    KEEP;
}

static void test_first_frame_is_the_callers(void **state)
{
    (void)state;
    struct raw_stack stack;
    from_one_place(&stack);
    assert_true(stack.native_count >= 3);
    assert_true(is_in(stack.native[0], "taker"));
    assert_true(is_in(stack.native[1], "from_one_place"));
    assert_int_equal(stack.python_count, 0);
    assert_true(is_in(stack.native[stack.native_count - 1], "_start"));
}

static void test_every_level_is_a_frame(void **state)
{
    (void)state;
    struct raw_stack stack;
    for (int levels = 1; levels < 60; levels++) {
        recursive(levels, &stack);
        for (int i = 1; i <= levels; i++)
            assert_true(is_in(stack.native[i], "recursive"));
        assert_false(is_in(stack.native[levels + 1], "recursive"));
    }
}

static void test_depth_keeps_the_innermost(void **state)
{
    (void)state;
    struct raw_stack stack;
    recursive(3 * DEPTH, &stack);
    assert_int_equal(stack.native_count, DEPTH);
    assert_true(is_in(stack.native[0], "taker"));
    for (int i = 1; i < DEPTH; i++)
        assert_true(is_in(stack.native[i], "recursive"));
}

static void test_hash_tells_stacks_apart(void **state)
{
    (void)state;
    struct raw_stack stack;
    uint64_t hashes[64];
    size_t count = 0;
    for (int levels = 1; levels < 60; levels++) {
        recursive(levels, &stack);
        hashes[count++] = stack.hash;
    }
    from_one_place(&stack);
    hashes[count++] = stack.hash;
    from_another(&stack);
    hashes[count++] = stack.hash;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(hashes[i] != hashes[k]);
}

static void test_same_stack_has_the_same_hash(void **state)
{
    (void)state;
    struct raw_stack stack;
    uint64_t hash = 0;
    volatile int turns = 0; /* unknown to the compiler, which would make several places of the one below */
    while (turns++ < 50) {
        struct raw_stack other;
        recursive(turns % 7 + 1, &other);
        recursive(12, &stack);
        assert_true(turns == 1 || stack.hash == hash);
        hash = stack.hash;
    }
}

/* What was noted of a stack comes back with that stack and with no other, and whenever it is taken twice. */
static void test_note_belongs_to_one_stack(void **state)
{
    (void)state;
    static const int table;
    struct raw_stack stack;
    uint64_t seed = 1;
    uint32_t noted_again = 0;
    for (int i = 0; i < 3000; i++) {
        uint32_t levels = 1 + (uint32_t)random_below(&seed, 4) * 11; /* and beyond the depth */
        for (volatile int turns = 0; turns < 2; turns++) {
            recursive((int)levels, &stack);
            if (stack.memo == NULL)
                continue;
            if (stack.memo->table != NULL) {
                assert_ptr_equal(stack.memo->table, &table);
                assert_int_equal(stack.memo->id, levels);
                noted_again++;
            }
            *stack.memo = (struct stack_memo){&table, 0, levels};
        }
    }
#ifdef __x86_64__
    assert_true(noted_again >= 3000);
#endif
    capture_modules_changed();
    capture_after_fork();
    recursive(1, &stack);
    assert_true(stack.memo == NULL || stack.memo->table == NULL);
}

static void test_errno_is_kept(void **state)
{
    (void)state;
    struct raw_stack stack;
    errno = 4711;
    recursive(40, &stack);
    assert_int_equal(errno, 4711);
    capture_modules_changed();
    assert_int_equal(errno, 4711);
}

static void *take_in_thread(void *failed)
{
    struct raw_stack stack;
    for (int i = 0; i < 2000; i++) {
        int levels = i % 40 + 1;
        recursive(levels, &stack);
        if (!is_in(stack.native[levels], "recursive") || is_in(stack.native[levels + 1], "recursive"))
            *(volatile int *)failed = 1;
    }
    return NULL;
}

static void test_threads_do_not_share_a_stack(void **state)
{
    (void)state;
    pthread_t threads[8];
    int failed = 0;
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_in_thread, &failed), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(failed, 0);
}

static size_t mappings(void)
{
    static char maps[1 << 20];
    size_t bytes = scratch_read("/proc/self/maps", maps, sizeof maps), lines = 0;
    for (size_t i = 0; i < bytes; i++)
        lines += maps[i] == '\n';
    return lines;
}

static void *take_once(void *ignored)
{
    struct raw_stack stack;
    (void)ignored;
    from_one_place(&stack);
    return (void *)(uintptr_t)stack.native_count;
}

static void test_threads_that_end_leave_nothing(void **state)
{
    (void)state;
    pthread_t thread;
    size_t before = 0;
    for (int i = 0; i < 3000; i++) {
        if (i == 500)
            before = mappings();
        assert_int_equal(pthread_create(&thread, NULL, take_once, NULL), 0);
        pthread_join(thread, NULL);
    }
    assert_true(mappings() <= before + 4);
}

static void test_smallest_thread_stack_is_enough(void **state)
{
    (void)state;
    pthread_attr_t attributes;
    pthread_t thread = 0;
    void *count;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) != 0 ||
        pthread_create(&thread, &attributes, take_once, NULL) != 0)
        skip(); /* a sanitizer wants more */
    pthread_join(thread, &count);
    assert_true((uintptr_t)count >= 3);
}

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

static void expect_clean_end(void *page, const uint8_t *code, size_t bytes)
{
    struct raw_stack stack;
    memcpy(page, code, bytes);
    void (*call)(void (*)(struct raw_stack *), struct raw_stack *) =
        (void (*)(void (*)(struct raw_stack *), struct raw_stack *))page;
    for (int i = 0; i < 3; i++) {
        call(from_one_place, &stack);
        assert_true(stack.native_count >= 3);
        assert_true(is_in(stack.native[0], "taker"));
        assert_true(is_in(stack.native[1], "from_one_place"));
        assert_true(stack.native[2] - (uintptr_t)page <= bytes);
    }
}

static void test_code_without_tables_ends_a_stack_cleanly(void **state)
{
    (void)state;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        skip();
    expect_clean_end(page, calls, sizeof calls);
    expect_clean_end(page, calls_astray, sizeof calls_astray);
    munmap(page, 4096);
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

static void *make_code(const uint8_t *code, size_t bytes)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NULL : memcpy(page, code, bytes);
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
    void *code = make_code(calls_proper, sizeof calls_proper);
    if (code == NULL || !WITH_LIBUNWIND)
        skip(); /* libc's backtrace() does not look for frame pointers */
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

static void test_closing_what_stays_loaded_changes_nothing(void **state)
{
    (void)state;
    uint32_t generation = capture_generation();
    dlclose(dlopen("libc.so.6", RTLD_NOW));
    capture_modules_changed();
    assert_int_equal(capture_generation(), generation);
}

static atomic_bool stop;

static void *take_until_stopped(void *ignored)
{
    struct raw_stack stack;
    while (!atomic_load(&stop)) {
        recursive(20, &stack);
        capture_modules_changed();
    }
    return ignored;
}

static void take_in_child(void *ignored)
{
    (void)ignored;
    struct raw_stack stack;
    capture_after_fork();
    recursive(5, &stack);
    assert_true(is_in(stack.native[5], "recursive"));
#if WITH_LIBUNWIND
    pthread_t thread;
    void *count;
    assert_int_equal(pthread_create(&thread, NULL, take_once, NULL), 0);
    pthread_join(thread, &count);
    assert_true((uintptr_t)count >= 3);
#endif
}

static void test_forked_child_takes_stacks(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* the sanitizer's own unwinding may hold the dynamic linker's lock when the fork comes */
#endif
    pthread_t thread;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, take_until_stopped, NULL), 0);
    for (int i = 0; i < 30; i++) {
        capture_before_fork();
        int status = in_child(take_in_child, NULL);
        capture_after_fork_in_parent();
        assert_int_equal(status, 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

static int set_up(void **state)
{
    (void)state;
    struct raw_stack stack = {.native_count = 1};
    capture_take(&stack);
    if (stack.native_count != 0) /* nothing before the start */
        return -1;
    capture_start(CAPTURE_MIXED, DEPTH, add_note);
    return notes[0] != '\0';
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_frame_is_the_callers),
        cmocka_unit_test(test_every_level_is_a_frame),
        cmocka_unit_test(test_depth_keeps_the_innermost),
        cmocka_unit_test(test_hash_tells_stacks_apart),
        cmocka_unit_test(test_same_stack_has_the_same_hash),
        cmocka_unit_test(test_note_belongs_to_one_stack),
        cmocka_unit_test(test_errno_is_kept),
        cmocka_unit_test(test_threads_do_not_share_a_stack),
        cmocka_unit_test(test_threads_that_end_leave_nothing),
        cmocka_unit_test(test_smallest_thread_stack_is_enough),
        cmocka_unit_test(test_signal_handler_and_what_it_interrupted),
        cmocka_unit_test(test_signal_handler_on_a_stack_of_its_own),
#ifdef __x86_64__
        cmocka_unit_test(test_code_without_tables_ends_a_stack_cleanly),
        cmocka_unit_test(test_what_only_looks_like_a_frame_is_left_out),
        cmocka_unit_test(test_code_without_tables_but_with_frame_pointers_is_passed),
        cmocka_unit_test(test_calls_are_known_by_what_stands_before_them),
        cmocka_unit_test(test_library_loaded_where_another_was_is_read_by_its_own_tables),
#endif
        cmocka_unit_test(test_closing_what_stays_loaded_changes_nothing),
        cmocka_unit_test(test_forked_child_takes_stacks),
        /* Again, with the unwinder that is used once something was unloaded. */
        cmocka_unit_test(test_signal_handler_and_what_it_interrupted),
#ifdef __x86_64__
        cmocka_unit_test(test_code_without_tables_ends_a_stack_cleanly),
        cmocka_unit_test(test_what_only_looks_like_a_frame_is_left_out),
#endif
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
