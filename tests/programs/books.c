/*
 * Allocates at two places in a number of threads, by one of the ways a program reaches CUDA. Compiled once
 * for each: -DVIA_RUNTIME       cudaMalloc of the runtime library it is linked with, shared or static
 *   -DVIA_DRIVER        cuMemAlloc_v2, linked with libcuda.so.1
 *   -DVIA_DLSYM         cuMemAlloc_v2, by dlopen and dlsym
 *   -DVIA_PROC_ADDRESS  cuMemAlloc, by cuGetProcAddress
 *
 * books THREADS TURNS: in every turn a thread takes and gives back a scratch block of 4096 * (thread + 1)
 * bytes, and in every tenth turn it keeps a block of 1000 + turn bytes.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "%s gave %d\n", what, result);
        exit(1);
    }
}

#ifdef VIA_RUNTIME

int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);

typedef void *address;

static void start(void)
{
    check(cudaFree(NULL), "cudaFree(NULL)");
}

static void start_thread(void)
{
}

#define ALLOCATE cudaMalloc
#define RELEASE  cudaFree

#else

typedef unsigned long long address;

#ifdef VIA_DRIVER

int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(address *address, size_t bytes);
int cuMemFree_v2(address address);

static void look_up(void)
{
}

#define ALLOCATE    cuMemAlloc_v2
#define RELEASE     cuMemFree_v2
#define INIT        cuInit
#define RETAIN      cuDevicePrimaryCtxRetain
#define SET_CURRENT cuCtxSetCurrent

#else

static int (*INIT)(unsigned int);
static int (*RETAIN)(void **, int);
static int (*SET_CURRENT)(void *);
static int (*ALLOCATE)(address *, size_t);
static int (*RELEASE)(address);

#ifdef VIA_DLSYM

static void *find(void *driver, const char *name, int version)
{
    (void)version;
    return dlsym(driver, name);
}

#define SUFFIX "_v2"

#else

static void *find(void *driver, const char *name, int version)
{
    int (*get)(const char *, void **, int, uint64_t, int *) =
        (int (*)(const char *, void **, int, uint64_t, int *))dlsym(driver, "cuGetProcAddress_v2");
    void *found = NULL;
    check(get(name, &found, version, 0, NULL), name);
    return found;
}

#define SUFFIX ""

#endif

static void look_up(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    check(driver == NULL, "dlopen");
    INIT = (int (*)(unsigned int))find(driver, "cuInit", 2000);
    RETAIN = (int (*)(void **, int))find(driver, "cuDevicePrimaryCtxRetain", 7000);
    SET_CURRENT = (int (*)(void *))find(driver, "cuCtxSetCurrent", 4000);
    ALLOCATE = (int (*)(address *, size_t))find(driver, "cuMemAlloc" SUFFIX, 3020);
    RELEASE = (int (*)(address))find(driver, "cuMemFree" SUFFIX, 3020);
}

#endif

static void *context;

static void start(void)
{
    look_up();
    check(INIT(0), "cuInit");
    check(RETAIN(&context, 0), "cuDevicePrimaryCtxRetain");
}

static void start_thread(void)
{
    check(SET_CURRENT(context), "cuCtxSetCurrent");
}

#endif

static int turns;

/* What follows a call keeps it from being a jump, which would leave no frame of its caller. */
__attribute__((noinline)) void keep(size_t bytes)
{
    address block;
    check(ALLOCATE(&block, bytes), "allocate");
}

__attribute__((noinline)) void scratch(size_t bytes)
{
    address block;
    check(ALLOCATE(&block, bytes), "allocate");
    check(RELEASE(block), "release");
}

static void *work(void *argument)
{
    size_t thread = (size_t)argument;
    start_thread();
    for (int turn = 0; turn < turns; turn++) {
        scratch(4096 * (thread + 1));
        if (turn % 10 == 0)
            keep(1000 + (size_t)turn);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int threads = atoi(argv[1]);
    turns = atoi(argv[2]);
    start();
    pthread_t *ids = calloc((size_t)threads, sizeof *ids);
    for (int i = 0; i < threads; i++)
        check(pthread_create(&ids[i], NULL, work, (void *)(size_t)i), "pthread_create");
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    free(ids);
    return 0;
}
