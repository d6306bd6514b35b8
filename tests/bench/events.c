/*
 * What an event costs: times calls that allocate and free, from a stack of a chosen shape, in the calling
 * thread. The same loops for the driver's cuMemAlloc and for malloc, with or without a tracer in the process;
 * the difference is the tracer's. Called by inside.py, from as many Python frames as are wanted.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "shape.h"

#define BLOCKS    256 /* allocated, then freed: a round */
#define ROUNDS    150
#define BYTES     4096
#define SAMPLES   4096
#define WINDOW_NS 60000000

typedef unsigned long long address;

struct result {
    double alloc_ns, free_ns;          /* a call, of the thread's processor time: the median of all rounds */
    double events;                     /* calls of this thread while all run, */
    double began_ns, ended_ns, ran_ns; /* by the clock on the wall, and of processor time */
    double latency_ns;                 /* an allocation timed by itself, while all threads run: the median */
};

struct job {
    unsigned frames;
    pthread_barrier_t *together; /* of all threads */
    struct result *result;
};

static int (*allocate)(address *, size_t);
static int (*release)(address);
static int (*use_context)(void *);
static void *context;

static int allocate_plainly(address *block, size_t bytes)
{
    *block = (uintptr_t)malloc(bytes);
    return 0;
}

static int release_plainly(address block)
{
    free((void *)(uintptr_t)block);
    return 0;
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static void time_rounds(struct result *result, address *blocks)
{
    double alloc_ns[ROUNDS], free_ns[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = now_ns(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < BLOCKS; i++)
            allocate(&blocks[i], BYTES);
        uint64_t middle = now_ns(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < BLOCKS; i++)
            release(blocks[i]);
        uint64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID);
        alloc_ns[round] = (double)(middle - start) / BLOCKS;
        free_ns[round] = (double)(end - middle) / BLOCKS;
    }
    result->alloc_ns = median(alloc_ns, ROUNDS);
    result->free_ns = median(free_ns, ROUNDS);
}

static void time_throughput(struct result *result, address *blocks)
{
    uint64_t start = now_ns(CLOCK_MONOTONIC), ran = now_ns(CLOCK_THREAD_CPUTIME_ID), events = 0, end;
    do {
        for (int i = 0; i < BLOCKS; i++)
            allocate(&blocks[i], BYTES);
        for (int i = 0; i < BLOCKS; i++)
            release(blocks[i]);
        events += 2 * BLOCKS;
        end = now_ns(CLOCK_MONOTONIC);
    } while (end - start < WINDOW_NS);
    result->events = (double)events;
    result->began_ns = (double)start;
    result->ended_ns = (double)end;
    result->ran_ns = (double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - ran);
}

static void time_latency(struct result *result, address *blocks)
{
    double *samples = malloc(SAMPLES * sizeof *samples);
    for (size_t count = 0; samples != NULL && count < SAMPLES; count += BLOCKS) {
        for (int i = 0; i < BLOCKS; i++) {
            uint64_t start = now_ns(CLOCK_MONOTONIC);
            allocate(&blocks[i], BYTES);
            samples[count + i] = (double)(now_ns(CLOCK_MONOTONIC) - start);
        }
        for (int i = 0; i < BLOCKS; i++)
            release(blocks[i]);
    }
    result->latency_ns = samples == NULL ? 0 : median(samples, SAMPLES);
    free(samples);
}

static void measure(void *arg)
{
    static void (*const parts[])(struct result *, address *) = {time_rounds, time_throughput, time_latency};
    struct job *job = arg;
    address blocks[BLOCKS];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        pthread_barrier_wait(job->together);
        parts[i](job->result, blocks);
    }
}

/* Uses malloc, or the CUDA driver that the loader finds. 0, or -1 when there is no driver. */
int events_use(bool plain)
{
    if (plain) {
        allocate = allocate_plainly;
        release = release_plainly;
        return 0;
    }
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL)
        return -1;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
    use_context = (int (*)(void *))dlsym(driver, "cuCtxSetCurrent");
    allocate = (int (*)(address *, size_t))dlsym(driver, "cuMemAlloc_v2");
    release = (int (*)(address))dlsym(driver, "cuMemFree_v2");
    return init(0) != 0 || retain(&context, 0) != 0 ? -1 : 0;
}

pthread_barrier_t *events_barrier(unsigned threads)
{
    pthread_barrier_t *barrier = malloc(sizeof *barrier);
    if (barrier != NULL)
        pthread_barrier_init(barrier, NULL, threads);
    return barrier;
}

/* In each of the threads that the barrier is for. */
void events_measure(unsigned frames, pthread_barrier_t *together, struct result *result)
{
    struct job job = {frames, together, result};
    if (use_context != NULL)
        use_context(context);
    shape_descend(frames, 0, measure, &job);
}
