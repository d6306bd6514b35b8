/*
 * What hooks ask the driver themselves, in the middle of a call of the program: questions none of which
 * allocates, synchronises or leaves a trace in the program's state (a reference that is taken to learn what
 * it is to is given back at once). Each answers CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND where the driver
 * has no such function.
 *
 * ask_NAME(…) is the driver's NAME, without our own hooks in the way.
 */
#ifndef HOOKS_ASK_H
#define HOOKS_ASK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "capture/elf_image.h"
#include "cuda/abi.h"

/* X(name, parameters, arguments) */
#define ASKED(X)                                                                                             \
    X(cuDriverGetVersion, (int *version), (version))                                                         \
    X(cuCtxGetCurrent, (CUcontext * context), (context))                                                     \
    X(cuCtxGetDevice, (CUdevice * device), (device))                                                         \
    X(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned int *flags, int *active),                       \
      (device, flags, active))                                                                               \
    X(cuPointerGetAttribute, (void *data, CUpointer_attribute attribute, CUdeviceptr address),               \
      (data, attribute, address))                                                                            \
    X(cuMemGetInfo_v2, (size_t * free_bytes, size_t * total_bytes), (free_bytes, total_bytes))               \
    X(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device), (bytes, device))                               \
    X(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device), (uuid, device))                                     \
    X(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device), (uuid, device))                                  \
    X(cuDeviceGetGraphMemAttribute, (CUdevice device, CUgraphMem_attribute attribute, void *value),          \
      (device, attribute, value))                                                                            \
    X(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t * bytes, CUdeviceptr address),                    \
      (base, bytes, address))                                                                                \
    X(cuMemGetAllocationPropertiesFromHandle,                                                                \
      (CUmemAllocationProp * props, CUmemGenericAllocationHandle handle), (props, handle))                   \
    X(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void *address),                   \
      (handle, address))                                                                                     \
    X(cuMemRelease, (CUmemGenericAllocationHandle handle), (handle))                                         \
    X(cuArrayGetMemoryRequirements,                                                                          \
      (CUDA_ARRAY_MEMORY_REQUIREMENTS * requirements, CUarray array, CUdevice device),                       \
      (requirements, array, device))                                                                         \
    X(cuMipmappedArrayGetMemoryRequirements,                                                                 \
      (CUDA_ARRAY_MEMORY_REQUIREMENTS * requirements, CUmipmappedArray array, CUdevice device),              \
      (requirements, array, device))                                                                         \
    X(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus * status), (stream, status))              \
    X(cuStreamGetCaptureInfo_v2,                                                                             \
      (CUstream stream, CUstreamCaptureStatus * status, cuuint64_t * id, CUgraph * graph,                    \
       const CUgraphNode **dependencies, size_t *count),                                                     \
      (stream, status, id, graph, dependencies, count))                                                      \
    X(cuStreamGetCaptureInfo_v3,                                                                             \
      (CUstream stream, CUstreamCaptureStatus * status, cuuint64_t * id, CUgraph * graph,                    \
       const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count),                      \
      (stream, status, id, graph, dependencies, edges, count))                                               \
    X(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), (mode))                               \
    X(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device), (pool, device))                            \
    X(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value),                \
      (pool, attribute, value))

#define AS_QUESTION(name, parameters, arguments)                                                             \
    extern CUresult(*_Atomic asked_##name) parameters;                                                       \
    static inline CUresult ask_##name parameters                                                             \
    {                                                                                                        \
        CUresult(*function) parameters = atomic_load_explicit(&asked_##name, memory_order_acquire);          \
        return function == NULL ? CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND : function arguments;            \
    }
ASKED(AS_QUESTION)
#undef AS_QUESTION

/* Around questions that the driver calls unsafe: in a thread that captures a stream, or while another one
 * captures in the global mode, they would end the capture. Saying that we mean it keeps them out of that. */
struct asking {
    CUstreamCaptureMode mode;
    bool exchanged;
};

static inline struct asking ask_begin(void)
{
    struct asking asking = {.mode = CU_STREAM_CAPTURE_MODE_RELAXED};
    asking.exchanged = ask_cuThreadExchangeStreamCaptureMode(&asking.mode) == CUDA_SUCCESS;
    return asking;
}

static inline void ask_end(struct asking *asking)
{
    if (asking->exchanged)
        ask_cuThreadExchangeStreamCaptureMode(&asking->mode);
}

/* The loaded driver is `image`; later: it is gone. */
void ask_find_all(const struct elf_image *image);
void ask_forget_all(void);

#endif
