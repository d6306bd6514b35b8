/*
 * What taking a stack costs, beside what it is made of. A Python program (bench_capture.py) goes down a
 * chosen number of Python and of native frames (bench_descend.c) and there has bench_capture() time, in
 * turns, a whole capture, a bare unw_backtrace of as many native frames, and a bare walk of the Python frames
 * that keeps nothing but code and instruction.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "capture/capture.h"
#include "capture/python_runtime.h"

#define CALLS  200
#define ROUNDS 150
#define EXPORT __attribute__((visibility("default")))

struct result {
    double capture_ns, unwind_ns, walk_ns; /* a call, the median of all rounds */
    int native_frames, python_frames;      /* that the capture found */
};

struct bare_frame {
    const void *code;
    uintptr_t instruction;
};

static int (*unwind)(void **, int);

static void ignore(const char *sentence)
{
    (void)sentence;
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

__attribute__((noinline)) static int bare_walk(struct bare_frame *frames, int max)
{
    const struct python_runtime *python = atomic_load(&python_ready);
    const struct python_layout *layout = &python->layout;
    if (python->is_finalizing())
        return 0;
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
        frames[count].code = code;
        frames[count++].instruction = PYTHON_FIELD(uintptr_t, frame, layout->frame_instruction);
    }
    return count;
}

EXPORT void bench_capture(struct result *result)
{
    double capture_ns[ROUNDS], unwind_ns[ROUNDS], walk_ns[ROUNDS];
    void *addresses[CAPTURE_DEPTH_MAX];
    struct bare_frame frames[CAPTURE_DEPTH_MAX];
    struct raw_stack stack;
    capture_take(&stack);
    result->native_frames = (int)stack.native_count;
    result->python_frames = (int)stack.python_count;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = now_ns();
        for (int i = 0; i < CALLS; i++)
            capture_take(&stack);
        uint64_t middle = now_ns();
        for (int i = 0; unwind != NULL && i < CALLS; i++)
            unwind(addresses, result->native_frames + 1); /* and the interpreter, where it ends */
        uint64_t end = now_ns();
        capture_ns[round] = (double)(middle - start) / CALLS;
        unwind_ns[round] = (double)(end - middle) / CALLS;
        start = now_ns();
        for (int i = 0; i < CALLS; i++)
            bare_walk(frames, CAPTURE_DEPTH_MAX);
        walk_ns[round] = (double)(now_ns() - start) / CALLS;
    }
    result->capture_ns = median(capture_ns);
    result->unwind_ns = median(unwind_ns);
    result->walk_ns = median(walk_ns);
}

EXPORT void bench_start(void)
{
    void *libunwind = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (libunwind != NULL)
        unwind = (int (*)(void **, int))dlsym(libunwind, "unw_backtrace");
    capture_start(CAPTURE_MIXED, 256, ignore);
}
