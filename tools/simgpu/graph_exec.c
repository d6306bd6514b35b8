/*
 * Executable graphs: the nodes of a graph, child graphs opened up, in an order in which they can run. A
 * launch runs them at once; host functions are called after the rest, outside the lock.
 */
#include "entry.h"

#include <stdlib.h>

#include "graph.h"

struct step {
    struct work work;
    const struct node *origin; /* which node it came from; an address only, the node may be gone */
    bool disabled;
};

struct exec {
    struct handle handle;
    struct graph *graph;         /* NULL once that is gone */
    struct exec *next, **before; /* the graph's executables */
    unsigned long long flags;
    struct step *steps;
    size_t count, room;
};

/* ---- making ---- */

static bool add_step(struct exec *exec, const struct node *node)
{
    if (exec->count == exec->room) {
        size_t room = exec->room ? exec->room * 2 : 16;
        struct step *steps = realloc(exec->steps, room * sizeof *steps);
        if (!steps)
            return false;
        exec->steps = steps;
        exec->room = room;
    }
    exec->steps[exec->count++] = (struct step){node->work, node, false};
    if (node->work.memory)
        graph_memory_hold(node->work.memory);
    return true;
}

static void steps_end(struct exec *exec)
{
    for (size_t i = 0; i < exec->count; i++)
        if (exec->steps[i].work.memory)
            graph_memory_release(exec->steps[i].work.memory);
    free(exec->steps);
}

static CUresult add_steps(struct exec *exec, const struct graph *graph)
{
    struct node_list order = {0};
    CUresult result = graph_order(graph, &order) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; result == CUDA_SUCCESS && i < order.count; i++) {
        const struct node *node = order.nodes[i];
        if (node->work.child)
            result = add_steps(exec, node->work.child);
        else if (!add_step(exec, node))
            result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    list_end(&order);
    return result;
}

static void exec_end(struct exec *exec)
{
    steps_end(exec);
    if (exec->graph) {
        *exec->before = exec->next;
        if (exec->next)
            exec->next->before = exec->before;
    }
    handle_end(exec, sizeof *exec);
}

static CUresult instantiate(CUgraphExec *out, CUgraph handle, unsigned long long flags)
{
    struct graph *graph = graph_get(handle);
    const unsigned long long known =
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
        CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    const unsigned long long conflict =
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
    if (!out || !graph || graph->parent || flags & ~known || (flags & conflict) == conflict)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph->has_memory && graph->execs)
        return CUDA_ERROR_NOT_SUPPORTED; /* one at a time */
    struct exec *exec = handle_new(HANDLE_GRAPH_EXEC, sizeof *exec, NULL);
    if (!exec)
        return CUDA_ERROR_OUT_OF_MEMORY;
    exec->flags = flags;
    exec->graph = graph;
    exec->next = graph->execs;
    exec->before = &graph->execs;
    if (exec->next)
        exec->next->before = &exec->next;
    graph->execs = exec;
    CUresult result = add_steps(exec, graph);
    if (result == CUDA_SUCCESS)
        *out = (CUgraphExec)exec;
    else
        exec_end(exec);
    return result;
}

void execs_forget(struct graph *graph)
{
    for (struct exec *exec = graph->execs; exec; exec = exec->next)
        exec->graph = NULL;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    return CALL("cuGraphInstantiate", NEEDS_CONTEXT, instantiate(exec, graph, flags));
}

/* Before CUDA 12: an error node and a log instead of flags. */
EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
                                      size_t room)
{
    CUresult result = cuGraphInstantiateWithFlags(exec, graph, 0);
    if (error_node)
        *error_node = NULL;
    if (log && room)
        *log = '\0';
    return result;
}

EXPORT CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
                                   size_t room)
{
    return cuGraphInstantiate_v2(exec, graph, error_node, log, room);
}

EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                             CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cuGraphInstantiateWithFlags(exec, graph, parameters->flags);
    parameters->hErrNode_out = NULL;
    parameters->result_out =
        result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
                                                  CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    return cuGraphInstantiateWithParams(exec, graph, parameters);
}

static CUresult destroy(CUgraphExec handle)
{
    struct exec *exec = handle_get(handle, HANDLE_GRAPH_EXEC);
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    exec_end(exec);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    return CALL("cuGraphExecDestroy", NEEDS_INIT, destroy(exec));
}

static CUresult get_flags(CUgraphExec handle, cuuint64_t *flags)
{
    const struct exec *exec = handle_get(handle, HANDLE_GRAPH_EXEC);
    if (!exec || !flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
    return CALL("cuGraphExecGetFlags", NEEDS_INIT, get_flags(exec, flags));
}

/* ---- running ---- */

/* What an earlier launch left: freed now, or a reason not to launch. */
static CUresult settle_earlier(struct exec *exec)
{
    for (size_t i = 0; i < exec->count; i++) {
        struct work *step = &exec->steps[i].work;
        if (step->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || !graph_memory_is_alive(step->memory))
            continue;
        if (!(exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
            return CUDA_ERROR_INVALID_VALUE;
        graph_memory_finish(step->memory);
    }
    return CUDA_SUCCESS;
}

static CUresult run_step(const struct work *step)
{
    switch (step->type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return copy_run(&step->copy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return fill_run(&step->fill);
    case CU_GRAPH_NODE_TYPE_HOST:
        entry_call_later(step->host.fn, step->host.userData);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return graph_memory_begin(step->memory);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        if (!graph_memory_is_alive(step->memory))
            return CUDA_ERROR_INVALID_VALUE;
        graph_memory_finish(step->memory);
        return CUDA_SUCCESS;
    default:
        return CUDA_SUCCESS;
    }
}

static CUresult launch(CUgraphExec handle, CUstream stream_handle)
{
    struct exec *exec = handle_get(handle, HANDLE_GRAPH_EXEC);
    struct stream *stream;
    CUresult result = exec ? stream_for_work(stream_handle, &stream) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && stream->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (result == CUDA_SUCCESS)
        result = settle_earlier(exec);
    if (result != CUDA_SUCCESS)
        return result;
    for (size_t i = 0; result == CUDA_SUCCESS && i < exec->count; i++)
        if (!exec->steps[i].disabled)
            result = run_step(&exec->steps[i].work);
    return result;
}

EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    return CALL("cuGraphLaunch", NEEDS_CONTEXT, launch(exec, stream));
}

EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
    return cuGraphLaunch(exec, per_thread(stream));
}

static CUresult upload(CUgraphExec handle, CUstream stream_handle)
{
    struct stream *stream;
    if (!handle_get(handle, HANDLE_GRAPH_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    return stream_for_work(stream_handle, &stream);
}

EXPORT CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    return CALL("cuGraphUpload", NEEDS_CONTEXT, upload(exec, stream));
}

EXPORT CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
    return cuGraphUpload(exec, per_thread(stream));
}

/* ---- changing ---- */

static struct work *step_of(CUgraphExec handle, CUgraphNode node, CUgraphNodeType type)
{
    struct exec *exec = handle_get(handle, HANDLE_GRAPH_EXEC);
    for (size_t i = 0; exec && i < exec->count; i++)
        if (exec->steps[i].origin == (const struct node *)node && exec->steps[i].work.type == type)
            return &exec->steps[i].work;
    return NULL;
}

static CUresult set_step(struct work *step, const struct work *next)
{
    if (!step || !next)
        return CUDA_ERROR_INVALID_VALUE;
    *step = *next;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                  const CUDA_KERNEL_NODE_PARAMS *kernel)
{
    struct work next = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    if (kernel)
        next.kernel = *kernel;
    return CALL("cuGraphExecKernelNodeSetParams", NEEDS_INIT,
                set_step(step_of(exec, node, next.type), kernel ? &next : NULL));
}

EXPORT CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy,
                                               CUcontext context)
{
    (void)context;
    struct work next = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    if (copy)
        next.copy = *copy;
    return CALL("cuGraphExecMemcpyNodeSetParams", NEEDS_INIT,
                set_step(step_of(exec, node, next.type), copy ? &next : NULL));
}

EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                               const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
    (void)context;
    struct work next = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
    if (fill)
        next.fill =
            (struct fill){fill->dst, fill->pitch, fill->width, fill->height, fill->value, fill->elementSize};
    return CALL("cuGraphExecMemsetNodeSetParams", NEEDS_INIT,
                set_step(step_of(exec, node, next.type), fill ? &next : NULL));
}

EXPORT CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                             const CUDA_HOST_NODE_PARAMS *host)
{
    struct work next = {.type = CU_GRAPH_NODE_TYPE_HOST};
    if (host)
        next.host = *host;
    return CALL("cuGraphExecHostNodeSetParams", NEEDS_INIT,
                set_step(step_of(exec, node, next.type), host ? &next : NULL));
}

/* Takes over the parameters of a graph with the same nodes in the same order. */
static CUgraphExecUpdateResult update_from(struct exec *exec, const struct exec *next)
{
    if (exec->count != next->count)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < exec->count; i++) {
        if (exec->steps[i].work.type != next->steps[i].work.type)
            return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        if (exec->steps[i].work.memory != next->steps[i].work.memory)
            return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    }
    for (size_t i = 0; i < exec->count; i++)
        exec->steps[i].work = next->steps[i].work;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUresult update(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResult *out)
{
    struct exec *exec = handle_get(handle, HANDLE_GRAPH_EXEC), next = {0};
    const struct graph *graph = graph_get(graph_handle);
    if (!exec || !graph || graph->parent)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = add_steps(&next, graph);
    *out = result == CUDA_SUCCESS ? update_from(exec, &next) : CU_GRAPH_EXEC_UPDATE_ERROR;
    steps_end(&next);
    return *out == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    CUgraphExecUpdateResult outcome = CU_GRAPH_EXEC_UPDATE_ERROR;
    CUresult result = CALL("cuGraphExecUpdate", NEEDS_INIT, update(exec, graph, &outcome));
    if (info)
        *info = (CUgraphExecUpdateResultInfo){outcome, NULL, NULL};
    return result;
}

EXPORT CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node,
                                  CUgraphExecUpdateResult *outcome)
{
    CUgraphExecUpdateResultInfo info;
    CUresult result = cuGraphExecUpdate_v2(exec, graph, &info);
    if (error_node)
        *error_node = NULL;
    if (outcome)
        *outcome = info.result;
    return result;
}

static CUresult set_enabled(CUgraphExec handle, CUgraphNode node, unsigned enabled)
{
    struct exec *exec = handle_get(handle, HANDLE_GRAPH_EXEC);
    for (size_t i = 0; exec && i < exec->count; i++)
        if (exec->steps[i].origin == (const struct node *)node &&
            exec->steps[i].work.type <= CU_GRAPH_NODE_TYPE_MEMSET) {
            exec->steps[i].disabled = !enabled;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled)
{
    return CALL("cuGraphNodeSetEnabled", NEEDS_INIT, set_enabled(exec, node, enabled));
}

static CUresult get_enabled(CUgraphExec handle, CUgraphNode node, unsigned *enabled)
{
    const struct exec *exec = handle_get(handle, HANDLE_GRAPH_EXEC);
    for (size_t i = 0; enabled && exec && i < exec->count; i++)
        if (exec->steps[i].origin == (const struct node *)node) {
            *enabled = !exec->steps[i].disabled;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled)
{
    return CALL("cuGraphNodeGetEnabled", NEEDS_INIT, get_enabled(exec, node, enabled));
}
