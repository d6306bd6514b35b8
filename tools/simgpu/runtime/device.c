/* Devices, their properties, limits, peers. */
#include "runtime.h"

#include <stddef.h>
#include <string.h>

EXPORT cudaError_t cudaGetDeviceCount(int *count)
{
    return ASK(driver.cuDeviceGetCount(count));
}

EXPORT cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    return ASK(driver.cuDeviceGetAttribute(value, attribute, device)); /* the numbers are the driver's */
}

EXPORT cudaError_t cudaDeviceSynchronize(void)
{
    return RUN(driver.cuCtxSynchronize());
}

EXPORT cudaError_t cudaThreadSynchronize(void)
{
    return RUN(driver.cuCtxSynchronize());
}

EXPORT cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    return ASK(driver.cuDevicePrimaryCtxSetFlags(runtime_device(), flags));
}

EXPORT cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
    int active;
    return ASK(flags ? driver.cuDevicePrimaryCtxGetState(runtime_device(), flags, &active)
                     : CUDA_ERROR_INVALID_VALUE);
}

EXPORT cudaError_t cudaDeviceGetLimit(size_t *value, unsigned int limit)
{
    return RUN(driver.cuCtxGetLimit(value, limit));
}

EXPORT cudaError_t cudaDeviceSetLimit(unsigned int limit, size_t value)
{
    return RUN(driver.cuCtxSetLimit(limit, value));
}

EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    return RUN(driver.cuCtxGetStreamPriorityRange(least, greatest));
}

EXPORT cudaError_t cudaDeviceGetPCIBusId(char *text, int room, int device)
{
    return ASK(driver.cuDeviceGetPCIBusId(text, room, device));
}

EXPORT cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    return ASK(driver.cuDeviceGetByPCIBusId(device, text));
}

/* ---- properties ---- */

/* Of cudaDeviceProp, in the versions that this is built for. */
struct properties {
    char name[256];
    CUuuid uuid;
    char luid[8];
    unsigned int luid_mask;
    size_t total_memory;
    size_t shared_per_block;
    int registers_per_block;
    int warp_size;
    size_t pitch;
    int max_threads_per_block;
    int max_threads_dim[3];
    int max_grid_size[3];
#if CUDART_VERSION < 13000
    int clock_rate;
#endif
    size_t constant_memory;
    int major, minor;
    size_t texture_alignment, texture_pitch_alignment;
#if CUDART_VERSION < 13000
    int device_overlap;
#endif
    int multiprocessor_count;
#if CUDART_VERSION < 13000
    int others[44]; /* from kernelExecTimeoutEnabled to maxSurfaceCubemapLayered */
#else
    int others[41]; /* from integrated on */
#endif
    size_t surface_alignment;
    int concurrent_kernels, ecc;
    int pci_bus, pci_device, pci_domain;
    int tcc_driver, async_engines, unified_addressing;
#if CUDART_VERSION < 13000
    int memory_clock_rate;
#endif
    int memory_bus_width, l2_cache, persisting_l2_cache;
    int threads_per_multiprocessor;
    int stream_priorities, global_l1_cache, local_l1_cache;
    size_t shared_per_multiprocessor;
    int registers_per_multiprocessor;
};
#if CUDART_VERSION < 13000
#define PROPERTIES_SIZE 1032 /* of cudaDeviceProp in CUDA 12 */
#else
#define PROPERTIES_SIZE 1008
_Static_assert(offsetof(struct properties, pci_bus) == 568, "as in CUDA 13.0");
_Static_assert(offsetof(struct properties, registers_per_multiprocessor) == 632, "as in CUDA 13.0");
#endif

static int attribute(CUdevice device, int number)
{
    int value = 0;
    driver.cuDeviceGetAttribute(&value, number, device);
    return value;
}

static cudaError_t properties(struct properties *out, CUdevice device)
{
    if (!out)
        return cudaErrorInvalidValue;
    memset(out, 0, PROPERTIES_SIZE);
    CUresult result = driver.cuDeviceGetName(out->name, sizeof out->name, device);
    if (result != CUDA_SUCCESS)
        return (cudaError_t)result;
    driver.cuDeviceGetUuid(&out->uuid, device);
    driver.cuDeviceTotalMem(&out->total_memory, device);
    out->shared_per_block = (size_t)attribute(device, 8);
    out->registers_per_block = attribute(device, 12);
    out->warp_size = attribute(device, 10);
    out->pitch = (size_t)attribute(device, 11);
    out->max_threads_per_block = attribute(device, 1);
    for (int i = 0; i < 3; i++) {
        out->max_threads_dim[i] = attribute(device, 2 + i);
        out->max_grid_size[i] = attribute(device, 5 + i);
    }
    out->constant_memory = (size_t)attribute(device, 9);
    out->major = attribute(device, 75);
    out->minor = attribute(device, 76);
    out->texture_alignment = (size_t)attribute(device, 14);
    out->texture_pitch_alignment = (size_t)attribute(device, 51);
    out->multiprocessor_count = attribute(device, 16);
    out->pci_bus = attribute(device, 33);
    out->pci_device = attribute(device, 34);
    out->pci_domain = attribute(device, 50);
    out->async_engines = attribute(device, 40);
    out->unified_addressing = attribute(device, 41);
    out->memory_bus_width = attribute(device, 37);
    out->l2_cache = attribute(device, 38);
    out->threads_per_multiprocessor = attribute(device, 39);
    out->stream_priorities = attribute(device, 78);
    out->shared_per_multiprocessor = (size_t)attribute(device, 81);
    out->registers_per_multiprocessor = attribute(device, 82);
    return cudaSuccess;
}

#if CUDART_VERSION < 13000
EXPORT cudaError_t cudaGetDeviceProperties_v2(struct properties *out, int device)
{
    return ASK(properties(out, device));
}
#endif

EXPORT cudaError_t cudaGetDeviceProperties(struct properties *out, int device)
{
    return ASK(properties(out, device));
}

/* ---- peers ---- */

EXPORT cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    return ASK(driver.cuDeviceCanAccessPeer(can, device, peer));
}

static cudaError_t with_peer(int peer, CUresult (*change)(CUcontext, int))
{
    CUcontext context;
    CUresult result = driver.cuDevicePrimaryCtxRetain(&context, peer);
    if (result != CUDA_SUCCESS)
        return (cudaError_t)result;
    return (cudaError_t)change(context, peer);
}

/* The peer's primary context stays retained while access to it is on. */
static CUresult enable(CUcontext context, int peer)
{
    CUresult result = driver.cuCtxEnablePeerAccess(context, 0);
    if (result != CUDA_SUCCESS)
        driver.cuDevicePrimaryCtxRelease(peer);
    return result;
}

static CUresult disable(CUcontext context, int peer)
{
    CUresult result = driver.cuCtxDisablePeerAccess(context);
    driver.cuDevicePrimaryCtxRelease(peer);
    if (result == CUDA_SUCCESS)
        driver.cuDevicePrimaryCtxRelease(peer);
    return result;
}

EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    return RUN(flags ? cudaErrorInvalidValue : with_peer(peer, enable));
}

EXPORT cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    return RUN(with_peer(peer, disable));
}
