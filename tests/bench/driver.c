/*
 * A driver that takes no locks and hands out addresses from what each thread has, in a few instructions: with
 * it, what several threads can do at once is up to the tracer alone. The simulated GPU's has one lock, and
 * two threads get less from it together than one gets alone.
 */
#include <stddef.h>
#include <stdint.h>

#define BLOCK_BYTES  65536
#define THREAD_BYTES ((address)1 << 32)
#define FREED_MAX    512

typedef unsigned long long address;

static int the_context;
static _Atomic address threads;
static __thread void *current;
static __thread address next, freed[FREED_MAX];
static __thread unsigned freed_count;

int cuInit(unsigned flags)
{
    return (int)flags;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = &the_context;
    return device;
}

int cuCtxSetCurrent(void *context)
{
    current = context;
    return 0;
}

int cuCtxGetCurrent(void **context)
{
    *context = current;
    return 0;
}

int cuCtxGetDevice(int *device)
{
    return *device = 0;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = *total_bytes = (size_t)1 << 40;
    return 0;
}

int cuMemAlloc_v2(address *block, size_t bytes)
{
    (void)bytes;
    if (next == 0)
        next = THREAD_BYTES * ++threads;
    if (freed_count > 0) {
        *block = freed[--freed_count];
    } else {
        *block = next;
        next += BLOCK_BYTES;
    }
    return 0;
}

int cuMemFree_v2(address block)
{
    if (freed_count < FREED_MAX)
        freed[freed_count++] = block;
    return 0;
}
