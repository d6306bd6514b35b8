/* Streams, events, capture and graphs. */
#include "runtime.h"

EXPORT cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return RUN(driver.cuStreamCreate(stream, CU_STREAM_DEFAULT));
}

EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    return RUN(driver.cuStreamCreate(stream, flags));
}

EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    return RUN(driver.cuStreamCreateWithPriority(stream, flags, priority));
}

EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return RUN(driver.cuStreamDestroy(stream));
}

STREAMED(cudaStreamSynchronize, (cudaStream_t stream), driver.cuStreamSynchronize(stream),
         driver.cuStreamSynchronize_ptsz(stream))
STREAMED(cudaStreamQuery, (cudaStream_t stream), driver.cuStreamQuery(stream),
         driver.cuStreamQuery_ptsz(stream))
STREAMED(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
         driver.cuStreamWaitEvent(stream, event, flags), driver.cuStreamWaitEvent_ptsz(stream, event, flags))
STREAMED(cudaStreamBeginCapture, (cudaStream_t stream, CUstreamCaptureMode mode),
         driver.cuStreamBeginCapture(stream, mode), driver.cuStreamBeginCapture_ptsz(stream, mode))
STREAMED(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph),
         driver.cuStreamEndCapture(stream, graph), driver.cuStreamEndCapture_ptsz(stream, graph))
STREAMED(cudaLaunchHostFunc, (cudaStream_t stream, CUhostFn function, void *data),
         driver.cuLaunchHostFunc(stream, function, data),
         driver.cuLaunchHostFunc_ptsz(stream, function, data))

EXPORT cudaError_t cudaStreamIsCapturing(cudaStream_t stream, CUstreamCaptureStatus *status)
{
    return RUN(driver.cuStreamIsCapturing(stream, status));
}

/* ---- events ---- */

EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return RUN(driver.cuEventCreate(event, CU_EVENT_DEFAULT));
}

EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    return RUN(driver.cuEventCreate(event, flags));
}

EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return RUN(driver.cuEventDestroy(event));
}

STREAMED(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), driver.cuEventRecord(event, stream),
         driver.cuEventRecord_ptsz(event, stream))

EXPORT cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return RUN(driver.cuEventQuery(event));
}

EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return RUN(driver.cuEventSynchronize(event));
}

EXPORT cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    return RUN(driver.cuEventElapsedTime(milliseconds, start, end));
}

/* ---- graphs ---- */

EXPORT cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    return ASK(driver.cuGraphCreate(graph, flags));
}

EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return ASK(driver.cuGraphDestroy(graph));
}

EXPORT cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph)
{
    return ASK(driver.cuGraphClone(clone, graph));
}

EXPORT cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                         const cudaGraphNode_t *behind, size_t count)
{
    return RUN(driver.cuGraphAddEmptyNode(node, graph, behind, count));
}

EXPORT cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                            const cudaGraphNode_t *behind, size_t count,
                                            cudaMemAllocNodeParams *parameters)
{
    return RUN(driver.cuGraphAddMemAllocNode(node, graph, behind, count, parameters));
}

EXPORT cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                           const cudaGraphNode_t *behind, size_t count, void *pointer)
{
    return RUN(driver.cuGraphAddMemFreeNode(node, graph, behind, count, (CUdeviceptr)pointer));
}

EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                 unsigned long long flags)
{
    return RUN(driver.cuGraphInstantiateWithFlags(exec, graph, flags));
}

EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    return RUN(driver.cuGraphInstantiateWithFlags(exec, graph, flags));
}

EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return RUN(driver.cuGraphExecDestroy(exec));
}

STREAMED(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), driver.cuGraphLaunch(exec, stream),
         driver.cuGraphLaunch_ptsz(exec, stream))

EXPORT cudaError_t cudaDeviceGraphMemTrim(int device)
{
    return ASK(driver.cuDeviceGraphMemTrim(device));
}

EXPORT cudaError_t cudaDeviceGetGraphMemAttribute(int device, CUgraphMem_attribute attribute, void *value)
{
    return ASK(driver.cuDeviceGetGraphMemAttribute(device, attribute, value));
}

EXPORT cudaError_t cudaDeviceSetGraphMemAttribute(int device, CUgraphMem_attribute attribute, void *value)
{
    return ASK(driver.cuDeviceSetGraphMemAttribute(device, attribute, value));
}
