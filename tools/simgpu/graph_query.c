/* Questions about graphs and nodes, and changes of what comes before what. */
#include "entry.h"
#include "graph.h"

static struct node *node_get(CUgraphNode handle)
{
    return handle_get(handle, HANDLE_NODE);
}

/* Writes up to *count handles; without room for them, only how many there are. */
static CUresult give(CUgraphNode *out, size_t *count, const struct node_list *list)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; out && i < *count; i++)
        out[i] = i < list->count ? (CUgraphNode)list->nodes[i] : NULL;
    if (!out || *count > list->count)
        *count = list->count;
    return CUDA_SUCCESS;
}

static CUresult get_nodes(CUgraph handle, CUgraphNode *out, size_t *count)
{
    const struct graph *graph = graph_get(handle);
    return graph ? give(out, count, &graph->nodes) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return CALL("cuGraphGetNodes", NEEDS_INIT, get_nodes(graph, nodes, count));
}

static CUresult get_roots(CUgraph handle, CUgraphNode *out, size_t *count)
{
    const struct graph *graph = graph_get(handle);
    struct node_list roots = {0};
    bool good = graph;
    for (size_t i = 0; good && i < graph->nodes.count; i++)
        if (!graph->nodes.nodes[i]->behind.count)
            good = list_add(&roots, graph->nodes.nodes[i]);
    CUresult result = good ? give(out, count, &roots) : CUDA_ERROR_INVALID_VALUE;
    list_end(&roots);
    return result;
}

EXPORT CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return CALL("cuGraphGetRootNodes", NEEDS_INIT, get_roots(graph, nodes, count));
}

/* All edges as two lists; the data of each is the default, zero. */
static CUresult get_edges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                          size_t *count)
{
    const struct graph *graph = graph_get(handle);
    struct node_list first = {0}, second = {0};
    bool good = graph && count && !from == !to;
    for (size_t i = 0; good && i < graph->nodes.count; i++) {
        struct node *node = graph->nodes.nodes[i];
        for (size_t k = 0; good && k < node->behind.count; k++)
            good = list_add(&first, node->behind.nodes[k]) && list_add(&second, node);
    }
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (good) {
        size_t room = *count;
        for (size_t i = 0; data && from && i < room; i++)
            data[i] = (CUgraphEdgeData){0};
        give(from, &room, &first);
        result = give(to, count, &second);
    }
    list_end(&first);
    list_end(&second);
    return result;
}

EXPORT CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    return CALL("cuGraphGetEdges", NEEDS_INIT, get_edges(graph, from, to, NULL, count));
}

EXPORT CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                                   size_t *count)
{
    return CALL("cuGraphGetEdges", NEEDS_INIT, get_edges(graph, from, to, data, count));
}

static CUresult get_type(CUgraphNode handle, CUgraphNodeType *type)
{
    const struct node *node = node_get(handle);
    if (!node || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->work.type;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    return CALL("cuGraphNodeGetType", NEEDS_INIT, get_type(node, type));
}

static CUresult get_behind(CUgraphNode handle, CUgraphNode *out, size_t *count)
{
    const struct node *node = node_get(handle);
    return node ? give(out, count, &node->behind) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *count)
{
    return CALL("cuGraphNodeGetDependencies", NEEDS_INIT, get_behind(node, out, count));
}

EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data,
                                              size_t *count)
{
    for (size_t i = 0; data && out && count && i < *count; i++)
        data[i] = (CUgraphEdgeData){0};
    return cuGraphNodeGetDependencies(node, out, count);
}

static CUresult get_dependents(CUgraphNode handle, CUgraphNode *out, size_t *count)
{
    const struct node *node = node_get(handle);
    struct node_list after = {0};
    bool good = node;
    for (size_t i = 0; good && i < node->graph->nodes.count; i++)
        if (list_has(&node->graph->nodes.nodes[i]->behind, node))
            good = list_add(&after, node->graph->nodes.nodes[i]);
    CUresult result = good ? give(out, count, &after) : CUDA_ERROR_INVALID_VALUE;
    list_end(&after);
    return result;
}

EXPORT CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *out, size_t *count)
{
    return CALL("cuGraphNodeGetDependentNodes", NEEDS_INIT, get_dependents(node, out, count));
}

EXPORT CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data,
                                                size_t *count)
{
    for (size_t i = 0; data && out && count && i < *count; i++)
        data[i] = (CUgraphEdgeData){0};
    return cuGraphNodeGetDependentNodes(node, out, count);
}

/* ---- edges ---- */

static bool edges_are_of(const struct graph *graph, const CUgraphNode *from, const CUgraphNode *to,
                         size_t count)
{
    if (!graph || (count && (!from || !to)))
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct node *first = node_get(from[i]), *second = node_get(to[i]);
        if (!first || !second || first == second || first->graph != graph || second->graph != graph)
            return false;
    }
    return true;
}

static CUresult add_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    struct graph *graph = graph_get(handle);
    if (!edges_are_of(graph, from, to, count))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (list_has(&node_get(to[i])->behind, node_get(from[i])))
            return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!list_add(&node_get(to[i])->behind, node_get(from[i])))
            return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                       size_t count)
{
    return CALL("cuGraphAddDependencies", NEEDS_INIT, add_edges(graph, from, to, count));
}

EXPORT CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                          const CUgraphEdgeData *data, size_t count)
{
    (void)data;
    return cuGraphAddDependencies(graph, from, to, count);
}

static CUresult remove_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    struct graph *graph = graph_get(handle);
    if (!edges_are_of(graph, from, to, count))
        return CUDA_ERROR_INVALID_VALUE;
    if (graph->has_memory)
        return CUDA_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < count; i++)
        if (!list_has(&node_get(to[i])->behind, node_get(from[i])))
            return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        list_remove(&node_get(to[i])->behind, node_get(from[i]));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                          size_t count)
{
    return CALL("cuGraphRemoveDependencies", NEEDS_INIT, remove_edges(graph, from, to, count));
}

EXPORT CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                             const CUgraphEdgeData *data, size_t count)
{
    (void)data;
    return cuGraphRemoveDependencies(graph, from, to, count);
}

/* ---- what a node holds ---- */

static CUresult find_in_clone(CUgraphNode *out, CUgraphNode original, CUgraph handle)
{
    const struct graph *clone = graph_get(handle);
    const struct node *node = node_get(original);
    if (!out || !clone || !node)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < clone->nodes.count; i++)
        if (clone->nodes.nodes[i]->origin == node) {
            *out = (CUgraphNode)clone->nodes.nodes[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphNodeFindInClone(CUgraphNode *node, CUgraphNode original, CUgraph clone)
{
    return CALL("cuGraphNodeFindInClone", NEEDS_INIT, find_in_clone(node, original, clone));
}

static const struct node *node_of_type(CUgraphNode handle, CUgraphNodeType type)
{
    const struct node *node = node_get(handle);
    return node && node->work.type == type ? node : NULL;
}

static CUresult child_of(CUgraphNode handle, CUgraph *out)
{
    const struct node *node = node_of_type(handle, CU_GRAPH_NODE_TYPE_GRAPH);
    if (!node || !out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUgraph)node->work.child;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
    return CALL("cuGraphChildGraphNodeGetGraph", NEEDS_INIT, child_of(node, graph));
}

static CUresult allocation_of(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *out)
{
    const struct node *node = node_of_type(handle, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    if (!node || !out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUDA_MEM_ALLOC_NODE_PARAMS){
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {CU_MEM_LOCATION_TYPE_DEVICE,
                                   graph_memory_device(node->work.memory)->ordinal}},
        .bytesize = graph_memory_bytes(node->work.memory),
        .dptr = graph_memory_address(node->work.memory)};
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    return CALL("cuGraphMemAllocNodeGetParams", NEEDS_INIT, allocation_of(node, parameters));
}

static CUresult free_of(CUgraphNode handle, CUdeviceptr *out)
{
    const struct node *node = node_of_type(handle, CU_GRAPH_NODE_TYPE_MEM_FREE);
    if (!node || !out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = graph_memory_address(node->work.memory);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *address)
{
    return CALL("cuGraphMemFreeNodeGetParams", NEEDS_INIT, free_of(node, address));
}

/* Parameters that can be read and written back: kernel, copy, fill, host function. */
#define PARAMETERS(name, node_type, type_name, read, write)                                                  \
    static CUresult get_##name(CUgraphNode handle, type_name *out)                                           \
    {                                                                                                        \
        const struct node *node = node_of_type(handle, node_type);                                           \
        if (!node || !out)                                                                                   \
            return CUDA_ERROR_INVALID_VALUE;                                                                 \
        *out = read;                                                                                         \
        return CUDA_SUCCESS;                                                                                 \
    }                                                                                                        \
    static CUresult set_##name(CUgraphNode handle, const type_name *in)                                      \
    {                                                                                                        \
        struct node *node = node_get(handle);                                                                \
        if (!node || node->work.type != (node_type) || !in)                                                  \
            return CUDA_ERROR_INVALID_VALUE;                                                                 \
        write;                                                                                               \
        return CUDA_SUCCESS;                                                                                 \
    }
PARAMETERS(kernel, CU_GRAPH_NODE_TYPE_KERNEL, CUDA_KERNEL_NODE_PARAMS, node->work.kernel,
           node->work.kernel = *in)
PARAMETERS(copy, CU_GRAPH_NODE_TYPE_MEMCPY, CUDA_MEMCPY3D, node->work.copy, node->work.copy = *in)
PARAMETERS(host, CU_GRAPH_NODE_TYPE_HOST, CUDA_HOST_NODE_PARAMS, node->work.host, node->work.host = *in)
PARAMETERS(
    fill, CU_GRAPH_NODE_TYPE_MEMSET, CUDA_MEMSET_NODE_PARAMS,
    ((CUDA_MEMSET_NODE_PARAMS){node->work.fill.address, node->work.fill.pitch, node->work.fill.value,
                               node->work.fill.element, node->work.fill.width, node->work.fill.height}),
    (node->work.fill = (struct fill){in->dst, in->pitch, in->width, in->height, in->value, in->elementSize}))

EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *parameters)
{
    return CALL("cuGraphKernelNodeGetParams", NEEDS_INIT, get_kernel(node, parameters));
}

EXPORT CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *parameters)
{
    return CALL("cuGraphKernelNodeSetParams", NEEDS_INIT, set_kernel(node, parameters));
}

EXPORT CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *parameters)
{
    return CALL("cuGraphMemcpyNodeGetParams", NEEDS_INIT, get_copy(node, parameters));
}

EXPORT CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *parameters)
{
    return CALL("cuGraphMemcpyNodeSetParams", NEEDS_INIT, set_copy(node, parameters));
}

EXPORT CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *parameters)
{
    return CALL("cuGraphMemsetNodeGetParams", NEEDS_INIT, get_fill(node, parameters));
}

EXPORT CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *parameters)
{
    return CALL("cuGraphMemsetNodeSetParams", NEEDS_INIT, set_fill(node, parameters));
}

EXPORT CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *parameters)
{
    return CALL("cuGraphHostNodeGetParams", NEEDS_INIT, get_host(node, parameters));
}

EXPORT CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *parameters)
{
    return CALL("cuGraphHostNodeSetParams", NEEDS_INIT, set_host(node, parameters));
}
