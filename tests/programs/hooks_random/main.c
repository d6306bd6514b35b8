/*
 * A long random sequence of driver calls of every family, valid and invalid, and books of what they should
 * come to.
 *
 *   hooks_random SEED STEPS THREADS [v]
 *   hooks_random share SOCKET THREADS     what the first one starts (shared.c)
 *
 * Prints, for each thread, a digest of every result (return codes, and addresses by the order in which they
 * first appeared; of handles, which the driver takes from malloc, only that there is one), with v every
 * result, and then the books: one line a family, summed over threads. The books follow NVIDIA's documentation
 * and what counts by the project's accounting, not what the library says. In several threads no thread
 * touches what may be another's.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "work.h"

#define AS_DEFINITION(name, version, parameters) CUresult(*name) parameters;
FUNCTIONS(AS_DEFINITION)

static const char *const names[] = {"plain",  "pitched",    "managed", "pool", "vmm",     "array",
                                    "pinned", "registered", "graph",   "ipc",  "external"};

static void step(struct work *work)
{
    static void (*const kinds[])(struct work *) = {
        allocate_device, allocate_device,   allocate_device, allocate_host,   allocate_pool,
        allocate_pool,   allocate_array,    create_handle,   map_handle,      map_handle,
        unmap_slot,      change_references, open_shared,     import_handle,   import_pointer,
        change_external, create_multicast,  change_bindings, change_bindings, change_sparse,
        change_sparse,   change_sparse};
    if (work->thing_count > THINGS - 8 || random_below(work, 100) < 36)
        free_something(work);
    else if (random_below(work, 100) < 5)
        free_nonsense(work);
    else if (random_below(work, 100) < 2)
        change_contexts(work);
    else if (random_below(work, 100) < 4)
        change_pools(work);
    else if (random_below(work, 100) < 5)
        tell_graph_story(work);
    else
        kinds[random_below(work, sizeof kinds / sizeof *kinds)](work);
}

static void *run(void *argument)
{
    struct work *work = argument;
    if (cuCtxSetCurrent(work->primary) != CUDA_SUCCESS || cuStreamCreate(&work->stream, 1) != CUDA_SUCCESS ||
        cuMemAddressReserve(&work->range, SLOTS * GRANULE, 0, 0, 0) != CUDA_SUCCESS)
        abort();
    memset(work->slots, 0xff, sizeof work->slots);
    if (posix_memalign((void **)&work->pages, 4096, 4096 * 256))
        abort();
    external_start(work);
    sparse_start(work);
    for (int i = 0; i < BINDINGS; i++)
        work->bindings[i].object = -1;
    for (unsigned i = 0; i < work->steps; i++)
        step(work);
    size_t free_bytes = 0, total = 0;
    note(work, "info", cuMemGetInfo_v2(&free_bytes, &total), work->threads == 1 ? free_bytes : 0);
    return NULL;
}

static void find_functions(unsigned long long seed)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    CUresult (*get)(const char *, void **, int, cuuint64_t, void *) =
        driver == NULL ? NULL : (__typeof__(get))dlsym(driver, "cuGetProcAddress_v2");
    if (get == NULL)
        abort();
#define FIND(name, version, parameters)                                                                      \
    name = (CUresult(*) parameters)dlsym(driver, #name);                                                     \
    if ((version) != 0 && seed % 2 == 1) {                                                                   \
        char bare[64];                                                                                       \
        strcpy(bare, #name);                                                                                 \
        if (strstr(bare, "_v2") != NULL)                                                                     \
            *strstr(bare, "_v2") = '\0';                                                                     \
        if (get(bare, (void **)&name, version, 0, NULL) != CUDA_SUCCESS)                                     \
            abort();                                                                                         \
    }
    FUNCTIONS(FIND)
}

int main(int count, char **arguments)
{
    if (count < 4)
        return 2;
    unsigned long long seed = strtoull(arguments[1], NULL, 10);
    unsigned threads = (unsigned)atoi(arguments[3]);
    CUcontext primary;
    struct work *works = calloc(threads, sizeof *works);
    pthread_t *ids = calloc(threads, sizeof *ids);
    find_functions(seed);
    if (strcmp(arguments[1], "share") == 0)
        return shared_be_the_other(atoi(arguments[2]), threads);
    shared_start(works, threads);
    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&primary, 0) != CUDA_SUCCESS)
        return 3;
    for (unsigned i = 0; i < threads; i++) {
        works[i].seed = seed * 1000 + i;
        works[i].number = i;
        works[i].steps = (unsigned)atoi(arguments[2]);
        works[i].threads = threads;
        works[i].primary = primary;
        works[i].verbose = count > 4;
    }
    /* Recording begins with the first allocation: what is freed before it is nobody's business. */
    cuCtxSetCurrent(primary);
    CUdeviceptr first = 0;
    CUresult rc = cuMemAlloc_v2(&first, 4096);
    allocated(&works[0], "first", rc, PLAIN, BY_FREE, first, 4096);
    for (unsigned i = 0; i < threads; i++) {
        if (threads == 1)
            run(&works[i]);
        else if (pthread_create(&ids[i], NULL, run, &works[i]) != 0)
            abort();
    }
    unsigned long long foreign = 0;
    for (unsigned i = 0; i < threads; i++) {
        if (threads > 1)
            pthread_join(ids[i], NULL);
        else
            printf("digest %016llx\n", works[i].digest);
        foreign += works[i].foreign;
    }
    for (int family = 0; family < FAMILIES; family++) {
        struct books sum = {0};
        for (unsigned i = 0; i < threads; i++) {
            const struct books *books = &works[i].books[family];
            sum.allocs += books->allocs;
            sum.frees += books->frees;
            sum.teardowns += books->teardowns;
            sum.allocated += books->allocated;
            sum.live += books->live;
            sum.blocks += books->blocks;
            sum.failed += books->failed;
        }
        printf(
            "%s allocs %llu frees %llu teardowns %llu allocated_bytes %llu live_bytes %llu live_blocks %llu "
            "failed %llu\n",
            names[family], sum.allocs, sum.frees, sum.teardowns, sum.allocated, sum.live, sum.blocks,
            sum.failed);
    }
    printf("foreign %llu\n", foreign);
    free(works);
    free(ids);
    return 0;
}
