/*
 * To be preloaded behind the library: at each of its calls into the dynamic linker, and (driver.c) into the
 * driver, another thread makes a round of calls that need every lock of the library's. When that thread does
 * not come back, one of them is held across the call.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 60
#define HELD       86 /* the exit status that tells */

/* The driver's own interface, as much of it as a round needs; each call goes through the library's hooks. */
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemFree_v2(unsigned long long);
int cuMemCreate(unsigned long long *, size_t, const void *, unsigned long long);
int cuMemRelease(unsigned long long);
int cuGraphCreate(void **, unsigned);
int cuGraphDestroy(void *);

static _Atomic bool watching;
static __thread bool inside __attribute__((tls_model("initial-exec")));
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint64_t asked, answered, rounds;

static void make_round(void)
{
    static const struct {
        int type, handles, location, id;
        void *meta;
        uint64_t flags[2];
    } on_device = {.type = 1, .location = 1};
    unsigned long long address = 0, handle = 0;
    void *graph = NULL;
    if (cuMemAlloc_v2(&address, 64) == 0)
        cuMemFree_v2(address);
    if (cuMemCreate(&handle, 2 << 20, &on_device, 0) == 0)
        cuMemRelease(handle);
    if (cuGraphCreate(&graph, 0) == 0)
        cuGraphDestroy(graph);
}

static void *help(void *unused);

static void start_helping(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, help, NULL) == 0)
        pthread_detach(thread);
}

static void *help(void *unused)
{
    void *context = NULL;
    (void)unused;
    inside = true;
    cuInit(0);
    if (cuDevicePrimaryCtxRetain(&context, 0) == 0)
        cuCtxSetCurrent(context);
    make_round();
    pthread_mutex_lock(&lock);
    atomic_store(&watching, true);
    pthread_cond_broadcast(&changed);
    for (;;) {
        while (answered == asked)
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        make_round();
        pthread_mutex_lock(&lock);
        answered = asked;
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

/* At the program's first call into the driver: the library has begun by then. A short program would be over
 * before a busy machine let the other thread begin. */
static void begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct timespec end;
    pthread_once(&once, start_helping);
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&lock);
    while (!atomic_load(&watching)) {
        if (pthread_cond_timedwait(&changed, &lock, &end) != ETIMEDOUT)
            continue;
        dprintf(2, "a lock is held across the first call\n");
        _exit(HELD);
    }
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void tell(void)
{
    inside = true;
    fprintf(stderr, "%llu rounds\n", (unsigned long long)rounds);
}

void watch_call(const char *what)
{
    struct timespec end;
    int error = errno;
    if (inside)
        return;
    inside = true;
    if (strcmp(what, "dl_iterate_phdr") != 0)
        begin();
    if (!atomic_load(&watching)) {
        inside = false;
        errno = error;
        return;
    }
    pthread_mutex_lock(&turn);
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&lock);
    asked++;
    rounds++;
    pthread_cond_broadcast(&changed);
    while (answered != asked) {
        if (pthread_cond_timedwait(&changed, &lock, &end) != ETIMEDOUT)
            continue;
        dprintf(2, "a lock is held across %s\n", what);
        _exit(HELD);
    }
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&turn);
    inside = false;
    errno = error;
}

/* What libunwind asks comes by here too. */
int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    static int (*_Atomic real)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    if (!real)
        real = (int (*)(int (*)(struct dl_phdr_info *, size_t, void *), void *))dlvsym(
            RTLD_NEXT, "dl_iterate_phdr", "GLIBC_2.2.5");
    watch_call("dl_iterate_phdr");
    return real(visit, arg);
}
