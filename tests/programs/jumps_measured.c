/*
 * A program that jumps out of the making of a context from a signal handler, and then makes another one and
 * allocates: what the second takes can be measured, once the first is over. The argument says where the
 * signal arrives: in the "driver", in "nvml", which holds its lock then, or, by "open", where the library
 * makes its recording. It prints whether the thread can be cancelled as before, and at the end how often NVML
 * is still in use.
 *
 * With -DDRIVER it is a driver of one device of 1 GiB, on which a context takes 100 MiB, and with -DNVML the
 * NVML of that device.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB     (1ull << 20)
#define TOTAL   (1024 * MIB)
#define CONTEXT (100 * MIB)
#define JUMP    8 /* a flag that no driver knows */

typedef unsigned long long address;

int cuInit(unsigned flags);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuMemAlloc_v2(address *out, size_t bytes);
extern address jumps_used;
extern int jumps_in_nvml;

#if defined(DRIVER)

address jumps_used;
int jumps_in_nvml;
static void *current;

int cuInit(unsigned flags)
{
    (void)flags;
    return 0;
}

int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
    static char contexts[8];
    static int count;
    (void)device;
    if (flags & JUMP)
        raise(SIGUSR1);
    jumps_used += CONTEXT;
    *context = current = &contexts[count++];
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
    return current ? 0 : 201;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = TOTAL;
    return 0;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = TOTAL - jumps_used;
    *total_bytes = TOTAL;
    return 0;
}

int cuDeviceGetUuid(char *uuid, int device)
{
    (void)device;
    memset(uuid, 1, 16);
    return 0;
}

int cuMemAlloc_v2(address *out, size_t bytes)
{
    *out = MIB + jumps_used;
    jumps_used += bytes;
    return 0;
}

#elif defined(NVML)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users;

struct memory {
    address total, free, used;
};

struct process {
    unsigned pid;
    address used;
    unsigned instances[2];
};

int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    pthread_mutex_lock(&lock);
    users++;
    if (jumps_in_nvml)
        raise(SIGUSR1);
    pthread_mutex_unlock(&lock);
    return 0;
}

int nvmlShutdown(void)
{
    pthread_mutex_lock(&lock);
    users--;
    pthread_mutex_unlock(&lock);
    return 0;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    *device = &users;
    return strncmp(uuid, "GPU-01010101-", 13) == 0 ? 0 : 6;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *memory)
{
    (void)device;
    *memory = (struct memory){TOTAL, TOTAL - jumps_used, jumps_used};
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *processes)
{
    (void)device;
    *count = jumps_used > 0;
    if (*count)
        processes[0] = (struct process){.pid = (unsigned)getpid(), .used = jumps_used};
    return 0;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, struct process *processes)
{
    (void)device, (void)processes;
    *count = 0;
    return 0;
}

__attribute__((destructor)) static void tell(void)
{
    printf("nvml has %d users\n", users);
    fflush(stdout);
}

#else

static sigjmp_buf back;
static int jumps_in_open;

/* The library's, too. */
int open(const char *path, int flags, ...)
{
    if (jumps_in_open && (flags & O_EXCL)) {
        jumps_in_open = 0;
        raise(SIGUSR1);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
}

static void *allocate(void *unused)
{
    address block;
    (void)unused;
    return cuMemAlloc_v2(&block, MIB) == 0 ? NULL : &back;
}

static void jump(int signal)
{
    (void)signal;
    siglongjmp(back, 1);
}

int main(int count, char **arguments)
{
    struct sigaction on_jump = {.sa_handler = jump};
    void *context;
    address block;
    int state;
    int in_nvml = count > 1 && strcmp(arguments[1], "nvml") == 0;
    int in_open = count > 1 && strcmp(arguments[1], "open") == 0;
    pthread_t thread;
    void *failed;
    sigaction(SIGUSR1, &on_jump, NULL);
    cuInit(0);
    if (sigsetjmp(back, 1) == 0) {
        jumps_in_nvml = in_nvml;
        jumps_in_open = in_open;
        if (in_open)
            allocate(NULL);
        cuCtxCreate_v2(&context, in_nvml ? 0 : JUMP, 0);
        return 1;
    }
    jumps_in_nvml = 0;
    for (int i = 0; i < 2; i++)
        if (cuCtxCreate_v2(&context, 0, 0) != 0 || cuMemAlloc_v2(&block, 10 * MIB) != 0)
            return 1;
    if (pthread_create(&thread, NULL, allocate, NULL) != 0 || pthread_join(thread, &failed) != 0 || failed)
        return 1;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    printf("%s\n", state == PTHREAD_CANCEL_ENABLE ? "can be cancelled" : "cannot be cancelled");
    fflush(stdout);
    return 0;
}

#endif
