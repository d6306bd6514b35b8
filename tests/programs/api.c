/* The public header, in a program that is C and C++ alike: each figure it is told goes to stdout. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "gpumemtrace.h"

#define MIB ((size_t)1 << 20)

static int (*init)(unsigned);
static int (*retain)(void **, int);
static int (*use)(void *);
static int (*allocate)(unsigned long long *, size_t);
static int (*release_memory)(unsigned long long);

static void find(void *driver, const char *name, void *function, size_t bytes)
{
    void *found = dlsym(driver, name);
    memcpy(function, &found, bytes);
}

#define FIND(name, function) find(driver, name, &(function), sizeof(function))

static void start_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
    FIND("cuInit", init);
    FIND("cuDevicePrimaryCtxRetain", retain);
    FIND("cuCtxSetCurrent", use);
    FIND("cuMemAlloc_v2", allocate);
    FIND("cuMemFree_v2", release_memory);
    init(0);
    retain(&context, 0);
    use(context);
}

static void tell(const char *what, int mark, int layer, int device)
{
    struct gpumemtrace_usage usage;
    memset(&usage, 0xee, sizeof usage);
    int known = gpumemtrace_get_usage(mark, layer, device, &usage);
    printf("%s %d %llu %llu %llu %llu\n", what, known, (unsigned long long)usage.live_bytes,
           (unsigned long long)usage.live_blocks, (unsigned long long)usage.start_bytes,
           (unsigned long long)usage.peak_bytes);
}

static void *in_thread(void *address)
{
    gpumemtrace_block_begin("rmm", (char *)address + 8 * MIB, 3 * MIB, -1);
    gpumemtrace_block_end("rmm", (char *)address + 8 * MIB);
    return NULL;
}

int main(void)
{
    unsigned long long segment = 0, other = 0;
    pthread_t thread;
    errno = 123;
    int early = gpumemtrace_mark();
    tell("before", early, GPUMEMTRACE_DRIVER, 0);
    start_driver();
    errno = 123;
    printf("active %d\n", gpumemtrace_active());
    allocate(&segment, 64 * MIB);
    char *memory = (char *)(size_t)segment;
    int mark = gpumemtrace_mark();
    allocate(&other, 32 * MIB);
    release_memory(other);
    gpumemtrace_block_begin("rmm", memory, 10 * MIB, 0);
    gpumemtrace_block_begin("rmm", memory + 16 * MIB, 20 * MIB, 0);
    gpumemtrace_block_begin("cupy", memory + 16 * MIB, 5 * MIB, 0); /* a pool upon a pool */
    gpumemtrace_block_end("cupy", memory + 16 * MIB);
    gpumemtrace_block_end("rmm", memory + 16 * MIB);
    gpumemtrace_block_end("rmm", memory + 1); /* nobody's */
    gpumemtrace_block_end("numba", memory);
    pthread_create(&thread, NULL, in_thread, memory);
    pthread_join(thread, NULL);
    gpumemtrace_phase_begin("a phase");
    gpumemtrace_step();
    gpumemtrace_phase_end();
    tell("driver", mark, GPUMEMTRACE_DRIVER, 0);
    tell("framework", mark, GPUMEMTRACE_FRAMEWORK, 0);
    tell("all", mark, GPUMEMTRACE_FRAMEWORK, GPUMEMTRACE_ALL_DEVICES);
    tell("early", early, GPUMEMTRACE_DRIVER, 0);
    tell("run", 0, GPUMEMTRACE_DRIVER, 0);
    tell("elsewhere", mark, GPUMEMTRACE_DRIVER, 1);
    gpumemtrace_unmark(mark);
    tell("unmarked", mark, GPUMEMTRACE_DRIVER, 0);
    tell("layer", 0, 2, 0);
    tell("device", 0, 0, 16);
    gpumemtrace_unmark(0);
    gpumemtrace_unmark(-7);
    printf("errno %d, dlerror %s\n", errno, dlerror() == NULL ? "none" : "some");
    return 0;
}
