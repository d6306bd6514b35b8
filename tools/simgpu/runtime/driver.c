/* Finding the driver, making a context current, and errors kept for each thread. */
#include "runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define MAX_DEVICES 64

struct driver driver;
CUresult (*driver_get_proc_address)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static bool usable;

/* A device's primary context, retained once; a reset starts a new generation. */
static struct {
    CUcontext context; /* NULL: not retained */
    atomic_uint generation;
} primaries[MAX_DEVICES];
static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;

static __thread struct {
    cudaError_t last_error;
    CUdevice device;
    CUcontext bound; /* the primary context we made current here */
    unsigned generation;
    CUdevice bound_device;
} thread;

/* ---- the driver ---- */

#define X(member, name, version, flags, parameters) {offsetof(struct driver, member), #name, version, flags},
static const struct {
    size_t offset;
    const char *name;
    int version;
    cuuint64_t flags;
} wanted[] = {
#include "driver_calls.h"
};
#undef X

static void load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *unused;
    if (!library)
        return;
    *(void **)&driver_get_proc_address = dlsym(library, "cuGetProcAddress_v2");
    if (!driver_get_proc_address)
        return;
    driver_get_proc_address("", &unused, CUDART_VERSION, 0, NULL);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void **slot = (void **)((char *)&driver + wanted[i].offset);
        driver_get_proc_address(wanted[i].name, slot, wanted[i].version, wanted[i].flags, NULL);
        if (!*slot)
            return;
    }
    usable = true;
}

cudaError_t runtime_load(void)
{
    pthread_once(&loaded, load);
    return usable ? cudaSuccess : cudaErrorInsufficientDriver;
}

cudaError_t runtime_driver(void)
{
    static atomic_bool initialised;
    cudaError_t error = runtime_load();
    if (error == cudaSuccess && !atomic_load(&initialised)) {
        error = (cudaError_t)driver.cuInit(0);
        atomic_store(&initialised, error == cudaSuccess);
    }
    return error;
}

/* ---- contexts ---- */

static cudaError_t bind(void)
{
    CUdevice device = thread.device;
    pthread_mutex_lock(&primary_lock);
    CUresult result = CUDA_SUCCESS;
    if (!primaries[device].context)
        result = driver.cuDevicePrimaryCtxRetain(&primaries[device].context, device);
    CUcontext context = primaries[device].context;
    unsigned generation = atomic_load(&primaries[device].generation);
    pthread_mutex_unlock(&primary_lock);
    if (result == CUDA_SUCCESS)
        result = driver.cuCtxSetCurrent(context);
    if (result != CUDA_SUCCESS)
        return (cudaError_t)result;
    thread.bound = context;
    thread.bound_device = device;
    thread.generation = generation;
    return cudaSuccess;
}

/* A context the program itself made current is used as it is. */
cudaError_t runtime_ready(void)
{
    cudaError_t error = runtime_driver();
    CUcontext current = NULL;
    if (error == cudaSuccess)
        error = (cudaError_t)driver.cuCtxGetCurrent(&current);
    if (error != cudaSuccess)
        return error;
    if (!current)
        return bind();
    bool ours = current == thread.bound;
    if (ours && thread.generation != atomic_load(&primaries[thread.bound_device].generation))
        return bind();
    return cudaSuccess;
}

CUdevice runtime_device(void)
{
    CUdevice device;
    CUcontext current = NULL;
    driver.cuCtxGetCurrent(&current);
    if (current && current != thread.bound && driver.cuCtxGetDevice(&device) == CUDA_SUCCESS)
        return device;
    return thread.device;
}

static cudaError_t set_device(int device)
{
    int count;
    cudaError_t error = (cudaError_t)driver.cuDeviceGetCount(&count);
    if (error != cudaSuccess || device < 0 || device >= count || device >= MAX_DEVICES)
        return error != cudaSuccess ? error : cudaErrorInvalidDevice;
    thread.device = device;
    return bind();
}

EXPORT cudaError_t cudaSetDevice(int device)
{
    return ASK(set_device(device));
}

EXPORT cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
    (void)device_flags, (void)flags;
    return ASK(set_device(device));
}

EXPORT cudaError_t cudaGetDevice(int *device)
{
    cudaError_t error = device ? runtime_driver() : cudaErrorInvalidValue;
    if (error == cudaSuccess)
        *device = runtime_device();
    return runtime_finish(error);
}

/* Every thread that had the context current finds a new generation and binds again. */
static cudaError_t reset(CUdevice device)
{
    pthread_mutex_lock(&primary_lock);
    CUresult result = driver.cuDevicePrimaryCtxReset(device);
    if (result == CUDA_SUCCESS && primaries[device].context) {
        driver.cuDevicePrimaryCtxRelease(device);
        primaries[device].context = NULL;
        atomic_fetch_add(&primaries[device].generation, 1);
    }
    pthread_mutex_unlock(&primary_lock);
    if (thread.bound && thread.bound_device == device) {
        driver.cuCtxSetCurrent(NULL);
        thread.bound = NULL;
    }
    return (cudaError_t)result;
}

EXPORT cudaError_t cudaDeviceReset(void)
{
    return ASK(reset(runtime_device()));
}

EXPORT cudaError_t cudaThreadExit(void)
{
    return ASK(reset(runtime_device()));
}

/* ---- errors ---- */

cudaError_t runtime_finish(cudaError_t error)
{
    if (error != cudaSuccess)
        thread.last_error = error;
    return error;
}

EXPORT cudaError_t cudaGetLastError(void)
{
    cudaError_t error = thread.last_error;
    thread.last_error = cudaSuccess;
    return error;
}

EXPORT cudaError_t cudaPeekAtLastError(void)
{
    return thread.last_error;
}

#define AS_NAME(name, value) {value, #name},
static const struct {
    int value;
    const char *name;
} errors[] = {CUDA_RUNTIME_ERRORS(AS_NAME)};

EXPORT const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].value == (int)error)
            return errors[i].name;
    return "unrecognized error code";
}

EXPORT const char *cudaGetErrorString(cudaError_t error)
{
    const char *text;
    if (runtime_load() == cudaSuccess && driver.cuGetErrorString((CUresult)error, &text) == CUDA_SUCCESS)
        return text;
    return cudaGetErrorName(error);
}

/* ---- versions and entry points ---- */

EXPORT cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return runtime_finish(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

EXPORT cudaError_t cudaDriverGetVersion(int *version)
{
    if (!version)
        return runtime_finish(cudaErrorInvalidValue);
    *version = 0; /* no driver is no error here */
    return runtime_load() == cudaSuccess ? (cudaError_t)driver.cuDriverGetVersion(version) : cudaSuccess;
}

static cudaError_t entry_point(const char *name, void **out, int version, unsigned long long flags,
                               CUdriverProcAddressQueryResult *status)
{
    cudaError_t error = runtime_load();
    if (error == cudaSuccess)
        error = (cudaError_t)driver_get_proc_address(name, out, version, flags, status);
    return runtime_finish(error);
}

EXPORT cudaError_t cudaGetDriverEntryPoint(const char *name, void **out, unsigned long long flags,
                                           CUdriverProcAddressQueryResult *status)
{
    return entry_point(name, out, CUDART_VERSION, flags, status);
}

EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **out, unsigned int version,
                                                    unsigned long long flags,
                                                    CUdriverProcAddressQueryResult *status)
{
    return entry_point(name, out, (int)version, flags, status);
}

static unsigned long long per_thread(unsigned long long flags)
{
    return flags ? flags : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
}

EXPORT cudaError_t cudaGetDriverEntryPoint_ptsz(const char *name, void **out, unsigned long long flags,
                                                CUdriverProcAddressQueryResult *status)
{
    return entry_point(name, out, CUDART_VERSION, per_thread(flags), status);
}

EXPORT cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **out, unsigned int version,
                                                         unsigned long long flags,
                                                         CUdriverProcAddressQueryResult *status)
{
    return entry_point(name, out, (int)version, per_thread(flags), status);
}
