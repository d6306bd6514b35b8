/* Devices: what they are called, what they can do, and their making. */
#include "entry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_FACTOR 16 /* addresses per byte of memory, so that a window never runs out first */
#define WINDOW_LEAST  (64ull << 30)

struct device devices[MAX_DEVICES];
int device_count;

struct attribute {
    int number; /* CUdevice_attribute */
    int value;
};

/* A device like an A100, as far as programs ask. */
static const struct attribute attributes[] = {
    {1, 1024},        /* MAX_THREADS_PER_BLOCK */
    {2, 1024},        /* MAX_BLOCK_DIM_X */
    {3, 1024},        /* MAX_BLOCK_DIM_Y */
    {4, 64},          /* MAX_BLOCK_DIM_Z */
    {5, 0x7fffffff},  /* MAX_GRID_DIM_X */
    {6, 65535},       /* MAX_GRID_DIM_Y */
    {7, 65535},       /* MAX_GRID_DIM_Z */
    {8, 49152},       /* MAX_SHARED_MEMORY_PER_BLOCK */
    {9, 65536},       /* TOTAL_CONSTANT_MEMORY */
    {10, 32},         /* WARP_SIZE */
    {11, 0x7fffffff}, /* MAX_PITCH */
    {12, 65536},      /* MAX_REGISTERS_PER_BLOCK */
    {13, 1410000},    /* CLOCK_RATE, kHz */
    {14, 512},        /* TEXTURE_ALIGNMENT */
    {15, 1},          /* GPU_OVERLAP */
    {16, 108},        /* MULTIPROCESSOR_COUNT */
    {19, 1},          /* CAN_MAP_HOST_MEMORY */
    {21, 131072},     /* MAXIMUM_TEXTURE1D_WIDTH */
    {22, 131072},     /* MAXIMUM_TEXTURE2D_WIDTH */
    {23, 65536},      /* MAXIMUM_TEXTURE2D_HEIGHT */
    {24, 16384},      /* MAXIMUM_TEXTURE3D_WIDTH */
    {25, 16384},      /* MAXIMUM_TEXTURE3D_HEIGHT */
    {26, 16384},      /* MAXIMUM_TEXTURE3D_DEPTH */
    {27, 32768},      /* MAXIMUM_TEXTURE2D_LAYERED_WIDTH */
    {28, 32768},      /* MAXIMUM_TEXTURE2D_LAYERED_HEIGHT */
    {29, 2048},       /* MAXIMUM_TEXTURE2D_LAYERED_LAYERS */
    {30, 512},        /* SURFACE_ALIGNMENT */
    {31, 1},          /* CONCURRENT_KERNELS */
    {33, 1},          /* PCI_BUS_ID, the ordinal is added */
    {36, 1215000},    /* MEMORY_CLOCK_RATE, kHz */
    {37, 5120},       /* GLOBAL_MEMORY_BUS_WIDTH */
    {38, 41943040},   /* L2_CACHE_SIZE */
    {39, 2048},       /* MAX_THREADS_PER_MULTIPROCESSOR */
    {40, 3},          /* ASYNC_ENGINE_COUNT */
    {41, 1},          /* UNIFIED_ADDRESSING */
    {42, 32768},      /* MAXIMUM_TEXTURE1D_LAYERED_WIDTH */
    {43, 2048},       /* MAXIMUM_TEXTURE1D_LAYERED_LAYERS */
    {51, 32},         /* TEXTURE_PITCH_ALIGNMENT */
    {75, 8},          /* COMPUTE_CAPABILITY_MAJOR */
    {76, 0},          /* COMPUTE_CAPABILITY_MINOR */
    {78, 1},          /* STREAM_PRIORITIES_SUPPORTED */
    {79, 1},          /* GLOBAL_L1_CACHE_SUPPORTED */
    {80, 1},          /* LOCAL_L1_CACHE_SUPPORTED */
    {81, 167936},     /* MAX_SHARED_MEMORY_PER_MULTIPROCESSOR */
    {82, 65536},      /* MAX_REGISTERS_PER_MULTIPROCESSOR */
    {83, 1},          /* MANAGED_MEMORY */
    {86, 0},          /* HOST_NATIVE_ATOMIC_SUPPORTED */
    {87, 2},          /* SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO */
    {89, 1},          /* CONCURRENT_MANAGED_ACCESS */
    {90, 1},          /* COMPUTE_PREEMPTION_SUPPORTED */
    {91, 1},          /* CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM */
    {95, 1},          /* COOPERATIVE_LAUNCH */
    {97, 166912},     /* MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
    {99, 1},          /* HOST_REGISTER_SUPPORTED */
    {102, 1},         /* VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
    {103, 1},         /* HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED */
    {106, 32},        /* MAX_BLOCKS_PER_MULTIPROCESSOR */
    {108, 31457280},  /* MAX_PERSISTING_L2_CACHE_SIZE */
    {109, 134213632}, /* MAX_ACCESS_POLICY_WINDOW_SIZE */
    {111, 1024},      /* RESERVED_SHARED_MEMORY_PER_BLOCK */
    {112, 1},         /* SPARSE_CUDA_ARRAY_SUPPORTED */
    {113, 1},         /* READ_ONLY_HOST_REGISTER_SUPPORTED */
    {115, 1},         /* MEMORY_POOLS_SUPPORTED */
    {119, 1},         /* MEMPOOL_SUPPORTED_HANDLE_TYPES: a file descriptor */
    {121, 1},         /* DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED */
    {125, 1},         /* IPC_EVENT_SUPPORTED */
    {126, 1},         /* MEM_SYNC_DOMAIN_COUNT */
    {132, 1},         /* MULTICAST_SUPPORTED */
    {134, 0},         /* HOST_NUMA_ID */
    {141, 1},         /* HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
    {142, 1},         /* HOST_NUMA_MEMORY_POOLS_SUPPORTED */
    {144, 1},         /* HOST_MEMORY_POOLS_SUPPORTED */
    {145, 1},         /* HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
};
#define ATTRIBUTE_LAST       147
#define ATTRIBUTE_PCI_BUS_ID 33

CUuuid device_uuid(int ordinal)
{
    CUuuid uuid;
    for (int byte = 0; byte < 16; byte++)
        uuid.bytes[byte] = (char)(0x51 * (byte + 1) + ordinal);
    return uuid;
}

CUresult devices_make(void)
{
    device_count = simgpu_device_count();
    for (int i = 0; i < device_count; i++) {
        struct device *device = &devices[i];
        device->ordinal = i;
        device->memory = simgpu_memory_bytes() / GRANULE;
        snprintf(device->name, sizeof device->name, "Simulated GPU");
        device->uuid = device_uuid(i);
        uint64_t size = device->memory * GRANULE * WINDOW_FACTOR;
        size = window_size(size < WINDOW_LEAST ? WINDOW_LEAST : size, device->memory * GRANULE);
        for (; !device->window && size >= GRANULE; size /= 2)
            device->window = window_new(size, device, true);
        if (!device->window)
            return CUDA_ERROR_OPERATING_SYSTEM;
    }
    return device_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

struct device *device_get(CUdevice ordinal)
{
    return ordinal >= 0 && ordinal < device_count ? &devices[ordinal] : NULL;
}

EXPORT CUresult cuInit(unsigned int flags)
{
    return CALL("cuInit", NEEDS_NOTHING, flags ? CUDA_ERROR_INVALID_VALUE : driver_initialise());
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = SIMGPU_DRIVER_VERSION;
    return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *out, int ordinal)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_get(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *out = ordinal;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    return CALL("cuDeviceGet", NEEDS_INIT, get_device(device, ordinal));
}

static CUresult get_count(int *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = device_count;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    return CALL("cuDeviceGetCount", NEEDS_INIT, get_count(count));
}

static CUresult copy_text(char *out, int room, const char *text)
{
    if (!out || room <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(out, (size_t)room, "%s", text);
    return CUDA_SUCCESS;
}

static CUresult get_name(char *name, int room, CUdevice ordinal)
{
    const struct device *device = device_get(ordinal);
    return device ? copy_text(name, room, device->name) : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGetName(char *name, int room, CUdevice device)
{
    return CALL("cuDeviceGetName", NEEDS_INIT, get_name(name, room, device));
}

static CUresult get_uuid(CUuuid *uuid, CUdevice ordinal)
{
    const struct device *device = device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    *uuid = device->uuid;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return CALL("cuDeviceGetUuid", NEEDS_INIT, get_uuid(uuid, device));
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    return CALL("cuDeviceGetUuid", NEEDS_INIT, get_uuid(uuid, device));
}

static CUresult get_luid(char *luid, unsigned int *mask, CUdevice ordinal)
{
    (void)luid;
    (void)mask;
    return device_get(ordinal) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_DEVICE; /* Windows only */
}

EXPORT CUresult cuDeviceGetLuid(char *luid, unsigned int *mask, CUdevice device)
{
    return CALL("cuDeviceGetLuid", NEEDS_INIT, get_luid(luid, mask, device));
}

static CUresult total_memory(size_t *bytes, CUdevice ordinal)
{
    const struct device *device = device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = device->memory * GRANULE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    return CALL("cuDeviceTotalMem", NEEDS_INIT, total_memory(bytes, device));
}

EXPORT CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    size_t wide = 0;
    CUresult result = CALL("cuDeviceTotalMem", NEEDS_INIT, total_memory(bytes ? &wide : NULL, device));
    if (result == CUDA_SUCCESS)
        *bytes = wide > UINT32_MAX ? UINT32_MAX : (unsigned int)wide;
    return result;
}

static CUresult get_attribute(int *value, int attribute, CUdevice ordinal)
{
    const struct device *device = device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || attribute < 1 || attribute > ATTRIBUTE_LAST)
        return CUDA_ERROR_INVALID_VALUE;
    *value = 0;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].number == attribute)
            *value = attributes[i].value;
    if (attribute == ATTRIBUTE_PCI_BUS_ID)
        *value += ordinal;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    return CALL("cuDeviceGetAttribute", NEEDS_INIT, get_attribute(value, attribute, device));
}

static CUresult get_pci_bus_id(char *out, int room, CUdevice ordinal)
{
    char text[32];
    snprintf(text, sizeof text, "0000:%02x:00.0", (unsigned)(ordinal + 1) & 0xff);
    return device_get(ordinal) ? copy_text(out, room, text) : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *out, int room, CUdevice device)
{
    return CALL("cuDeviceGetPCIBusId", NEEDS_INIT, get_pci_bus_id(out, room, device));
}

static CUresult by_pci_bus_id(CUdevice *out, const char *text)
{
    if (!out || !text)
        return CUDA_ERROR_INVALID_VALUE;
    const char *bus = strchr(text, ':');
    if (!bus)
        return CUDA_ERROR_INVALID_VALUE;
    /* domain:bus:device.function, or bus:device.function */
    unsigned long number = strtoul(strchr(bus + 1, ':') ? bus + 1 : text, NULL, 16);
    return number >= 1 ? get_device(out, (int)number - 1) : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
    return CALL("cuDeviceGetByPCIBusId", NEEDS_INIT, by_pci_bus_id(device, text));
}

static CUresult compute_capability(int *major, int *minor, CUdevice ordinal)
{
    if (!device_get(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    *major = 8;
    *minor = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    return CALL("cuDeviceComputeCapability", NEEDS_INIT, compute_capability(major, minor, device));
}
