/* The driver's functions that make, copy and end graphs and add nodes to them. */
#include "entry.h"
#include "graph.h"

#include <string.h>

static CUresult create(CUgraph *out, unsigned flags)
{
    if (!out || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUgraph)graph_new();
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    return CALL("cuGraphCreate", NEEDS_INIT, create(graph, flags));
}

/* A graph that a parent owns, or that a capture writes, is not the program's to end. */
static CUresult destroy(CUgraph handle)
{
    struct graph *graph = graph_get(handle);
    if (!graph || graph->parent || graph->capturing)
        return CUDA_ERROR_INVALID_VALUE;
    graph_end(graph);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroy(CUgraph graph)
{
    return CALL("cuGraphDestroy", NEEDS_INIT, destroy(graph));
}

static CUresult clone(CUgraph *out, CUgraph handle)
{
    const struct graph *graph = graph_get(handle);
    if (!out || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph->has_memory)
        return CUDA_ERROR_NOT_SUPPORTED;
    *out = (CUgraph)graph_copy(graph);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuGraphClone(CUgraph *out, CUgraph graph)
{
    return CALL("cuGraphClone", NEEDS_INIT, clone(out, graph));
}

static CUresult destroy_node(CUgraphNode handle)
{
    struct node *node = handle_get(handle, HANDLE_NODE);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    struct graph *graph = node->graph;
    if (graph->has_memory || graph->capturing)
        return CUDA_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < graph->nodes.count; i++)
        list_remove(&graph->nodes.nodes[i]->behind, node);
    list_remove(&graph->nodes, node);
    node_end(node);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroyNode(CUgraphNode node)
{
    return CALL("cuGraphDestroyNode", NEEDS_INIT, destroy_node(node));
}

/* ---- adding ---- */

static CUresult add(CUgraphNode *out, CUgraph handle, const CUgraphNode *behind, size_t count,
                    const struct work *work)
{
    struct graph *graph = graph_get(handle);
    if (!out || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    return graph_add(graph, work, (struct node *const *)behind, count, (struct node **)out);
}

EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind, size_t count)
{
    struct work work = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return CALL("cuGraphAddEmptyNode", NEEDS_INIT, add(node, graph, behind, count, &work));
}

static CUresult add_kernel(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind, size_t count,
                           const CUDA_KERNEL_NODE_PARAMS *kernel)
{
    if (!kernel || !kernel->gridDimX || !kernel->gridDimY || !kernel->gridDimZ || !kernel->blockDimX ||
        !kernel->blockDimY || !kernel->blockDimZ)
        return CUDA_ERROR_INVALID_VALUE;
    struct work work = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *kernel};
    return add(node, graph, behind, count, &work);
}

EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind,
                                        size_t count, const CUDA_KERNEL_NODE_PARAMS *kernel)
{
    return CALL("cuGraphAddKernelNode", NEEDS_INIT, add_kernel(node, graph, behind, count, kernel));
}

EXPORT CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind,
                                     size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *old)
{
    CUDA_KERNEL_NODE_PARAMS kernel = {0};
    if (old)
        memcpy(&kernel, old, sizeof *old); /* the newer one continues the older */
    return CALL("cuGraphAddKernelNode", NEEDS_INIT,
                add_kernel(node, graph, behind, count, old ? &kernel : NULL));
}

static CUresult add_copy(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind, size_t count,
                         const CUDA_MEMCPY3D *copy)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    struct work work = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = *copy};
    return add(node, graph, behind, count, &work);
}

EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind,
                                     size_t count, const CUDA_MEMCPY3D *copy, CUcontext context)
{
    (void)context;
    return CALL("cuGraphAddMemcpyNode", NEEDS_INIT, add_copy(node, graph, behind, count, copy));
}

static CUresult add_fill(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind, size_t count,
                         const CUDA_MEMSET_NODE_PARAMS *fill)
{
    if (!fill || (fill->elementSize != 1 && fill->elementSize != 2 && fill->elementSize != 4))
        return CUDA_ERROR_INVALID_VALUE;
    struct work work = {
        .type = CU_GRAPH_NODE_TYPE_MEMSET,
        .fill = {fill->dst, fill->pitch, fill->width, fill->height, fill->value, fill->elementSize}};
    return add(node, graph, behind, count, &work);
}

EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind,
                                     size_t count, const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
    (void)context;
    return CALL("cuGraphAddMemsetNode", NEEDS_INIT, add_fill(node, graph, behind, count, fill));
}

static CUresult add_host(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind, size_t count,
                         const CUDA_HOST_NODE_PARAMS *host)
{
    if (!host || !host->fn)
        return CUDA_ERROR_INVALID_VALUE;
    struct work work = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = *host};
    return add(node, graph, behind, count, &work);
}

EXPORT CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind, size_t count,
                                   const CUDA_HOST_NODE_PARAMS *host)
{
    return CALL("cuGraphAddHostNode", NEEDS_INIT, add_host(node, graph, behind, count, host));
}

static CUresult add_event(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind, size_t count,
                          CUevent event, CUgraphNodeType type)
{
    struct work work = {.type = type, .event = event};
    if (!handle_get(event, HANDLE_EVENT))
        return CUDA_ERROR_INVALID_VALUE;
    return add(node, graph, behind, count, &work);
}

EXPORT CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind,
                                          size_t count, CUevent event)
{
    return CALL("cuGraphAddEventRecordNode", NEEDS_INIT,
                add_event(node, graph, behind, count, event, CU_GRAPH_NODE_TYPE_EVENT_RECORD));
}

EXPORT CUresult cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind,
                                        size_t count, CUevent event)
{
    return CALL("cuGraphAddEventWaitNode", NEEDS_INIT,
                add_event(node, graph, behind, count, event, CU_GRAPH_NODE_TYPE_WAIT_EVENT));
}

/* A copy of the child, or the child itself: then it may own memory, and belongs to the node from now on. */
static CUresult add_child(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind, size_t count,
                          CUgraph handle, CUgraphChildGraphNodeOwnership ownership)
{
    struct graph *child = graph_get(handle);
    bool move = ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    if (!child || child == graph_get(graph) || (move && (child->parent || child->capturing || child->execs)))
        return CUDA_ERROR_INVALID_VALUE;
    if (child->has_memory && !move)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct work work = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = move ? child : graph_copy(child)};
    if (!work.child)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = add(node, graph, behind, count, &work);
    if (result != CUDA_SUCCESS && !move)
        graph_end(work.child);
    if (result == CUDA_SUCCESS && child->has_memory)
        graph_get(graph)->has_memory = true;
    return result;
}

EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind,
                                         size_t count, CUgraph child)
{
    return CALL("cuGraphAddChildGraphNode", NEEDS_INIT,
                add_child(node, graph, behind, count, child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE));
}

static CUresult add_allocation(CUgraphNode *node, CUgraph handle, const CUgraphNode *behind, size_t count,
                               CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    struct graph *graph = graph_get(handle);
    if (!node || !graph || graph->parent)
        return CUDA_ERROR_INVALID_VALUE;
    return graph_add_allocation(graph, (struct node *const *)behind, count, parameters, (struct node **)node);
}

EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind,
                                       size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    return CALL("cuGraphAddMemAllocNode", NEEDS_INIT, add_allocation(node, graph, behind, count, parameters));
}

static CUresult add_free(CUgraphNode *node, CUgraph handle, const CUgraphNode *behind, size_t count,
                         CUdeviceptr address)
{
    struct graph *graph = graph_get(handle);
    if (!node || !graph || graph->parent)
        return CUDA_ERROR_INVALID_VALUE;
    return graph_add_free(graph, (struct node *const *)behind, count, address, (struct node **)node);
}

EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind,
                                      size_t count, CUdeviceptr address)
{
    return CALL("cuGraphAddMemFreeNode", NEEDS_INIT, add_free(node, graph, behind, count, address));
}

/* ---- any type by one function ---- */

static CUresult add_any(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind, size_t count,
                        CUgraphNodeParams *p)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMSET_NODE_PARAMS fill = {p->memset.dst,         p->memset.pitch, p->memset.value,
                                    p->memset.elementSize, p->memset.width, p->memset.height};
    struct work empty = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return add_kernel(node, graph, behind, count, &p->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return add_copy(node, graph, behind, count, &p->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return add_fill(node, graph, behind, count, &fill);
    case CU_GRAPH_NODE_TYPE_HOST:
        return add_host(node, graph, behind, count, &p->host);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return add_child(node, graph, behind, count, p->graph.graph, p->graph.ownership);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return add(node, graph, behind, count, &empty);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return add_event(node, graph, behind, count, p->eventRecord.event, p->type);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return add_allocation(node, graph, behind, count, &p->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return add_free(node, graph, behind, count, p->free.dptr);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

EXPORT CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind, size_t count,
                               CUgraphNodeParams *parameters)
{
    return CALL("cuGraphAddNode", NEEDS_INIT, add_any(node, graph, behind, count, parameters));
}

EXPORT CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *behind,
                                  const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *parameters)
{
    (void)edges;
    return CALL("cuGraphAddNode", NEEDS_INIT, add_any(node, graph, behind, count, parameters));
}
