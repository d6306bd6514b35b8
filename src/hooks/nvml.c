/* Asking NVML (nvml.h). Its functions are read from its file, as the driver's are (ask.h). */
#include "hooks/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "capture/elf_image.h"
#include "cuda/abi_nvml.h"
#include "hooks/ask.h"
#include "hooks/loader.h"
#include "preload/recorder.h"

/* On one device; where there are more, none is known. */
#define PROCESSES_MAX 64

/* X(name, parameters) */
#define NVML_FUNCTIONS(X)                                                                                    \
    X(nvmlInitWithFlags, (unsigned flags))                                                                   \
    X(nvmlShutdown, (void))                                                                                  \
    X(nvmlDeviceGetHandleByUUID, (const char *uuid, nvmlDevice_t *device))                                   \
    X(nvmlDeviceGetMemoryInfo, (nvmlDevice_t device, nvmlMemory_t * memory))                                 \
    X(nvmlDeviceGetComputeRunningProcesses_v3,                                                               \
      (nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *processes))                                  \
    X(nvmlDeviceGetGraphicsRunningProcesses_v3,                                                              \
      (nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *processes))

static struct {
#define AS_POINTER(name, parameters) nvmlReturn_t(*name) parameters;
    NVML_FUNCTIONS(AS_POINTER)
#undef AS_POINTER
} nvml;

enum { NOT_LOOKED_FOR, FOUND, MISSING };
static _Atomic int found;
static pid_t found_by;

static bool find_functions(const struct link_map *map)
{
    struct elf_image image;
    if (!elf_image_open(&image, map->l_addr, map->l_ld))
        return false;
    bool all = true;
#define FIND(name, parameters)                                                                               \
    nvml.name = (__typeof__(nvml.name))elf_image_address(&image, #name);                                     \
    all &= nvml.name != NULL;
    NVML_FUNCTIONS(FIND)
#undef FIND
    return all;
}

/* It stays loaded: a program may have come to use it meanwhile. */
static bool load(void)
{
    void *(*open)(const char *, int) = (void *(*)(const char *, int))loader_next("dlopen");
    const struct link_map *map = open == NULL ? NULL : open("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (map == NULL)
        dlerror();
    return map != NULL && find_functions(map);
}

static bool is_there(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    int state = atomic_load_explicit(&found, memory_order_acquire);
    /* Whoever comes second goes without, and nobody waits for the dynamic linker on our account. */
    if (state == NOT_LOOKED_FOR && pthread_mutex_trylock(&once) == 0) {
        state = atomic_load_explicit(&found, memory_order_acquire);
        if (state == NOT_LOOKED_FOR) {
            state = recorder_may_use_nvml() && load() ? FOUND : MISSING;
            found_by = getpid();
            atomic_store_explicit(&found, state, memory_order_release);
        }
        pthread_mutex_unlock(&once);
    }
    return state == FOUND && found_by == getpid();
}

/* What a program that jumps away leaves behind. Volatile: a signal handler is where it jumps from. */
static __thread struct {
    volatile int opened; /* and not closed */
    volatile bool is_inside;
    int cancel_state; /* the program's own, while inside */
} mine __attribute__((tls_model("initial-exec")));

/* Around everything that NVML does: it opens files, and a thread that is cancelled in it would leave them,
 * and its locks, behind. Returns errno, for leave(). */
static int enter(void)
{
    int errno_before = errno, cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    mine.cancel_state = cancel_state;
    mine.is_inside = true;
    return errno_before;
}

static void leave(int errno_before)
{
    mine.is_inside = false;
    pthread_setcancelstate(mine.cancel_state, NULL);
    errno = errno_before;
}

bool nvml_open(void)
{
    int errno_before = enter();
    /* Not attached: devices that this program does not use are left asleep. */
    bool open = is_there() && nvml.nvmlInitWithFlags(NVML_INIT_FLAG_NO_ATTACH) == NVML_SUCCESS;
    mine.opened += open;
    leave(errno_before);
    return open;
}

/* Nothing is open any more in a call that was taken for abandoned, and goes on all the same. */
void nvml_close(void)
{
    int errno_before = enter();
    if (mine.opened > 0 && is_there()) {
        mine.opened--;
        nvml.nvmlShutdown();
    }
    leave(errno_before);
}

void nvml_abandon(bool jumped)
{
    if (mine.is_inside && !jumped)
        return;
    if (mine.is_inside) {
        atomic_store_explicit(&found, MISSING, memory_order_release);
        mine.opened = 0;
        leave(errno);
    }
    while (mine.opened > 0 && is_there())
        nvml_close();
}

/* By its UUID, which tells parts of a divided device (MIG) too; "GPU-" or "MIG-" is not told by the driver.
 */
static bool find_device(int device, nvmlDevice_t *handle)
{
    CUuuid uuid;
    char text[NVML_UUID_TEXT];
    if (ask_cuDeviceGetUuid_v2(&uuid, device) != CUDA_SUCCESS &&
        ask_cuDeviceGetUuid(&uuid, device) != CUDA_SUCCESS)
        return false;
    int used = snprintf(text, sizeof text, "GPU-");
    for (int i = 0; i < 16; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%02x",
                         i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", (unsigned char)uuid.bytes[i]);
    if (nvml.nvmlDeviceGetHandleByUUID(text, handle) == NVML_SUCCESS)
        return true;
    text[0] = 'M', text[1] = 'I', text[2] = 'G';
    return nvml.nvmlDeviceGetHandleByUUID(text, handle) == NVML_SUCCESS;
}

struct process_list {
    unsigned count;
    nvmlProcessInfo_t processes[PROCESSES_MAX];
};

static bool is_listed(const struct process_list *list, unsigned pid)
{
    for (unsigned i = 0; i < list->count; i++)
        if (list->processes[i].pid == pid)
            return true;
    return false;
}

/* False where some process's memory is not told. */
static bool add_processes(struct nvml_figures *figures, const struct process_list *list,
                          const struct process_list *except)
{
    for (unsigned i = 0; i < list->count; i++) {
        const nvmlProcessInfo_t *process = &list->processes[i];
        if (process->usedGpuMemory == (unsigned long long)NVML_VALUE_NOT_AVAILABLE)
            return false;
        if (except != NULL && is_listed(except, process->pid))
            continue;
        figures->all_bytes += process->usedGpuMemory;
        if (process->pid == (unsigned)getpid())
            figures->own_bytes += process->usedGpuMemory;
    }
    return true;
}

/* A process that computes and draws is in both lists. */
static bool ask_processes(nvmlDevice_t handle, struct nvml_figures *figures)
{
    struct process_list compute = {.count = PROCESSES_MAX}, graphics = {.count = PROCESSES_MAX};
    if (nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, &compute.count, compute.processes) !=
        NVML_SUCCESS)
        return false;
    if (nvml.nvmlDeviceGetGraphicsRunningProcesses_v3(handle, &graphics.count, graphics.processes) !=
        NVML_SUCCESS)
        graphics.count = 0;
    return add_processes(figures, &compute, NULL) && add_processes(figures, &graphics, &compute);
}

bool nvml_ask(int device, struct nvml_figures *figures)
{
    nvmlDevice_t handle;
    nvmlMemory_t memory;
    int errno_before = enter();
    bool told = is_there() && find_device(device, &handle) &&
                nvml.nvmlDeviceGetMemoryInfo(handle, &memory) == NVML_SUCCESS;
    if (told) {
        *figures = (struct nvml_figures){.free_bytes = memory.free};
        figures->processes_known = ask_processes(handle, figures);
    }
    leave(errno_before);
    return told;
}
