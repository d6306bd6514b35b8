/*
 * Allocates and frees very often and keeps books of it: churn CALLS THREADS. Each thread makes so many calls
 * at eight places; what it then holds stays allocated. Prints one JSON object: totals, the peak (of one
 * thread only), what each place has done, and the memory of this process after a tenth of the calls and at
 * the end. Link with -rdynamic, so that places have names.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver.h"

#define PLACES 8
#define SLOTS  997

struct account {
    uint64_t allocs, frees, allocated_bytes, live_bytes, live_blocks;
};

struct worker {
    pthread_t thread;
    uint64_t calls, seed, live_bytes, peak_bytes;
    struct account places[PLACES];
    struct {
        address address;
        uint64_t bytes;
        int place;
    } slots[SLOTS];
};

static void *context;
static long early_kib;

#define PLACE(n)                                                                                             \
    __attribute__((noinline)) int place_##n(address *address, size_t bytes)                                  \
    {                                                                                                        \
        int result = cuMemAlloc_v2(address, bytes);                                                          \
        __asm__ volatile("");                                                                                \
        return result;                                                                                       \
    }
PLACE(0)
PLACE(1)
PLACE(2)
PLACE(3)
PLACE(4)
PLACE(5)
PLACE(6)
PLACE(7)

static int (*const places[PLACES])(address *, size_t) = {place_0, place_1, place_2, place_3,
                                                         place_4, place_5, place_6, place_7};

static long resident_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        sscanf(line, "VmHWM: %ld", &kib);
    if (status != NULL)
        fclose(status);
    return kib;
}

static uint64_t next(uint64_t *seed)
{
    return (*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407) >> 33;
}

static void call(struct worker *worker)
{
    int slot = (int)(next(&worker->seed) % SLOTS), place = (int)(next(&worker->seed) % PLACES);
    struct account *account = &worker->places[worker->slots[slot].place];
    uint64_t bytes = worker->slots[slot].bytes;
    if (bytes != 0) {
        if (cuMemFree_v2(worker->slots[slot].address) != 0)
            exit(3);
        account->frees++;
        account->live_bytes -= bytes;
        account->live_blocks--;
        worker->live_bytes -= bytes;
        worker->slots[slot].bytes = 0;
        return;
    }
    bytes = 1 + next(&worker->seed) % 60000;
    if (places[place](&worker->slots[slot].address, bytes) != 0)
        exit(4);
    account = &worker->places[place];
    worker->slots[slot].bytes = bytes;
    worker->slots[slot].place = place;
    account->allocs++;
    account->allocated_bytes += bytes;
    account->live_bytes += bytes;
    account->live_blocks++;
    worker->live_bytes += bytes;
    if (worker->live_bytes > worker->peak_bytes)
        worker->peak_bytes = worker->live_bytes;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    if (cuCtxSetCurrent(context) != 0)
        exit(2);
    for (uint64_t i = 0; i < worker->calls; i++) {
        call(worker);
        if (i == worker->calls / 10 && worker->seed != 0 && early_kib == 0)
            early_kib = resident_kib();
    }
    return NULL;
}

static void print(const char *name, const struct account *account)
{
    printf("\"%s\": {\"allocs\": %llu, \"frees\": %llu, \"allocated_bytes\": %llu, \"live_bytes\": %llu, "
           "\"live_blocks\": %llu}",
           name, (unsigned long long)account->allocs, (unsigned long long)account->frees,
           (unsigned long long)account->allocated_bytes, (unsigned long long)account->live_bytes,
           (unsigned long long)account->live_blocks);
}

int main(int argc, char **argv)
{
    uint64_t calls = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    int threads = argc > 2 ? atoi(argv[2]) : 1;
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    struct account sums[PLACES] = {0};
    uint64_t peak = 0;
    if (workers == NULL || cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0)
        return 2;
    for (int i = 0; i < threads; i++) {
        workers[i].calls = calls;
        workers[i].seed = (uint64_t)i + 1;
        if (i > 0 && pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 2;
    }
    work(&workers[0]);
    for (int i = 0; i < threads; i++) {
        if (i > 0)
            pthread_join(workers[i].thread, NULL);
        for (int place = 0; place < PLACES; place++) {
            sums[place].allocs += workers[i].places[place].allocs;
            sums[place].frees += workers[i].places[place].frees;
            sums[place].allocated_bytes += workers[i].places[place].allocated_bytes;
            sums[place].live_bytes += workers[i].places[place].live_bytes;
            sums[place].live_blocks += workers[i].places[place].live_blocks;
        }
        peak += workers[i].peak_bytes;
    }
    printf("{\"peak_bytes\": %llu, \"early_kib\": %ld, \"end_kib\": %ld, \"places\": {",
           (unsigned long long)peak, early_kib, resident_kib());
    for (int place = 0; place < PLACES; place++) {
        char name[16];
        snprintf(name, sizeof name, "place_%d", place);
        print(name, &sums[place]);
        printf("%s", place + 1 < PLACES ? ", " : "}}\n");
    }
    return 0;
}
