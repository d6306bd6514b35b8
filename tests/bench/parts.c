/*
 * What an event is made of, each part by itself, from a stack of a chosen shape; and beside taking the stack,
 * other ways to take one. Called by inside.py, from as many Python frames as are wanted.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "capture/capture.h"
#include "capture/python_runtime.h"
#include "capture/stack_table.h"
#include "ledger/ledger.h"
#include "shape.h"
#include "trace/writer.h"

#define CALLS  256
#define ROUNDS 150
#define EXPORT __attribute__((visibility("default")))

/* Of each thread that measures. */
static __thread struct raw_stack stack;
static __thread uintptr_t stack_end;

/* What the parts work on. */
static struct {
    struct arena arena;
    struct stack_table *stacks;
    struct catalog *catalog;
    struct ledger *ledger;
    struct trace_writer writer;
    uint32_t site;
    uint64_t time_ns;
    int (*unwind)(void **, int);
} bench;

static void ignore(const char *sentence)
{
    (void)sentence;
}

static void take(void)
{
    for (int i = 0; i < CALLS; i++)
        capture_take(&stack);
}

static void unwind(void)
{
    void *addresses[CAPTURE_DEPTH_MAX];
    for (int i = 0; bench.unwind != NULL && i < CALLS; i++)
        bench.unwind(addresses, (int)stack.native_count + 1); /* and the interpreter, where it ends */
}

static void c_library(void)
{
    void *addresses[CAPTURE_DEPTH_MAX];
    for (int i = 0; i < CALLS; i++)
        backtrace(addresses, (int)stack.native_count + 1);
}

/* Goes wrong in code without frame pointers, such as the interpreter's and the C library's. */
__attribute__((noinline)) static int walk_frame_pointers(uintptr_t *addresses, int max)
{
    const uintptr_t *frame = __builtin_frame_address(0);
    int count = 0;
    while (count < max) {
        addresses[count++] = frame[1];
        const uintptr_t *next = (const uintptr_t *)frame[0];
        if (next <= frame || (uintptr_t)(next + 2) > stack_end || (uintptr_t)next % sizeof *next != 0)
            break;
        frame = next;
    }
    return count;
}

static void frame_pointers(void)
{
    uintptr_t addresses[CAPTURE_DEPTH_MAX];
    for (int i = 0; i < CALLS; i++)
        walk_frame_pointers(addresses, (int)stack.native_count);
}

/* Keeps nothing but code and instruction. */
__attribute__((noinline)) static int walk_python(uintptr_t (*frames)[2], int max)
{
    const struct python_runtime *python = atomic_load(&python_ready);
    if (python == NULL || python->is_finalizing())
        return 0;
    const struct python_layout *layout = &python->layout;
    const char *frame = PYTHON_FIELD(const char *, python->this_thread_state(), layout->thread_frame);
    if (layout->via_cframe)
        frame = PYTHON_FIELD(const char *, frame, layout->cframe_frame);
    int count = 0;
    for (; frame != NULL && count < max; frame = PYTHON_FIELD(const char *, frame, layout->frame_previous)) {
        const char *code =
            (const char *)(PYTHON_FIELD(uintptr_t, frame, layout->frame_code) & ~(uintptr_t)layout->tag_mask);
        if (!layout->object_frames &&
            (PYTHON_FIELD(uint8_t, frame, layout->frame_owner) >= PYTHON_OWNERS ||
             PYTHON_FIELD(const char *, code, layout->object_type) != python->code_type))
            continue;
        frames[count][0] = (uintptr_t)code;
        frames[count++][1] = PYTHON_FIELD(uintptr_t, frame, layout->frame_instruction);
    }
    return count;
}

static void python(void)
{
    uintptr_t frames[CAPTURE_DEPTH_MAX][2];
    for (int i = 0; i < CALLS; i++)
        walk_python(frames, CAPTURE_DEPTH_MAX);
}

static void look_up(void)
{
    for (int i = 0; i < CALLS; i++)
        bench.site = stack_table_find(bench.stacks, &stack, 0);
}

static struct event event_of(int i)
{
    return (struct event){.type = i < CALLS / 2 ? EVENT_ALLOC : EVENT_FREE,
                          .key = block_key(KEY_ADDRESS, 0x7f0000000000u + (uint64_t)(i % (CALLS / 2)) * 4096),
                          .size = 4096,
                          .context = 1,
                          .time_ns = bench.time_ns += 300};
}

/* As many blocks begin as end, here and below. */
static void books(void)
{
    struct block ended;
    for (int i = 0; i < CALLS; i++) {
        struct event event = event_of(i);
        ledger_apply(bench.ledger, &event, &ended);
    }
}

static void record(void)
{
    for (int i = 0; i < CALLS; i++) {
        struct event event = event_of(i);
        trace_put_event(&bench.writer, &event);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} parts[] = {
    {"take", take},     {"unwind", unwind},   {"backtrace", c_library}, {"frame pointers", frame_pointers},
    {"python", python}, {"look-up", look_up}, {"ledger", books},        {"record", record},
};

#define PARTS (sizeof parts / sizeof *parts)

EXPORT const char *parts_name(unsigned index)
{
    return index < PARTS ? parts[index].name : NULL;
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median_ns(void (*run)(void))
{
    double ns[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = now_ns();
        run();
        ns[round] = (double)(now_ns() - start) / CALLS;
    }
    qsort(ns, ROUNDS, sizeof *ns, compare);
    return ns[ROUNDS / 2];
}

static void find_stack_end(void)
{
    pthread_attr_t attributes;
    void *start;
    size_t bytes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &start, &bytes) == 0)
        stack_end = (uintptr_t)start + bytes;
    pthread_attr_destroy(&attributes);
}

/* What several threads may measure at once: the ways to take a stack, which stand first in the table. */
#define PARTS_OF_CAPTURE 5

/* Fills ns[], in the order of the names, with the time a call takes, and frames[] with how many native and
 * Python frames were taken and how many frame pointers lead to. */
static void measure(void *arg)
{
    void **results = arg;
    double *ns = results[0];
    int *frames = results[1];
    unsigned count = *(unsigned *)results[2];
    uintptr_t addresses[CAPTURE_DEPTH_MAX];
    find_stack_end();
    for (int i = 0; i < 3; i++) /* an interpreter is looked at before it is read */
        capture_take(&stack);
    if (count == PARTS)
        stack_table_add(bench.stacks, &stack, 0, 1);
    frames[0] = (int)stack.native_count;
    frames[1] = (int)stack.python_count;
    frames[2] = walk_frame_pointers(addresses, CAPTURE_DEPTH_MAX);
    for (unsigned i = 0; i < count; i++)
        ns[i] = median_ns(parts[i].run);
}

EXPORT void parts_measure(unsigned native_frames, int alone, double *ns, int *frames)
{
    unsigned count = alone ? PARTS : PARTS_OF_CAPTURE;
    void *results[] = {ns, frames, &count};
    shape_descend(native_frames, 0, measure, results);
}

static void put_everything(struct trace_writer *writer, void *unused)
{
    (void)unused;
    trace_put_catalog(writer, bench.catalog);
}

/* 0, or -1 when the recording cannot be made at `path`. */
EXPORT int parts_start(const char *path)
{
    struct process_info process = {.pid = (uint32_t)getpid(), .boot_id = "", .session = ""};
    void *libunwind = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (libunwind != NULL)
        bench.unwind = (int (*)(void **, int))dlsym(libunwind, "unw_backtrace");
    capture_start(CAPTURE_MIXED, 256, ignore);
    bench.stacks = stack_table_create(&bench.arena, 1 << 20);
    bench.catalog = catalog_create(&bench.arena);
    bench.ledger = ledger_create(&bench.arena, bench.catalog);
    if (trace_writer_open(&bench.writer, path, &process, 64 << 20, put_everything, NULL) != 0)
        return -1;
    struct site_key key = {.stack = CATALOG_NONE,
                           .api = catalog_add_string(bench.catalog, "cuMemAlloc", 10, NULL),
                           .family = FAMILY_PLAIN,
                           .space = SPACE_DEVICE};
    catalog_add_site(bench.catalog, &key, NULL);
    put_everything(&bench.writer, NULL);
    return 0;
}
