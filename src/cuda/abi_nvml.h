/*
 * What we use of the binary interface of NVML (libnvidia-ml.so.1, a part of the driver), under NVIDIA's own
 * names, as nvml.h of CUDA 12.9 has it. tests/unit/test_cuda_abi.c compares it with the real header where it
 * finds one. Not to be included together with nvml.h.
 */
#ifndef CUDA_ABI_NVML_H
#define CUDA_ABI_NVML_H

#include <stdint.h>

typedef enum nvmlReturn_enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9
} nvmlReturn_t;

typedef struct nvmlDevice_st *nvmlDevice_t;

typedef struct nvmlMemory_st {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used; /* with what the driver keeps for itself */
} nvmlMemory_t;

/* Of nvmlDeviceGetComputeRunningProcesses_v3 and nvmlDeviceGetGraphicsRunningProcesses_v3. */
typedef struct nvmlProcessInfo_v2_st {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
} nvmlProcessInfo_t;

#define NVML_INIT_FLAG_NO_ATTACH 2
#define NVML_VALUE_NOT_AVAILABLE (-1)

/* "GPU-" or "MIG-", 32 digits and four dashes, and the NUL. */
#define NVML_UUID_TEXT 41

#endif
