/* Allocations on streams that are being captured: nodes of the graph that comes of it (graphs.h). */
#include "hooks/ask.h"
#include "hooks/graph_table.h"

static CUstreamCaptureStatus capture_status(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return ask_cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS ? status : CU_STREAM_CAPTURE_STATUS_NONE;
}

bool graph_is_capturing(CUstream stream)
{
    return capture_status(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static CUgraph ask_capture_graph(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuuint64_t id;
    CUgraph graph = NULL;
    if (ask_cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, NULL, NULL) != CUDA_SUCCESS &&
        ask_cuStreamGetCaptureInfo_v3(stream, &status, &id, &graph, NULL, NULL, NULL) != CUDA_SUCCESS)
        return NULL;
    return status == CU_STREAM_CAPTURE_STATUS_NONE ? NULL : graph;
}

bool graph_captured(CUstream stream, CUdeviceptr address, size_t bytes, int device)
{
    if (!graph_is_capturing(stream))
        return false;
    CUgraph graph = ask_capture_graph(stream);
    graph_node_remember(graph, &(struct graph_memory){address, bytes, device}, &stream);
    return true;
}

/* The driver does not say any more what an invalidated capture was going into: what graph_nodes captured on
 * that stream went into, or else, where one capture is under way, that. */
static CUgraph graph_of_invalidated(CUstream stream)
{
    CUgraph found = NULL;
    uint64_t serial = 0;
    bool only_one = true;
    if (!tables_lock())
        return NULL;
    for (const struct graph_node *node = graph_nodes; node != NULL; node = node->hh.next) {
        if (!node->capturing)
            continue;
        only_one = only_one && (serial == 0 || serial == node->graph);
        serial = node->graph;
        if (node->stream == stream) {
            only_one = true;
            break;
        }
    }
    for (const struct graph *graph = graph_list; graph != NULL && only_one; graph = graph->hh.next) {
        if (graph->serial == serial)
            found = graph->handle;
    }
    tables_unlock();
    return found;
}

CUgraph graph_of_capture(CUstream stream)
{
    if (!graph_nodes_exist())
        return NULL;
    switch (capture_status(stream)) {
    case CU_STREAM_CAPTURE_STATUS_ACTIVE:
        return ask_capture_graph(stream);
    case CU_STREAM_CAPTURE_STATUS_INVALIDATED:
        return graph_of_invalidated(stream);
    default:
        return NULL;
    }
}

bool graph_capture_goes_on(CUstream stream)
{
    return capture_status(stream) != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Takes the captured graph_nodes of a graph out of the table, as a list. */
static struct graph_node *take_captured(uint64_t serial)
{
    struct graph_node *taken = NULL, *node, *next;
    HASH_ITER (hh, graph_nodes, node, next) {
        if (node->graph != serial || !node->capturing)
            continue;
        graph_node_take(node);
        node->next = taken;
        taken = node;
    }
    return taken;
}

static void delete_list(struct graph_node *list)
{
    if (!tables_lock())
        return;
    while (list != NULL) {
        struct graph_node *node = list;
        list = node->next;
        tables_delete(node);
    }
    tables_unlock();
}

void graph_capture_ended(CUgraph captured_into, CUgraph result)
{
    struct graph_node *lost = NULL;
    if (captured_into == NULL || !tables_lock())
        return;
    struct graph *graph = graph_find(captured_into);
    if (graph != NULL && result == NULL) {
        lost = take_captured(graph->serial);
    } else if (graph != NULL) {
        for (struct graph_node *node = graph_nodes; node != NULL; node = node->hh.next)
            node->capturing &= node->graph != graph->serial;
        if (result != captured_into && graph_find(result) == NULL) {
            HASH_DEL(graph_list, graph);
            graph->handle = result;
            HASH_ADD_PTR(graph_list, handle, graph);
        }
    }
    tables_unlock();
    for (struct graph_node *node = lost; node != NULL; node = node->next)
        graph_node_record_end(node);
    delete_list(lost);
}
