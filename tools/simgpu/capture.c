/*
 * Stream capture. A capture has the stream it began on and those that joined by waiting for an event recorded
 * inside it; each has a tail, the nodes that its next one comes behind.
 */
#include "capture.h"

#include <stdlib.h>

#include "entry.h"
#include "graph.h"

struct capture {
    unsigned long long id;
    struct graph *graph;
    bool own_graph; /* made by the capture, not given to it */
    bool invalid;
    CUstreamCaptureMode mode;
    const void *thread; /* that began it */
    struct stream *origin, *streams;
    struct event *events;
    struct capture *next;
};

static struct capture *captures;
static unsigned long long last_id;
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
#define THIS_THREAD ((const void *)&thread_mode)

/* ---- what a running capture forbids ---- */

/* Whether it stands against a potentially unsafe call of this thread. */
static bool forbids(const struct capture *capture)
{
    bool own = capture->thread == THIS_THREAD;
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    if (own)
        return capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult capture_forbids(void)
{
    CUresult result = CUDA_SUCCESS;
    for (struct capture *capture = captures; capture; capture = capture->next)
        if (forbids(capture)) {
            capture->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return result;
}

/* The legacy stream would wait for every capturing stream that is not non-blocking. */
static CUresult implicit(const struct stream *legacy)
{
    CUresult result = CUDA_SUCCESS;
    for (struct capture *capture = captures; capture; capture = capture->next)
        for (const struct stream *stream = capture->streams; stream; stream = stream->next_captured)
            if (stream->context == legacy->context && !(stream->flags & CU_STREAM_NON_BLOCKING)) {
                capture->invalid = true;
                result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
            }
    return result;
}

CUresult capture_allows_work(struct stream *stream)
{
    if (stream->capture)
        return stream->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    return stream->legacy && captures ? implicit(stream) : CUDA_SUCCESS;
}

CUresult capture_forbids_wait(struct stream *stream)
{
    if (!stream->capture)
        return stream->legacy && captures ? implicit(stream) : CUDA_SUCCESS;
    stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
    if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    return CALL("cuThreadExchangeStreamCaptureMode", NEEDS_INIT, exchange_mode(mode));
}

struct graph *capture_graph(const struct stream *stream)
{
    return stream->capture->graph;
}

/* ---- beginning ---- */

static void join(struct capture *capture, struct stream *stream)
{
    stream_begins_capture(stream);
    stream->capture = capture;
    stream->next_captured = capture->streams;
    capture->streams = stream;
}

static CUresult begin(CUstream handle, struct graph *graph, struct node *const *behind, size_t count,
                      CUstreamCaptureMode mode)
{
    struct stream *stream;
    CUresult result = stream_get(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED || (count && !behind))
        return CUDA_ERROR_INVALID_VALUE;
    struct capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return CUDA_ERROR_OUT_OF_MEMORY;
    bool good = true;
    for (size_t i = 0; good && i < count; i++)
        good = list_add(&stream->tail, behind[i]);
    capture->own_graph = !graph;
    capture->graph = graph ? graph : graph_new();
    if (!good || !capture->graph) {
        list_end(&stream->tail);
        free(capture);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->graph->capturing = true;
    capture->id = ++last_id;
    capture->mode = mode;
    capture->thread = THIS_THREAD;
    capture->origin = stream;
    capture->next = captures;
    captures = capture;
    join(capture, stream);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    return CALL("cuStreamBeginCapture", NEEDS_CONTEXT, begin(stream, NULL, NULL, 0, mode));
}

EXPORT CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode)
{
    return cuStreamBeginCapture_v2(per_thread(stream), mode);
}

EXPORT CUresult cuStreamBeginCapture(CUstream stream)
{
    return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

EXPORT CUresult cuStreamBeginCapture_ptsz(CUstream stream)
{
    return cuStreamBeginCapture_v2(per_thread(stream), CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static CUresult begin_to_graph(CUstream stream, CUgraph handle, const CUgraphNode *behind, size_t count,
                               CUstreamCaptureMode mode)
{
    struct graph *graph = graph_get(handle);
    if (!graph || graph->capturing)
        return CUDA_ERROR_INVALID_VALUE;
    return begin(stream, graph, (struct node *const *)behind, count, mode);
}

EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *behind,
                                            const CUgraphEdgeData *edges, size_t count,
                                            CUstreamCaptureMode mode)
{
    (void)edges;
    return CALL("cuStreamBeginCaptureToGraph", NEEDS_CONTEXT,
                begin_to_graph(stream, graph, behind, count, mode));
}

EXPORT CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode *behind,
                                                 const CUgraphEdgeData *edges, size_t count,
                                                 CUstreamCaptureMode mode)
{
    return cuStreamBeginCaptureToGraph(per_thread(stream), graph, behind, edges, count, mode);
}

/* ---- events ---- */

void event_leave_capture(struct event *event)
{
    struct capture *capture = event->capture;
    if (!capture)
        return;
    struct event **link = &capture->events;
    while (*link != event)
        link = &(*link)->next_captured;
    *link = event->next_captured;
    event->capture = NULL;
    list_end(&event->behind);
}

CUresult capture_record(struct stream *stream, struct event *event)
{
    event_leave_capture(event);
    for (size_t i = 0; i < stream->tail.count; i++)
        if (!list_add(&event->behind, stream->tail.nodes[i]))
            return CUDA_ERROR_OUT_OF_MEMORY;
    event->capture = stream->capture;
    event->next_captured = stream->capture->events;
    stream->capture->events = event;
    return CUDA_SUCCESS;
}

CUresult capture_wait(struct stream *stream, struct event *event)
{
    if (!event->capture) {
        if (!stream->capture)
            return CUDA_SUCCESS;
        if (stream->capture->invalid)
            return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (!event->recorded)
            return CUDA_SUCCESS;
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION; /* work outside cannot come before a graph's */
    }
    if (event->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (stream->capture && stream->capture != event->capture) {
        stream->capture->invalid = event->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (!stream->capture)
        join(event->capture, stream);
    for (size_t i = 0; i < event->behind.count; i++)
        if (!list_has(&stream->tail, event->behind.nodes[i]) &&
            !list_add(&stream->tail, event->behind.nodes[i]))
            return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

/* ---- ending ---- */

static void capture_end(struct capture *capture)
{
    struct capture **link = &captures;
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    while (capture->events)
        event_leave_capture(capture->events);
    for (struct stream *stream = capture->streams, *next; stream; stream = next) {
        next = stream->next_captured;
        stream->next_captured = NULL;
        stream->capture = NULL;
        list_end(&stream->tail);
    }
    capture->graph->capturing = false;
    free(capture);
}

void capture_abandon(struct stream *stream)
{
    struct capture *capture = stream->capture;
    if (!capture)
        return;
    if (stream == capture->origin) {
        struct graph *graph = capture->own_graph ? capture->graph : NULL;
        capture_end(capture);
        if (graph)
            graph_end(graph);
        return;
    }
    struct stream **link = &capture->streams;
    while (*link != stream)
        link = &(*link)->next_captured;
    *link = stream->next_captured;
    stream->capture = NULL;
    list_end(&stream->tail);
    capture->invalid = true;
}

/* Whether `node` is one of `list` or comes before one of them. */
static bool comes_before(const struct node *node, const struct node_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->nodes[i] == node || comes_before(node, &list->nodes[i]->behind))
            return true;
    return false;
}

/* Every stream that joined must have been waited for. */
static bool all_joined(const struct capture *capture)
{
    for (const struct stream *stream = capture->streams; stream; stream = stream->next_captured)
        for (size_t i = 0; stream != capture->origin && i < stream->tail.count; i++)
            if (!comes_before(stream->tail.nodes[i], &capture->origin->tail))
                return false;
    return true;
}

static CUresult end(CUstream handle, CUgraph *out)
{
    struct stream *stream;
    CUresult result = out ? stream_get(handle, &stream) : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    struct capture *capture = stream->capture;
    if (!capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != THIS_THREAD)
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (capture->origin != stream)
        result = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    else if (capture->invalid)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!all_joined(capture))
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    *out = NULL;
    if (result == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) {
        capture->invalid = true;
        return result;
    }
    struct graph *graph = capture->graph;
    bool own = capture->own_graph;
    capture_end(capture);
    if (result == CUDA_SUCCESS)
        *out = (CUgraph)graph;
    else if (own)
        graph_end(graph);
    return result;
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    return CALL("cuStreamEndCapture", NEEDS_CONTEXT, end(stream, graph));
}

EXPORT CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
    return cuStreamEndCapture(per_thread(stream), graph);
}

/* ---- questions ---- */

static CUresult capture_info(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                             const CUgraphNode **behind, size_t *count)
{
    struct stream *stream;
    CUresult result = status ? stream_get(handle, &stream) : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->legacy && captures && implicit(stream) != CUDA_SUCCESS)
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    const struct capture *capture = stream->capture;
    *status = !capture           ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS;
    if (id)
        *id = capture->id;
    if (graph)
        *graph = (CUgraph)capture->graph;
    if (behind)
        *behind = (const CUgraphNode *)stream->tail.nodes;
    if (count)
        *count = stream->tail.count;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    return CALL("cuStreamIsCapturing", NEEDS_CONTEXT, capture_info(stream, status, NULL, NULL, NULL, NULL));
}

EXPORT CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus *status)
{
    return cuStreamIsCapturing(per_thread(stream), status);
}

EXPORT CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return CALL("cuStreamGetCaptureInfo", NEEDS_CONTEXT, capture_info(stream, status, id, NULL, NULL, NULL));
}

EXPORT CUresult cuStreamGetCaptureInfo_ptsz(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
    return cuStreamGetCaptureInfo(per_thread(stream), status, id);
}

EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                          CUgraph *graph, const CUgraphNode **behind, size_t *count)
{
    return CALL("cuStreamGetCaptureInfo", NEEDS_CONTEXT,
                capture_info(stream, status, id, graph, behind, count));
}

EXPORT CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                               CUgraph *graph, const CUgraphNode **behind, size_t *count)
{
    return cuStreamGetCaptureInfo_v2(per_thread(stream), status, id, graph, behind, count);
}

EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                          CUgraph *graph, const CUgraphNode **behind,
                                          const CUgraphEdgeData **edges, size_t *count)
{
    if (edges)
        *edges = NULL; /* all of them are the default */
    return cuStreamGetCaptureInfo_v2(stream, status, id, graph, behind, count);
}

EXPORT CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                               CUgraph *graph, const CUgraphNode **behind,
                                               const CUgraphEdgeData **edges, size_t *count)
{
    return cuStreamGetCaptureInfo_v3(per_thread(stream), status, id, graph, behind, edges, count);
}

static CUresult update_tail(CUstream handle, const CUgraphNode *behind, size_t count, unsigned flags)
{
    struct stream *stream;
    CUresult result = stream_get(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count && !behind))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        const struct node *node = handle_get(behind[i], HANDLE_NODE);
        if (!node || node->graph != stream->capture->graph)
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        list_end(&stream->tail);
    for (size_t i = 0; i < count; i++)
        if (!list_has(&stream->tail, (struct node *)behind[i]) &&
            !list_add(&stream->tail, (struct node *)behind[i]))
            return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *behind, size_t count,
                                                  unsigned int flags)
{
    return CALL("cuStreamUpdateCaptureDependencies", NEEDS_CONTEXT,
                update_tail(stream, behind, count, flags));
}

EXPORT CUresult cuStreamUpdateCaptureDependencies_ptsz(CUstream stream, CUgraphNode *behind, size_t count,
                                                       unsigned int flags)
{
    return cuStreamUpdateCaptureDependencies(per_thread(stream), behind, count, flags);
}

EXPORT CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *behind,
                                                     const CUgraphEdgeData *edges, size_t count,
                                                     unsigned int flags)
{
    (void)edges;
    return cuStreamUpdateCaptureDependencies(stream, behind, count, flags);
}

EXPORT CUresult cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream stream, CUgraphNode *behind,
                                                          const CUgraphEdgeData *edges, size_t count,
                                                          unsigned int flags)
{
    return cuStreamUpdateCaptureDependencies_v2(per_thread(stream), behind, edges, count, flags);
}
