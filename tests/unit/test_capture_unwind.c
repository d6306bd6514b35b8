/*
 * The fast way through native frames (capture/unwind.h, eh_frame.h). What the tables of the mapped files say
 * comes from libdw, whole stacks from libunwind. x86-64.
 */
#include "unit.h"

#include <dwarf.h>
#include <dlfcn.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/call_frame.h"
#include "capture/eh_frame.h"
#include "capture/unwind.h"

enum { BP = 6, SP = 7, RA = 16, SAMPLES = 4000, MAX = 400 };

#ifdef __x86_64__

/* A place that libdw describes by "CFA + offset" is ordinary; *same: the register still holds its value. */
static bool place_at_cfa(Dwarf_Frame *frame, int number, bool *same, bool *undefined, int64_t *offset)
{
    Dwarf_Op memory[3], *ops;
    size_t count;
    assert_int_equal(dwarf_frame_register(frame, number, memory, &ops, &count), 0);
    *same = count == 0 && ops == NULL;
    *undefined = count == 0 && ops != NULL;
    *offset = 0;
    if (count == 2 && ops[0].atom == DW_OP_call_frame_cfa && ops[1].atom == DW_OP_plus_uconst)
        *offset = (int64_t)ops[1].number;
    return *offset != 0;
}

static struct frame_rule rule_by_libdw(Dwarf_Frame *frame)
{
    struct frame_rule rule = {.kind = RULE_OTHER};
    Dwarf_Op *cfa;
    size_t count;
    bool same, undefined, is_signal;
    int64_t ra, bp;
    dwarf_frame_info(frame, NULL, NULL, &is_signal);
    bool ra_at_cfa = place_at_cfa(frame, RA, &same, &undefined, &ra);
    if (undefined && !is_signal)
        return (struct frame_rule){.kind = RULE_OUTERMOST};
    bool bp_at_cfa = place_at_cfa(frame, BP, &same, &undefined, &bp);
    assert_int_equal(dwarf_frame_cfa(frame, &cfa, &count), 0);
    if (is_signal || !ra_at_cfa || ra != -8 || !(same || bp_at_cfa) || count != 1 ||
        cfa[0].atom != DW_OP_bregx)
        return rule;
    if (cfa[0].number == SP || cfa[0].number == BP)
        rule = (struct frame_rule){cfa[0].number == SP ? RULE_SP : RULE_BP, (int32_t)cfa[0].number2,
                                   (int32_t)bp};
    return rule;
}

struct tally {
    size_t ordinary, outermost, other, realigned, without;
};

static void compare_module(const char *path, uintptr_t bias, const ElfW(Phdr) * segment, struct tally *tally)
{
    int fd = open(path, O_RDONLY);
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    Dwarf_CFI *cfi = elf == NULL ? NULL : dwarf_getcfi_elf(elf);
    uint64_t seed = bias;
    for (int i = 0; i < SAMPLES && cfi != NULL; i++) {
        uintptr_t address = segment->p_vaddr + random_below(&seed, segment->p_memsz);
        struct frame_rule rule = eh_frame_rule(bias + address + 1);
        Dwarf_Frame *frame = NULL;
        if (dwarf_cfi_addrframe(cfi, address, &frame) != 0) {
            assert_int_equal(rule.kind, RULE_OTHER);
            tally->without++;
            continue;
        }
        struct frame_rule right = rule_by_libdw(frame);
        if (rule.kind == RULE_REALIGNED && right.kind == RULE_OTHER) {
            tally->realigned++; /* libdw has no word for it; the walks below go through such frames */
        } else {
            assert_int_equal(rule.kind, right.kind);
            if (rule.kind == RULE_SP || rule.kind == RULE_BP) {
                assert_int_equal(rule.cfa_offset, right.cfa_offset);
                assert_int_equal(rule.bp_offset, right.bp_offset);
                tally->ordinary++;
            } else if (rule.kind == RULE_OUTERMOST) {
                tally->outermost++;
            } else {
                tally->other++;
            }
        }
        free(frame);
    }
    if (cfi != NULL)
        dwarf_cfi_end(cfi);
    elf_end(elf);
    close(fd);
}

static int compare_loaded(struct dl_phdr_info *info, size_t bytes, void *tally)
{
    (void)bytes;
    const char *path = info->dlpi_name[0] == '\0' ? "/proc/self/exe" : info->dlpi_name;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (path[0] == '/' && info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X)
            compare_module(path, info->dlpi_addr, &info->dlpi_phdr[i], tally);
    return 0;
}

static void test_rules_are_what_libdw_reads(void **state)
{
    (void)state;
    struct tally tally = {0};
    dlopen("libstdc++.so.6", RTLD_NOW);
    dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    dl_iterate_phdr(compare_loaded, &tally);
    print_message("ordinary %zu, outermost %zu, other %zu, realigned %zu, without %zu\n", tally.ordinary,
                  tally.outermost, tally.other, tally.realigned, tally.without);
    assert_true(tally.ordinary > 10000);
    assert_true(tally.other + tally.without > 10);
}

/* Any instructions, ending where the mapped memory ends. */
static void test_any_instructions_are_read_within_their_bounds(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *start = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(start, MAP_FAILED);
    assert_int_equal(mprotect(start + page, page, PROT_NONE), 0);
    static const uint8_t first[] = {0x0c, SP, 8, 0x80 | RA, 1}; /* CFA = sp + 8, return address at CFA - 8 */
    const struct common common = {.code_align = 1,
                                  .data_align = -8,
                                  .pointer_encoding = ENCODE_ABSOLUTE,
                                  .instructions = {first, first + sizeof first, false}};
    uint64_t seed = 5;
    size_t ordinary = 0;
    for (int i = 0; i < 200000; i++) {
        size_t bytes = random_below(&seed, 24);
        uint8_t *at = start + page - bytes;
        for (size_t k = 0; k < bytes; k++)
            at[k] = random_below(&seed, 2) ? (uint8_t)random_next(&seed) : (uint8_t)random_below(&seed, 0x18);
        struct frame_rule rule = call_frame_rule(&common, (struct reader){at, start + page, false}, 1000,
                                                 1000 + random_below(&seed, 300));
        assert_true(rule.kind > RULE_UNMAPPED && rule.kind <= RULE_REALIGNED);
        if (rule.kind == RULE_SP || rule.kind == RULE_BP || rule.kind == RULE_REALIGNED) {
            assert_true(rule.cfa_offset % 8 == 0 && abs(rule.cfa_offset) <= 1 << 26);
            assert_true(rule.bp_offset % 8 == 0 && abs(rule.bp_offset) <= 1 << 26);
            ordinary++;
        }
    }
    assert_true(ordinary > 1000);
    munmap(start, 2 * page);
}

static int (*unwind)(void **, int);
static __thread struct unwind_memory memory;
static __thread volatile unsigned walks, gave_up, wrong; /* also counted in a signal handler */

static void start_thread(void)
{
    static __thread uintptr_t room[16 * MAX];
    assert_true(unwind_memory_bytes(MAX) <= sizeof room);
    unwind_memory_init(&memory, MAX, room);
    walks = gave_up = wrong = 0;
}

/* Also called in a signal handler: that is what is tried there. NOLINTBEGIN(bugprone-signal-handler) */
/* Walks from the caller by both ways. */
static __attribute__((noinline)) void compare_here(void)
{
    void *frames[MAX + 1];
    const uintptr_t *own = __builtin_frame_address(0);
    struct unwind_frame caller = {.pc = own[1], .sp = (uintptr_t)(own + 2), .bp = own[0]};
    int count = unwind(frames, MAX + 1); /* the first lies in here */
    walks++;
    if (!unwind_walk(&memory, caller, (struct elf_extent){0})) {
        gave_up++;
        return;
    }
    const struct unwind_trail *trail = &memory.last;
    if (trail->count != (uint32_t)count - 1 ||
        memcmp(trail->pc + trail->first, frames + 1, trail->count * sizeof *trail->pc) != 0)
        wrong++;
}

/* NOLINTEND(bugprone-signal-handler) */

#define SHAPES(X)                                                                                            \
    X(plain) X(large) X(variable) X(aligned) X(aligned_variable) X(by_qsort) X(by_tree) X(by_once) X(many)

#define AS_DECLARATION(name) static void name(uint64_t seed, int depth);
SHAPES(AS_DECLARATION)

static __attribute__((noinline)) void next(uint64_t seed, int depth)
{
#define AS_SHAPE(name) name,
    static void (*const shapes[])(uint64_t, int) = {SHAPES(AS_SHAPE)};
    if (depth == 0)
        compare_here();
    else
        shapes[random_below(&seed, COUNT_OF(shapes))](seed, depth - 1);
    __asm__ volatile("" ::: "memory");
}

/* Keeps `bytes` in the frame, and the call before it from being a jump. */
#define KEEP(bytes) __asm__ volatile("" : : "r"(bytes) : "memory")

static __attribute__((noinline)) void plain(uint64_t seed, int depth)
{
    next(seed, depth);
    KEEP(0);
}

static __attribute__((noinline)) void large(uint64_t seed, int depth)
{
    char bytes[3000];
    KEEP(bytes);
    next(seed, depth);
    KEEP(bytes);
}

static __attribute__((noinline)) void variable(uint64_t seed, int depth)
{
    char bytes[seed % 777 + 1];
    KEEP(bytes);
    next(seed, depth);
    KEEP(bytes);
}

static __attribute__((noinline)) void aligned(uint64_t seed, int depth)
{
    _Alignas(64) char bytes[64];
    KEEP(bytes);
    next(seed, depth);
    KEEP(bytes);
}

static __attribute__((noinline)) void aligned_variable(uint64_t seed, int depth)
{
    _Alignas(128) char bytes[64];
    char more[seed % 333 + 1];
    KEEP(bytes);
    KEEP(more);
    next(seed, depth);
    KEEP(bytes);
}

static __thread uint64_t called_seed;
static __thread int called_depth;

static int called(const void *a, const void *b)
{
    next(called_seed, called_depth);
    KEEP(0);
    return a < b;
}

static __attribute__((noinline)) void by_qsort(uint64_t seed, int depth)
{
    int pair[] = {2, 1};
    called_seed = seed;
    called_depth = depth;
    qsort(pair, 2, sizeof *pair, called);
    KEEP(pair);
}

static int called_never(const void *a, const void *b)
{
    return (a > b) - (a < b);
}

static void called_on_node(const void *node, VISIT visit, int level)
{
    (void)node, (void)visit, (void)level;
    next(called_seed, called_depth);
    KEEP(0);
}

static __attribute__((noinline)) void by_tree(uint64_t seed, int depth)
{
    static __thread int key;
    void *root = NULL;
    tsearch(&key, &root, called_never);
    called_seed = seed;
    called_depth = depth;
    twalk(root, called_on_node);
    tdelete(&key, &root, called_never);
}

static void called_once(void)
{
    next(called_seed, called_depth);
    KEEP(0);
}

static __attribute__((noinline)) void by_once(uint64_t seed, int depth)
{
    pthread_once_t once = PTHREAD_ONCE_INIT;
    called_seed = seed;
    called_depth = depth;
    pthread_once(&once, called_once); /* NOLINT(clang-analyzer-unix.API): one for each call */
    KEEP(&once);
}

static __attribute__((noinline)) long many_arguments(long a, long b, long c, long d, long e, long f, long g,
                                                     long h, uint64_t seed, int depth)
{
    next(seed, depth);
    KEEP(0);
    return a + b + c + d + e + f + g + h;
}

static __attribute__((noinline)) void many(uint64_t seed, int depth)
{
    KEEP(many_arguments(1, 2, 3, 4, 5, 6, 7, 8, seed, depth));
}

static void compare_many(uint64_t seed)
{
    for (int i = 0; i < 3000; i++) {
        /* Stacks that share their beginning with the last one, and such that do not. */
        uint64_t path = random_below(&seed, 4) == 0 ? random_next(&seed) : 42 + random_below(&seed, 3);
        next(path, (int)random_below(&seed, 25));
    }
}

static void test_walks_are_libunwinds(void **state)
{
    (void)state;
    start_thread();
    compare_many(1);
    assert_true(walks >= 3000); /* some shapes call twice */
    assert_int_equal(wrong, 0);
    assert_int_equal(gave_up, 0);
}

static void *compare_in_thread(void *seed)
{
    start_thread();
    compare_many((uintptr_t)seed);
    return (void *)(uintptr_t)(wrong + gave_up);
}

static void test_walks_are_libunwinds_in_threads_at_once(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, compare_in_thread, (void *)(i + 2)), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

/* Calls with a chosen value in rbp, as a function may that has no frame pointer. */
void with_bp(uintptr_t bp, void (*function)(void));
__asm__(".text\n.type with_bp, @function\nwith_bp:\n.cfi_startproc\n"
        "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
        "mov %rdi, %rbp\ncall *%rsi\n"
        "pop %rbp\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size with_bp, . - with_bp\n");

static void test_a_register_that_is_a_counter_leaves_a_stack_unchanged(void **state)
{
    (void)state;
    start_thread();
    for (uintptr_t i = 0; i < 5; i++) {
        with_bp(i, compare_here);
        assert_int_equal(memory.unchanged, i > 0);
        assert_int_equal(memory.last.bp[memory.last.first], i);
    }
    assert_int_equal(wrong + gave_up, 0);
}

static void test_walk_is_cut_at_its_limit(void **state)
{
    (void)state;
    void *room = malloc(unwind_memory_bytes(8));
    start_thread();
    unwind_memory_init(&memory, 8, room);
    wrong = 0;
    next(7, 20);
    assert_int_equal(memory.last.count, 8);
    next(7, 20);
    assert_int_equal(memory.last.count, 8);
    void *frames[9];
    const uintptr_t *own = __builtin_frame_address(0);
    struct unwind_frame caller = {.pc = own[1], .sp = (uintptr_t)(own + 2), .bp = own[0]};
    int count = unwind(frames, 9);
    assert_true(unwind_walk(&memory, caller, (struct elf_extent){0}));
    assert_int_equal(memory.last.count, count - 1);
    assert_memory_equal(memory.last.pc + memory.last.first, frames + 1, (size_t)(count - 1) * sizeof *frames);
    free(room);
}

static void test_walk_ends_at_the_first_address_of_the_range(void **state)
{
    (void)state;
    start_thread();
    next(3, 10);
    struct unwind_trail all = memory.last;
    uintptr_t wanted = all.pc[all.first + 4];
    const uintptr_t *own = __builtin_frame_address(0);
    struct unwind_frame caller = {.pc = own[1], .sp = (uintptr_t)(own + 2), .bp = own[0]};
    for (int twice = 0; twice < 2; twice++) {
        assert_true(unwind_walk(&memory, caller, (struct elf_extent){own[1], 1}));
        assert_int_equal(memory.last.count, 1);
    }
    assert_true(unwind_walk(&memory, caller, (struct elf_extent){wanted, 0}));
    assert_true(memory.last.count > 1);
}

static void ignore_signal(int number)
{
    (void)number;
    compare_here();
}

/* A signal's frame is nothing ordinary: such stacks are left to the unwinder. */
static void test_gives_up_at_a_signal_frame(void **state)
{
    (void)state;
    start_thread();
    signal(SIGUSR1, ignore_signal);
    raise(SIGUSR1);
    signal(SIGUSR1, SIG_DFL);
    assert_int_equal(walks, 1);
    assert_int_equal(gave_up, 1);
    compare_here();
    assert_int_equal(gave_up, 1);
    assert_int_equal(wrong, 0);
}

/* libunwind 1.3, of Ubuntu 22.04, gives addresses inside the calls. */
static __attribute__((noinline)) bool gives_return_addresses(void)
{
    void *found[4];
    return unwind(found, 4) > 1 && found[1] == __builtin_return_address(0);
}

static __attribute__((noinline)) uintptr_t return_address(void *kept)
{
    __asm__ volatile("" ::"r"(kept));
    return (uintptr_t)__builtin_return_address(0);
}

/* In a function whose frame's size only rbp tells. */
static __attribute__((noinline)) uintptr_t place_found_by_bp(size_t bytes)
{
    uintptr_t place = return_address(__builtin_alloca(bytes));
    __asm__ volatile("" ::: "memory");
    return place;
}

/* The first walk ends two frames on, the second meets code without tables, and so must the third. */
static void test_a_walk_that_gave_up_is_not_taken_for_the_one_before(void **state)
{
    (void)state;
    start_thread();
    uintptr_t stack[16] = {0}, place = place_found_by_bp(64);
    struct frame_rule rule = eh_frame_rule(place);
    assert_int_equal(rule.kind, RULE_BP);
    assert_int_equal(rule.cfa_offset, 2 * sizeof *stack);
    struct unwind_frame ends = {.pc = place, .sp = (uintptr_t)stack, .bp = (uintptr_t)&stack[4]};
    struct unwind_frame gives_up = {.pc = place, .sp = (uintptr_t)stack, .bp = (uintptr_t)&stack[10]};
    stack[4] = (uintptr_t)&stack[8];
    stack[5] = place;
    stack[11] = (uintptr_t)stack;
    assert_true(unwind_walk(&memory, ends, (struct elf_extent){0}));
    assert_false(unwind_walk(&memory, gives_up, (struct elf_extent){0}));
    assert_false(unwind_walk(&memory, gives_up, (struct elf_extent){0}));
}

static int set_up(void **state)
{
    (void)state;
    /* libunwind's end of a thread comes after ThreadSanitizer's, which that does not survive. */
#ifdef __SANITIZE_THREAD__
    const char *file = "libc.so.6", *name = "backtrace";
#else
    const char *file = "libunwind.so.8", *name = "unw_backtrace";
#endif
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    unwind = library == NULL ? NULL : (int (*)(void **, int))dlsym(library, name);
    if (unwind != NULL && !gives_return_addresses())
        unwind = (int (*)(void **, int))dlsym(RTLD_DEFAULT, "backtrace");
    return unwind == NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_are_what_libdw_reads),
        cmocka_unit_test(test_any_instructions_are_read_within_their_bounds),
        cmocka_unit_test(test_walks_are_libunwinds),
        cmocka_unit_test(test_walks_are_libunwinds_in_threads_at_once),
        cmocka_unit_test(test_a_register_that_is_a_counter_leaves_a_stack_unchanged),
        cmocka_unit_test(test_walk_is_cut_at_its_limit),
        cmocka_unit_test(test_walk_ends_at_the_first_address_of_the_range),
        cmocka_unit_test(test_gives_up_at_a_signal_frame),
        cmocka_unit_test(test_a_walk_that_gave_up_is_not_taken_for_the_one_before),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}

#else

static void test_elsewhere_every_walk_is_the_unwinders(void **state)
{
    (void)state;
    struct unwind_memory memory = {0};
    assert_false(unwind_walk(&memory, (struct unwind_frame){0}, (struct elf_extent){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_elsewhere_every_walk_is_the_unwinders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
