/*
 * What one event costs. A Python program (bench_event.py) calls bench() from a chosen number of Python
 * frames; bench() goes down a chosen number of native frames and there times the driver's calls, and by
 * itself a bare unw_backtrace of the same stack. Run once with the library preloaded and once without: the
 * difference is the library's.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define BLOCKS 256
#define ROUNDS 60

typedef unsigned long long address;

struct result {
    double alloc_ns, free_ns; /* a call, the median of all rounds */
    double unwind_ns;         /* unw_backtrace of this stack; 0 without libunwind */
    int native_frames;        /* that it found, out to main */
};

static int (*allocate)(address *, size_t);
static int (*release)(address);
static int (*unwind)(void **, int);

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

static void measure(struct result *result)
{
    static double alloc_ns[ROUNDS], free_ns[ROUNDS], unwind_ns[ROUNDS];
    static address blocks[BLOCKS];
    void *frames[128];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = now_ns();
        for (int i = 0; i < BLOCKS; i++)
            allocate(&blocks[i], 4096);
        uint64_t middle = now_ns();
        for (int i = 0; i < BLOCKS; i++)
            release(blocks[i]);
        uint64_t end = now_ns();
        alloc_ns[round] = (double)(middle - start) / BLOCKS;
        free_ns[round] = (double)(end - middle) / BLOCKS;
        start = now_ns();
        for (int i = 0; unwind != NULL && i < BLOCKS; i++)
            result->native_frames = unwind(frames, 128);
        unwind_ns[round] = (double)(now_ns() - start) / BLOCKS;
    }
    result->alloc_ns = median(alloc_ns);
    result->free_ns = median(free_ns);
    result->unwind_ns = unwind == NULL ? 0 : median(unwind_ns);
}

/* The work after the call keeps it from being a jump. */
__attribute__((noinline)) static int descend(int frames, struct result *result)
{
    if (frames <= 1)
        measure(result);
    else
        descend(frames - 1, result);
    __asm__ volatile("" ::: "memory");
    return frames;
}

int bench(int native_frames, struct result *result)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *libunwind = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (driver == NULL)
        return -1;
    allocate = (int (*)(address *, size_t))dlsym(driver, "cuMemAlloc_v2");
    release = (int (*)(address))dlsym(driver, "cuMemFree_v2");
    if (libunwind != NULL)
        unwind = (int (*)(void **, int))dlsym(libunwind, "unw_backtrace");
    descend(native_frames, result);
    return 0;
}
