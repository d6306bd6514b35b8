/*
 * Two threads that make a context in the same moment. Built with -DTOOL it is a tool that stands behind us
 * and sees to that: both calls have begun before either goes on to the driver, and the driver has answered
 * both before either returns.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef TOOL
#include <dlfcn.h>

static pthread_barrier_t both;

static __attribute__((constructor)) void make_barrier(void)
{
    pthread_barrier_init(&both, NULL, 2);
}

int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
    int (*real)(void **, unsigned, int) = (int (*)(void **, unsigned, int))dlsym(RTLD_NEXT, "cuCtxCreate_v2");
    pthread_barrier_wait(&both);
    int result = real(context, flags, device);
    pthread_barrier_wait(&both);
    return result;
}
#else
int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);

static void *work(void *unused)
{
    void *context;
    (void)unused;
    if (cuCtxCreate_v2(&context, 0, 0) != 0)
        abort();
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    unsigned long long address;
    void *primary;
    if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&primary, 0) != 0 || cuCtxSetCurrent(primary) != 0 ||
        cuMemAlloc_v2(&address, 2 << 20) != 0)
        return 1;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
#endif
