/*
 * Loads for what is measured from outside: many blocks, many places, many events. Each is one call of
 * inside.py's, on the CUDA driver.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "shape.h"

#define BYTES 512

typedef unsigned long long address;

static int (*allocate)(address *, size_t);
static int (*release)(address);

int load_start(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL)
        return -1;
    allocate = (int (*)(address *, size_t))dlsym(driver, "cuMemAlloc_v2");
    release = (int (*)(address))dlsym(driver, "cuMemFree_v2");
    return 0;
}

static void allocate_one(void *block)
{
    allocate(block, BYTES);
}

/* `count` blocks from one place; they live on. */
void load_blocks(unsigned frames, unsigned count)
{
    address block;
    for (unsigned i = 0; i < count; i++)
        shape_descend(frames, 0, allocate_one, &block);
}

/* Here, and nowhere else: each call has a return address, and so a site, of its own. */
static __attribute__((noinline)) void allocate_at(unsigned frames, unsigned place, address *block)
{
    shape_descend(frames, place, allocate_one, block);
}

/* Two blocks from each of `count` places, of which one lives on. */
void load_sites(unsigned frames, unsigned count)
{
    address block = 0;
    for (unsigned i = 0; i < 2 * count; i++) {
        if (i % 2 != 0)
            release(block);
        allocate_at(frames, i / 2, &block);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

struct replacement {
    address *block;
    size_t bytes;
};

static void replace(void *arg)
{
    struct replacement *replacement = arg;
    if (*replacement->block != 0)
        release(*replacement->block);
    allocate(replacement->block, replacement->bytes);
}

/* About `events` events at `sites` places, with up to `living` blocks alive, each of which may be the next to
 * be replaced. */
void load_events(unsigned frames, unsigned sites, unsigned living, uint64_t events)
{
    address *blocks = calloc(living, sizeof *blocks);
    uint64_t random = 88172645463325252u;
    for (uint64_t i = 0; blocks != NULL && i < events / 2; i++) {
        uint64_t number = next_random(&random);
        struct replacement replacement = {&blocks[number % living], (number >> 40) % 65536 + 1};
        shape_descend(frames, (unsigned)(number >> 20) % sites, replace, &replacement);
    }
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The process's end. Says when it began: in ns of CLOCK_MONOTONIC and of processor time. */
void load_exit(void)
{
    dprintf(STDOUT_FILENO, "[%llu, %llu]\n", (unsigned long long)now_ns(CLOCK_MONOTONIC),
            (unsigned long long)now_ns(CLOCK_PROCESS_CPUTIME_ID));
    _exit(0);
}
