/*
 * Programs that jump out of a call from a signal handler, as some do to give up on one that takes too long,
 * and calls made inside such a handler. The argument says what it allocates by, driver or runtime; it prints
 * what it was granted, how many blocks and their bytes.
 *
 * With -DDRIVER it is a driver in which a signal arrives at a known moment (in cuMemAlloc_v2 of JUMP or
 * INSIDE bytes), with -DRUNTIME a runtime upon it. Both call their own exports through the dynamic linker:
 * cuEventCreate calls cuMemAllocPitch_v2, which calls cuMemAlloc_v2, as cudaMalloc does.
 */
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JUMP   666
#define INSIDE 777
#define EVENT  30

typedef unsigned long long address;

int cuMemAlloc_v2(address *out, size_t bytes);
int cuMemAllocPitch_v2(address *out, size_t *pitch, size_t width, size_t height, unsigned element);
int cuEventCreate(void **event, unsigned flags);
int cuEventCreate(void **event, unsigned flags);
int cudaMalloc(void **out, size_t bytes);

#if defined(DRIVER)

int cuInit(unsigned flags)
{
    (void)flags;
    return 0;
}

int cuCtxGetCurrent(void **context)
{
    *context = NULL;
    return 0;
}

int cuMemAlloc_v2(address *out, size_t bytes)
{
    static address next = 1 << 20;
    if (bytes == JUMP)
        raise(SIGUSR1);
    if (bytes == INSIDE)
        raise(SIGUSR2);
    *out = next += 1 << 20;
    return 0;
}

int cuMemAllocPitch_v2(address *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
    (void)element;
    int rc = cuMemAlloc_v2(out, width * height);
    *pitch = width; /* after it, so that it is a call and no jump */
    return rc;
}

int cuEventCreate(void **event, unsigned flags)
{
    size_t pitch;
    (void)flags;
    return cuMemAllocPitch_v2((address *)event, &pitch, EVENT, 1, 4);
}

#elif defined(RUNTIME)

int cudaMalloc(void **out, size_t bytes)
{
    return cuMemAlloc_v2((address *)out, bytes);
}

#else

static sigjmp_buf back;
static int through_runtime, blocks;
static unsigned long long total;

static void jump(int signal)
{
    (void)signal;
    siglongjmp(back, 1);
}

__attribute__((noinline)) static void take(size_t bytes)
{
    void *pointer = NULL;
    address device = 0;
    int rc = through_runtime ? cudaMalloc(&pointer, bytes) : cuMemAlloc_v2(&device, bytes);
    if (rc != 0)
        exit(1);
    blocks++;
    total += bytes;
}

__attribute__((noinline)) static void take_pitched(size_t width, size_t height)
{
    address device;
    size_t pitch;
    if (cuMemAllocPitch_v2(&device, &pitch, width, height, 4) != 0)
        exit(1);
    blocks++;
    total += width * height;
}

static void take_event(void)
{
    void *event;
    if (cuEventCreate(&event, 0) != 0)
        exit(1);
    blocks++;
    total += EVENT;
}

/* From so much further down the stack. */
__attribute__((noinline)) static void take_below(size_t bytes, int calls)
{
    volatile char room[1000];
    room[0] = (char)calls;
    if (calls > 0)
        take_below(bytes, calls - 1);
    else
        take(bytes);
    room[1] = room[0];
}

static void inside(int signal)
{
    (void)signal;
    take(50);
}

static void give_up_on_one(int calls)
{
    if (sigsetjmp(back, 1) == 0)
        take_below(JUMP, calls);
}

int main(int count, char **arguments)
{
    static char stack[1 << 16];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction on_jump = {.sa_handler = jump},
                     on_inside = {.sa_handler = inside, .sa_flags = SA_ONSTACK};
    through_runtime = count > 1 && strcmp(arguments[1], "runtime") == 0;
    sigaltstack(&alternate, NULL);
    sigaction(SIGUSR1, &on_jump, NULL);
    sigaction(SIGUSR2, &on_inside, NULL);
    take(100);
    give_up_on_one(0); /* and then from the same depth, from below and from above */
    take(200);
    give_up_on_one(3);
    take_below(300, 3);
    give_up_on_one(3);
    take_below(400, 9);
    take_pitched(10, 50);
    give_up_on_one(9);
    take_below(600, 1);
    take_pitched(10, 70);
    give_up_on_one(9);
    take_event();
    take(INSIDE); /* and another one in its middle */
    take(800);
    take_pitched(10, 90);
    printf("%d %llu\n", blocks, total);
    return 0;
}

#endif
