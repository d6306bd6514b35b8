/* Events: a point in a stream's work. As work is done when it is given, a recorded event has always happened.
 */
#include "base/clock.h"
#include "capture.h"
#include "entry.h"
#include "pool.h"
#include "stream.h"

#define EVENT_FLAGS (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

static CUresult create(CUevent *out, unsigned flags)
{
    bool interprocess = flags & CU_EVENT_INTERPROCESS, timed = !(flags & CU_EVENT_DISABLE_TIMING);
    if (!out || flags & ~(unsigned)EVENT_FLAGS || (interprocess && timed))
        return CUDA_ERROR_INVALID_VALUE;
    struct event *event = handle_new(HANDLE_EVENT, sizeof *event, context_current());
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->flags = flags;
    *out = (CUevent)event;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    return CALL("cuEventCreate", NEEDS_CONTEXT, create(event, flags));
}

void event_end(struct event *event)
{
    event_leave_capture(event);
    handle_end(event, sizeof *event);
}

static CUresult destroy(CUevent handle)
{
    struct event *event = handle_get(handle, HANDLE_EVENT);
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    event_end(event);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    return CALL("cuEventDestroy", NEEDS_INIT, destroy(event));
}

EXPORT CUresult cuEventDestroy(CUevent event)
{
    return cuEventDestroy_v2(event);
}

static CUresult record(CUevent handle, CUstream stream_handle, unsigned flags)
{
    struct event *event = handle_get(handle, HANDLE_EVENT);
    struct stream *stream;
    if (flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = event ? stream_for_work(stream_handle, &stream) : CUDA_ERROR_INVALID_HANDLE;
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture)
        return capture_record(stream, event);
    uint64_t now_ns = clock_monotonic_ns();
    event_leave_capture(event);
    event->recorded = true;
    event->nanoseconds = now_ns;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return CALL("cuEventRecord", NEEDS_CONTEXT, record(event, stream, 0));
}

EXPORT CUresult cuEventRecord_ptsz(CUevent event, CUstream stream)
{
    return cuEventRecord(event, per_thread(stream));
}

EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
    return CALL("cuEventRecordWithFlags", NEEDS_CONTEXT, record(event, stream, flags));
}

EXPORT CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned int flags)
{
    return cuEventRecordWithFlags(event, per_thread(stream), flags);
}

static CUresult stream_wait(CUstream stream_handle, CUevent handle, unsigned flags)
{
    struct event *event = handle_get(handle, HANDLE_EVENT);
    struct stream *stream;
    if (flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = event ? stream_get(stream_handle, &stream) : CUDA_ERROR_INVALID_HANDLE;
    return result == CUDA_SUCCESS ? capture_wait(stream, event) : result;
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    return CALL("cuStreamWaitEvent", NEEDS_CONTEXT, stream_wait(stream, event, flags));
}

EXPORT CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned int flags)
{
    return cuStreamWaitEvent(per_thread(stream), event, flags);
}

static CUresult wait(CUevent handle, bool synchronize)
{
    const struct event *event = handle_get(handle, HANDLE_EVENT);
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (synchronize)
        pools_synchronize();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventQuery(CUevent event)
{
    return CALL("cuEventQuery", NEEDS_INIT | NEEDS_NO_CAPTURE, wait(event, false));
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
    return CALL("cuEventSynchronize", NEEDS_INIT | NEEDS_NO_CAPTURE, wait(event, true));
}

static CUresult elapsed(float *milliseconds, CUevent start_handle, CUevent end_handle)
{
    const struct event *start = handle_get(start_handle, HANDLE_EVENT),
                       *end = handle_get(end_handle, HANDLE_EVENT);
    if (!milliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (!start || !end || !start->recorded || !end->recorded ||
        (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    *milliseconds = (float)((double)(int64_t)(end->nanoseconds - start->nanoseconds) / 1e6);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    return CALL("cuEventElapsedTime", NEEDS_INIT, elapsed(milliseconds, start, end));
}

EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    return cuEventElapsedTime(milliseconds, start, end);
}
