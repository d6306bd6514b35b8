/* Memory allocation nodes of graphs: added, freed, captured, launched, destroyed (graphs.h says what counts).
 */
#include "hooks/graphs.h"

static void node_added(struct call *call, CUresult rc, CUgraph graph, const CUmemPoolProps *props,
                       uint64_t key, size_t bytes)
{
    struct allocation allocation = {BLOCK(GRAPH, GRAPH, GRAPH), .key = key, .size = bytes};
    if (props->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        allocation.device = props->location.id;
    if (call->acts && rc == CUDA_SUCCESS)
        graph_node_added(graph, key, bytes, allocation.device);
    call_allocated(call, rc, &allocation);
}

HOOK(cuGraphAddMemAllocNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params))
{
    FORWARD(cuGraphAddMemAllocNode);
    CUresult rc = REAL(node, graph, dependencies, count, params);
    if (params != NULL)
        node_added(&call, rc, graph, &params->poolProps, GRANTED(params->dptr), params->bytesize);
    return call_end(&call, rc);
}

HOOK(cuGraphAddMemFreeNode,
     (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUdeviceptr address))
{
    struct freeing freeing;
    FORWARD(cuGraphAddMemFreeNode);
    call_free_in_graph(&call, &freeing, address);
    CUresult rc = REAL(node, graph, dependencies, count, address);
    call_freed_address(&call, rc, &freeing, address);
    return call_end(&call, rc);
}

static bool is_free_node(const CUgraphNodeParams *params)
{
    return params != NULL && params->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

static void before_node(struct call *call, struct freeing *freeing, const CUgraphNodeParams *params)
{
    if (is_free_node(params))
        call_free_in_graph(call, freeing, params->free.dptr);
}

static void after_node(struct call *call, CUresult rc, const struct freeing *freeing, CUgraph graph,
                       const CUgraphNodeParams *params)
{
    if (params == NULL)
        return;
    if (is_free_node(params))
        call_freed_address(call, rc, freeing, params->free.dptr);
    else if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        node_added(call, rc, graph, &params->alloc.poolProps, GRANTED(params->alloc.dptr),
                   params->alloc.bytesize);
    else if (params->type == CU_GRAPH_NODE_TYPE_GRAPH && call->acts && rc == CUDA_SUCCESS &&
             params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
        graph_moved(params->graph.graph, graph);
}

HOOK(cuGraphAddNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                      CUgraphNodeParams *params))
{
    struct freeing freeing;
    FORWARD(cuGraphAddNode);
    before_node(&call, &freeing, params);
    CUresult rc = REAL(node, graph, dependencies, count, params);
    after_node(&call, rc, &freeing, graph, params);
    return call_end(&call, rc);
}

HOOK(cuGraphAddNode_v2, (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies,
                         const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params))
{
    struct freeing freeing;
    FORWARD(cuGraphAddNode_v2);
    before_node(&call, &freeing, params);
    CUresult rc = REAL(node, graph, dependencies, edges, count, params);
    after_node(&call, rc, &freeing, graph, params);
    return call_end(&call, rc);
}

HOOK(cuGraphAddNode_v3, (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies,
                         const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params))
{
    struct freeing freeing;
    FORWARD(cuGraphAddNode_v3);
    before_node(&call, &freeing, params);
    CUresult rc = REAL(node, graph, dependencies, edges, count, params);
    after_node(&call, rc, &freeing, graph, params);
    return call_end(&call, rc);
}

HOOK(cuGraphDestroy, (CUgraph graph))
{
    struct graph_ending ending;
    FORWARD(cuGraphDestroy);
    graph_destroying(&call, &ending, graph);
    CUresult rc = REAL(graph);
    graph_destroyed(rc, &ending);
    return call_end(&call, rc);
}

static void instantiated(const struct call *call, CUresult rc, CUgraph graph, const CUgraphExec *exec)
{
    if (call->acts && rc == CUDA_SUCCESS)
        graph_instantiated(graph, *exec);
}

HOOK(cuGraphInstantiate,
     (CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes))
{
    FORWARD(cuGraphInstantiate);
    CUresult rc = REAL(exec, graph, error_node, log, log_bytes);
    instantiated(&call, rc, graph, exec);
    return call_end(&call, rc);
}

HOOK(cuGraphInstantiate_v2,
     (CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes))
{
    FORWARD(cuGraphInstantiate_v2);
    CUresult rc = REAL(exec, graph, error_node, log, log_bytes);
    instantiated(&call, rc, graph, exec);
    return call_end(&call, rc);
}

HOOK(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags))
{
    FORWARD(cuGraphInstantiateWithFlags);
    CUresult rc = REAL(exec, graph, flags);
    instantiated(&call, rc, graph, exec);
    return call_end(&call, rc);
}

HOOK(cuGraphInstantiateWithParams, (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params))
{
    FORWARD(cuGraphInstantiateWithParams);
    CUresult rc = REAL(exec, graph, params);
    instantiated(&call, rc, graph, exec);
    return call_end(&call, rc);
}

HOOK(cuGraphInstantiateWithParams_ptsz,
     (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params))
{
    FORWARD(cuGraphInstantiateWithParams_ptsz);
    CUresult rc = REAL(exec, graph, params);
    instantiated(&call, rc, graph, exec);
    return call_end(&call, rc);
}

/* Memory that was given back since an earlier launch is taken again. */
static void launched(struct call *call, CUresult rc, CUgraphExec exec)
{
    struct graph_memory memory;
    while (call->acts && rc == CUDA_SUCCESS && graph_launched(exec, &memory)) {
        struct allocation allocation = {BLOCK(GRAPH, GRAPH, GRAPH), .key = memory.address,
                                        .size = memory.bytes};
        allocation.device = memory.device;
        call_allocated(call, rc, &allocation);
    }
}

HOOK(cuGraphLaunch, (CUgraphExec exec, CUstream stream))
{
    FORWARD(cuGraphLaunch);
    CUresult rc = REAL(exec, stream);
    launched(&call, rc, exec);
    return call_end(&call, rc);
}

HOOK(cuGraphLaunch_ptsz, (CUgraphExec exec, CUstream stream))
{
    FORWARD(cuGraphLaunch_ptsz);
    CUresult rc = REAL(exec, stream);
    launched(&call, rc, exec);
    return call_end(&call, rc);
}

HOOK(cuGraphExecDestroy, (CUgraphExec exec))
{
    FORWARD(cuGraphExecDestroy);
    struct exec *ending = call.acts ? graph_exec_destroying(exec) : NULL;
    CUresult rc = REAL(exec);
    graph_exec_destroyed(rc, ending);
    return call_end(&call, rc);
}

static CUgraph capture_ending(const struct call *call, CUstream stream)
{
    return call->acts ? graph_of_capture(stream) : NULL;
}

/* A capture that was invalidated ends without a graph. A refusal, to the wrong thread for one, ends nothing.
 */
static void capture_ended(const struct call *call, CUresult rc, CUstream stream, CUgraph captured_into,
                          const CUgraph *graph)
{
    if (!call->acts || captured_into == NULL)
        return;
    if (rc == CUDA_SUCCESS)
        graph_capture_ended(captured_into, *graph);
    else if (!graph_capture_goes_on(stream))
        graph_capture_ended(captured_into, NULL);
}

static CUstream per_thread(CUstream stream)
{
    return stream == NULL ? CU_STREAM_PER_THREAD : stream;
}

HOOK(cuStreamEndCapture, (CUstream stream, CUgraph *graph))
{
    FORWARD(cuStreamEndCapture);
    CUgraph captured_into = capture_ending(&call, stream);
    CUresult rc = REAL(stream, graph);
    capture_ended(&call, rc, stream, captured_into, graph);
    return call_end(&call, rc);
}

HOOK(cuStreamEndCapture_ptsz, (CUstream stream, CUgraph *graph))
{
    FORWARD(cuStreamEndCapture_ptsz);
    CUgraph captured_into = capture_ending(&call, per_thread(stream));
    CUresult rc = REAL(stream, graph);
    capture_ended(&call, rc, per_thread(stream), captured_into, graph);
    return call_end(&call, rc);
}
