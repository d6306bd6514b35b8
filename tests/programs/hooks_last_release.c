/*
 * The last release of a primary context, and what others do at that moment. The argument says what:
 *   reuse   the moment the driver has ended the context, before its function returns, another thread retains
 *           it anew and is given an address that was in use before
 *   green   a green context, of which the hooks do not see that it holds the primary one too, outlives the
 *           release
 *
 * With -DDRIVER it is a driver that does so on purpose: addresses are handed out from the start again after
 * the context has ended.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long address;

int cuInit(unsigned flags);
int cuCtxSetCurrent(void *context);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuMemAlloc_v2(address *out, size_t bytes);
int cuGreenCtxCreate(void **out, void *description, int device, unsigned flags);
int cuGreenCtxDestroy(void *green);

#ifdef DRIVER

sem_t context_ended, go_on;
int waits_at_the_end;

static int references, primary;
static address next;
static __thread void *current;

__attribute__((constructor)) static void start(void)
{
    sem_init(&context_ended, 0, 0);
    sem_init(&go_on, 0, 0);
}

int cuInit(unsigned flags)
{
    (void)flags;
    return 0;
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
    *device = 0;
    return current == NULL ? 201 : 0;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    (void)device;
    *flags = 0;
    *active = references > 0;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    *context = &primary;
    references++;
    return 0;
}

static void release(void)
{
    if (--references > 0)
        return;
    next = 0;
    if (waits_at_the_end) {
        waits_at_the_end = 0;
        sem_post(&context_ended);
        sem_wait(&go_on);
    }
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    release();
    return 0;
}

int cuMemAlloc_v2(address *out, size_t bytes)
{
    (void)bytes;
    *out = next += 1 << 20;
    return 0;
}

int cuGreenCtxCreate(void **out, void *description, int device, unsigned flags)
{
    (void)description, (void)device, (void)flags;
    references++;
    *out = &references;
    return 0;
}

int cuGreenCtxDestroy(void *green)
{
    (void)green;
    release();
    return 0;
}

#else

extern sem_t context_ended, go_on;
extern int waits_at_the_end;

static void check(int result)
{
    if (result != 0)
        exit(1);
}

static void use(void)
{
    void *context;
    check(cuDevicePrimaryCtxRetain(&context, 0));
    check(cuCtxSetCurrent(context));
}

__attribute__((noinline)) static address take(size_t bytes)
{
    address block;
    check(cuMemAlloc_v2(&block, bytes));
    return block;
}

static void *take_meanwhile(void *block)
{
    sem_wait(&context_ended);
    use();
    *(address *)block = take(4000);
    sem_post(&go_on);
    return NULL;
}

static void reuse(void)
{
    pthread_t other;
    address before = take(1000), after;
    take(2000);
    waits_at_the_end = 1;
    pthread_create(&other, NULL, take_meanwhile, &after);
    check(cuDevicePrimaryCtxRelease_v2(0));
    pthread_join(other, NULL);
    puts(before == after ? "the same address" : "another address");
}

static void green(void)
{
    void *context;
    check(cuGreenCtxCreate(&context, NULL, 0, 0));
    take(1000);
    check(cuDevicePrimaryCtxRelease_v2(0));
    take(2000);
    use();
    check(cuDevicePrimaryCtxRelease_v2(0));
    take(3000);
    check(cuGreenCtxDestroy(context));
    use();
    take(4000);
}

int main(int count, char **arguments)
{
    if (count < 2)
        return 2;
    check(cuInit(0));
    use();
    if (strcmp(arguments[1], "reuse") == 0)
        reuse();
    else
        green();
    return 0;
}

#endif
