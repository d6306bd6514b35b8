/*
 * Allocates in the constructor of a library (EARLY_LIBRARY) that the program is linked with, in the thread
 * that it runs in and in one of its own, before main() and before the constructors of what is preloaded.
 * With EARLY_PROGRAM library and program are one.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, size_t);
int early(void);

#ifdef EARLY_LIBRARY

static int status;

static void *allocate(void *bytes)
{
    unsigned long long address;
    void *context;
    status |= cuInit(0) | cuDevicePrimaryCtxRetain(&context, 0) | cuCtxSetCurrent(context) |
              cuMemAlloc_v2(&address, (size_t)bytes);
    return NULL;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    status |= pthread_create(&thread, NULL, allocate, (void *)1000) | pthread_join(thread, NULL);
    allocate((void *)200);
}

int early(void)
{
    return status;
}

#endif
#if !defined EARLY_LIBRARY || defined EARLY_PROGRAM

int main(void)
{
    unsigned long long address;
    if (cuMemAlloc_v2(&address, 30) != 0)
        return 1;
    printf("%d\n", early());
    return 0;
}

#endif
