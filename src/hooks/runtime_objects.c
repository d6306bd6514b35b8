/*
 * The runtime's arrays, graphs, imports and driver look-ups (as runtime.c). Their sizes follow from what the
 * runtime asks of the driver, so that nothing is recorded where the driver's hooks do not see it.
 */
#include "hooks/call.h"
#include "hooks/proc_address.h"

RUNTIME_HOOK(cudaMallocArray, (cudaArray_t * array, const struct cudaChannelFormatDesc *format, size_t width,
                               size_t height, unsigned int flags))
{
    FORWARD_RUNTIME(cudaMallocArray);
    cudaError_t rc = REAL_RUNTIME(array, format, width, height, flags);
    return call_end_runtime(&call, rc, NULL);
}

RUNTIME_HOOK(cudaMalloc3DArray, (cudaArray_t * array, const struct cudaChannelFormatDesc *format,
                                 struct cudaExtent extent, unsigned int flags))
{
    FORWARD_RUNTIME(cudaMalloc3DArray);
    cudaError_t rc = REAL_RUNTIME(array, format, extent, flags);
    return call_end_runtime(&call, rc, NULL);
}

RUNTIME_HOOK(cudaMallocMipmappedArray,
             (cudaMipmappedArray_t * array, const struct cudaChannelFormatDesc *format,
              struct cudaExtent extent, unsigned int levels, unsigned int flags))
{
    FORWARD_RUNTIME(cudaMallocMipmappedArray);
    cudaError_t rc = REAL_RUNTIME(array, format, extent, levels, flags);
    return call_end_runtime(&call, rc, NULL);
}

RUNTIME_HOOK(cudaFreeArray, (cudaArray_t array))
{
    FORWARD_RUNTIME(cudaFreeArray);
    cudaError_t rc = REAL_RUNTIME(array);
    return call_end_runtime(&call, rc, NULL);
}

RUNTIME_HOOK(cudaFreeMipmappedArray, (cudaMipmappedArray_t array))
{
    FORWARD_RUNTIME(cudaFreeMipmappedArray);
    cudaError_t rc = REAL_RUNTIME(array);
    return call_end_runtime(&call, rc, NULL);
}

RUNTIME_HOOK(cudaIpcOpenMemHandle, (void **address, cudaIpcMemHandle_t handle, unsigned int flags))
{
    FORWARD_RUNTIME(cudaIpcOpenMemHandle);
    cudaError_t rc = REAL_RUNTIME(address, handle, flags);
    return call_end_runtime(&call, rc, NULL);
}

RUNTIME_HOOK(cudaIpcCloseMemHandle, (void *address))
{
    FORWARD_RUNTIME(cudaIpcCloseMemHandle);
    cudaError_t rc = REAL_RUNTIME(address);
    return call_end_runtime(&call, rc, NULL);
}

RUNTIME_HOOK(cudaMemPoolImportPointer, (void **address, cudaMemPool_t pool, cudaMemPoolPtrExportData *data))
{
    FORWARD_RUNTIME(cudaMemPoolImportPointer);
    cudaError_t rc = REAL_RUNTIME(address, pool, data);
    return call_end_runtime(&call, rc, NULL);
}

RUNTIME_HOOK(cudaExternalMemoryGetMappedBuffer,
             (void **address, cudaExternalMemory_t memory, const cudaExternalMemoryBufferDesc *of))
{
    FORWARD_RUNTIME(cudaExternalMemoryGetMappedBuffer);
    cudaError_t rc = REAL_RUNTIME(address, memory, of);
    return call_end_runtime(&call, rc, NULL);
}

RUNTIME_HOOK(cudaExternalMemoryGetMappedMipmappedArray,
             (cudaMipmappedArray_t * array, cudaExternalMemory_t memory,
              const struct cudaExternalMemoryMipmappedArrayDesc *of))
{
    FORWARD_RUNTIME(cudaExternalMemoryGetMappedMipmappedArray);
    cudaError_t rc = REAL_RUNTIME(array, memory, of);
    return call_end_runtime(&call, rc, NULL);
}

RUNTIME_HOOK(cudaGraphAddMemAllocNode,
             (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
              cudaMemAllocNodeParams *params))
{
    FORWARD_RUNTIME(cudaGraphAddMemAllocNode);
    cudaError_t rc = REAL_RUNTIME(node, graph, dependencies, count, params);
    return call_end_runtime(&call, rc, NULL);
}

/* Five arguments in CUDA 12, six from 13 on, under the same name. All are words in registers, so six are
 * passed on whichever it is. */
RUNTIME_HOOK(cudaGraphAddNode, (cudaGraphNode_t * node, cudaGraph_t graph, uintptr_t third, uintptr_t fourth,
                                uintptr_t fifth, uintptr_t sixth))
{
    FORWARD_RUNTIME(cudaGraphAddNode);
    cudaError_t rc = REAL_RUNTIME(node, graph, third, fourth, fifth, sixth);
    return call_end_runtime(&call, rc, NULL);
}

RUNTIME_HOOK(cudaGraphAddNode_v2,
             (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
              const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params))
{
    FORWARD_RUNTIME(cudaGraphAddNode_v2);
    cudaError_t rc = REAL_RUNTIME(node, graph, dependencies, edges, count, params);
    return call_end_runtime(&call, rc, NULL);
}

RUNTIME_HOOK(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream))
{
    FORWARD_RUNTIME(cudaGraphLaunch);
    cudaError_t rc = REAL_RUNTIME(exec, stream);
    return call_end_runtime(&call, rc, NULL);
}

RUNTIME_HOOK(cudaGraphLaunch_ptsz, (cudaGraphExec_t exec, cudaStream_t stream))
{
    FORWARD_RUNTIME(cudaGraphLaunch_ptsz);
    cudaError_t rc = REAL_RUNTIME(exec, stream);
    return call_end_runtime(&call, rc, NULL);
}

/* A fourth argument since CUDA 12. */
RUNTIME_HOOK(cudaGetDriverEntryPoint,
             (const char *symbol, void **function, unsigned long long flags, void *status))
{
    FORWARD_RUNTIME(cudaGetDriverEntryPoint);
    cudaError_t rc = REAL_RUNTIME(symbol, function, flags, status);
    if (rc == cudaSuccess)
        proc_address_replace(symbol, function, PROC_ADDRESS_ANY_VERSION, flags);
    return call_end_runtime(&call, rc, NULL);
}

RUNTIME_HOOK(cudaGetDriverEntryPoint_ptsz,
             (const char *symbol, void **function, unsigned long long flags, void *status))
{
    FORWARD_RUNTIME(cudaGetDriverEntryPoint_ptsz);
    cudaError_t rc = REAL_RUNTIME(symbol, function, flags, status);
    if (rc == cudaSuccess)
        proc_address_replace(symbol, function, PROC_ADDRESS_ANY_VERSION, flags);
    return call_end_runtime(&call, rc, NULL);
}

RUNTIME_HOOK(cudaGetDriverEntryPointByVersion, (const char *symbol, void **function, unsigned int version,
                                                unsigned long long flags, void *status))
{
    FORWARD_RUNTIME(cudaGetDriverEntryPointByVersion);
    cudaError_t rc = REAL_RUNTIME(symbol, function, version, flags, status);
    if (rc == cudaSuccess)
        proc_address_replace(symbol, function, (int)version, flags);
    return call_end_runtime(&call, rc, NULL);
}

/* By default, the variants for the thread's own stream. */
RUNTIME_HOOK(cudaGetDriverEntryPointByVersion_ptsz,
             (const char *symbol, void **function, unsigned int version, unsigned long long flags,
              void *status))
{
    FORWARD_RUNTIME(cudaGetDriverEntryPointByVersion_ptsz);
    cudaError_t rc = REAL_RUNTIME(symbol, function, version, flags, status);
    if ((flags & (CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)) == 0)
        flags |= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (rc == cudaSuccess)
        proc_address_replace(symbol, function, (int)version, flags);
    return call_end_runtime(&call, rc, NULL);
}
