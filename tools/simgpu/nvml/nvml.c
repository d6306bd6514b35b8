/*
 * A simulated libnvidia-ml.so.1: memory and processes of the simulated devices, as the simulated driver tells
 * them, and what PyTorch asks of NVML besides, which is not supported. No driver need be initialised.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "account.h"
#include "cuda/abi_nvml.h"

#define EXPORT __attribute__((visibility("default")))

struct nvmlDevice_st {
    char used;
};

static struct nvmlDevice_st handles[SIMGPU_DEVICES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers these, which hold while in use */
static int references;
static void *driver;
static simgpu_account *_Atomic account;

static nvmlReturn_t initialise(void)
{
    pthread_mutex_lock(&lock);
    if (references == 0) {
        driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
        atomic_store(&account, driver ? (simgpu_account *)dlsym(driver, SIMGPU_ACCOUNT) : NULL);
    }
    bool found = atomic_load(&account) != NULL;
    references += found;
    pthread_mutex_unlock(&lock);
    return found ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    return initialise();
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return initialise();
}

EXPORT nvmlReturn_t nvmlShutdown(void)
{
    pthread_mutex_lock(&lock);
    bool was_in_use = references > 0;
    if (was_in_use && --references == 0) {
        atomic_store(&account, NULL);
        dlclose(driver); /* a program may unload the driver, and load it again */
    }
    pthread_mutex_unlock(&lock);
    return was_in_use ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

/* The device behind a handle or a number; NVML_SUCCESS when there is one. */
static nvmlReturn_t look_at(int device, struct simgpu_account *figures)
{
    simgpu_account *ask = atomic_load(&account);
    if (!ask)
        return NVML_ERROR_UNINITIALIZED;
    return device >= 0 && device < SIMGPU_DEVICES_MAX && ask(device, figures) ? NVML_SUCCESS
                                                                              : NVML_ERROR_INVALID_ARGUMENT;
}

static int number_of(nvmlDevice_t device)
{
    return device >= handles && device < handles + SIMGPU_DEVICES_MAX ? (int)(device - handles) : -1;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    struct simgpu_account figures;
    nvmlReturn_t result = look_at(0, &figures);
    for (*count = 0; look_at((int)*count, &figures) == NVML_SUCCESS;)
        ++*count;
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    struct simgpu_account figures;
    nvmlReturn_t result = look_at((int)index, &figures);
    if (result == NVML_SUCCESS)
        *device = &handles[index];
    return result;
}

static void write_uuid(char text[NVML_UUID_TEXT], const unsigned char uuid[16])
{
    int used = snprintf(text, NVML_UUID_TEXT, "GPU-");
    for (int i = 0; i < 16; i++)
        used += snprintf(text + used, (size_t)(NVML_UUID_TEXT - used), "%s%02x",
                         i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *wanted, nvmlDevice_t *device)
{
    struct simgpu_account figures;
    char text[NVML_UUID_TEXT];
    nvmlReturn_t result;
    for (int i = 0; (result = look_at(i, &figures)) == NVML_SUCCESS; i++) {
        write_uuid(text, figures.uuid);
        if (strcasecmp(text, wanted) == 0) {
            *device = &handles[i];
            return NVML_SUCCESS;
        }
    }
    return result == NVML_ERROR_UNINITIALIZED ? result : NVML_ERROR_NOT_FOUND;
}

/* As the driver numbers buses: device 0 is on bus 1. */
EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device)
{
    const char *colon = strchr(id, ':');
    unsigned bus = 0;
    if (!colon || sscanf(strchr(colon + 1, ':') ? colon + 1 : id, "%x", &bus) != 1 || bus == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    return nvmlDeviceGetHandleByIndex_v2(bus - 1, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    struct simgpu_account figures;
    nvmlReturn_t result = look_at(number_of(device), &figures);
    if (result != NVML_SUCCESS)
        return result;
    uint64_t used = 0;
    for (int i = 0; i < figures.count; i++)
        used += figures.occupants[i].bytes;
    memory->total = figures.total_bytes;
    memory->used = used < figures.total_bytes ? used : figures.total_bytes;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                            nvmlProcessInfo_t *processes)
{
    struct simgpu_account figures;
    nvmlReturn_t result = look_at(number_of(device), &figures);
    if (result != NVML_SUCCESS)
        return result;
    unsigned room = *count;
    *count = (unsigned)figures.count;
    if (room < *count)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (int i = 0; i < figures.count; i++)
        processes[i] = (nvmlProcessInfo_t){.pid = (unsigned)figures.occupants[i].pid,
                                           .usedGpuMemory = figures.occupants[i].bytes,
                                           .gpuInstanceId = UINT32_MAX,
                                           .computeInstanceId = UINT32_MAX};
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
                                                             nvmlProcessInfo_t *processes)
{
    struct simgpu_account figures;
    (void)processes;
    *count = 0;
    return look_at(number_of(device), &figures);
}

#define UNSUPPORTED(name)                                                                                    \
    EXPORT nvmlReturn_t name(void)                                                                           \
    {                                                                                                        \
        return NVML_ERROR_NOT_SUPPORTED;                                                                     \
    }
UNSUPPORTED(nvmlDeviceGetGpuFabricInfoV)
UNSUPPORTED(nvmlDeviceGetComputeRunningProcesses)
UNSUPPORTED(nvmlDeviceGetNvLinkRemoteDeviceType)
UNSUPPORTED(nvmlDeviceGetNvLinkRemotePciInfo_v2)
UNSUPPORTED(nvmlSystemGetCudaDriverVersion_v2)
