/* Streams, events and capture; graphs are in graph.c. */
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

EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    return RUN(driver.cuThreadExchangeStreamCaptureMode(mode));
}

static cudaError_t capture_info(cudaStream_t stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                cudaGraph_t *graph, const cudaGraphNode_t **behind,
                                const CUgraphEdgeData **edges, size_t *count)
{
    return RUN(driver.cuStreamGetCaptureInfo(stream, status, id, graph, behind, edges, count));
}

/* From CUDA 13 on by the parameters that were those of its third version. */
#if CUDART_VERSION < 13000
EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, CUstreamCaptureStatus *status,
                                            cuuint64_t *id)
{
    return capture_info(stream, status, id, NULL, NULL, NULL, NULL);
}
#else
EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, CUstreamCaptureStatus *status,
                                            cuuint64_t *id, cudaGraph_t *graph,
                                            const cudaGraphNode_t **behind, const CUgraphEdgeData **edges,
                                            size_t *count)
{
    return capture_info(stream, status, id, graph, behind, edges, count);
}
#endif

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

STREAMED(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
         driver.cuEventRecordWithFlags(event, stream, flags),
         driver.cuEventRecordWithFlags_ptsz(event, stream, flags))

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
