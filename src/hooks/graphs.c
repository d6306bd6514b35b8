/*
 * The nodes, graphs and executable graphs that hold memory (graphs.h). A program without such nodes has empty
 * tables, and pays one load of a counter for each launch and each free.
 */
#include "hooks/graphs.h"

#include <stdatomic.h>

#include "base/hash.h"
#include "hooks/ask.h"
#include "hooks/tables.h"

struct graph_node {
    CUdeviceptr address; /* the key */
    size_t bytes;
    int device;
    uint64_t graph;  /* struct graph's serial */
    bool live;       /* a block stands for it */
    bool paired;     /* with a free node */
    bool launched;   /* and the memory was not given back since */
    bool capturing;  /* its capture has not ended */
    CUstream stream; /* it was captured on */
    struct block block;
    struct graph_node *next; /* while it is out of the table */
    UT_hash_handle hh;
};

/* Handles are used again; serials are not. */
struct graph {
    CUgraph handle;
    uint64_t serial;
    UT_hash_handle hh;
};

struct exec {
    CUgraphExec handle;
    uint64_t graph;
    UT_hash_handle hh;
};

_Static_assert(sizeof(struct graph_node) <= TABLES_ENTRY_MAX, "a node fits an entry");

static struct graph_node *nodes;
static struct graph *graphs;
static struct exec *execs;
static uint64_t last_serial;
static _Atomic unsigned node_count;

void graphs_forget_all(void)
{
    nodes = NULL;
    graphs = NULL;
    execs = NULL;
    atomic_store_explicit(&node_count, 0, memory_order_relaxed);
}

static bool any_nodes(void)
{
    return atomic_load_explicit(&node_count, memory_order_acquire) != 0;
}

/* Below, up to the public functions, everything is under the lock. */

static struct graph_node *find_node(CUdeviceptr address)
{
    struct graph_node *node;
    HASH_FIND(hh, nodes, &address, sizeof address, node);
    return node;
}

static void insert_node(struct graph_node *node)
{
    HASH_ADD(hh, nodes, address, sizeof node->address, node);
    if (hash_added(node))
        atomic_fetch_add_explicit(&node_count, 1, memory_order_release);
    else
        tables_delete(node);
}

static void take_node(struct graph_node *node)
{
    HASH_DEL(nodes, node);
    atomic_fetch_sub_explicit(&node_count, 1, memory_order_release);
}

static void delete_node(struct graph_node *node)
{
    take_node(node);
    tables_delete(node);
}

static struct graph *find_graph(CUgraph handle)
{
    struct graph *graph;
    HASH_FIND_PTR(graphs, &handle, graph);
    return graph;
}

static uint64_t serial_for(CUgraph handle)
{
    struct graph *graph = find_graph(handle);
    if (graph != NULL)
        return graph->serial;
    graph = tables_new();
    if (graph == NULL)
        return 0;
    graph->handle = handle;
    graph->serial = ++last_serial;
    HASH_ADD_PTR(graphs, handle, graph);
    if (hash_added(graph))
        return graph->serial;
    tables_delete(graph);
    return 0;
}

static bool has_graph(uint64_t serial)
{
    for (const struct graph *graph = graphs; graph != NULL; graph = graph->hh.next) {
        if (graph->serial == serial)
            return true;
    }
    return false;
}

static bool has_exec(uint64_t serial)
{
    for (const struct exec *exec = execs; exec != NULL; exec = exec->hh.next) {
        if (exec->graph == serial)
            return true;
    }
    return false;
}

/* A node that holds nothing, and that nothing can launch again. */
static bool is_over(const struct graph_node *node)
{
    return !node->live && !has_graph(node->graph) && !has_exec(node->graph);
}

static void delete_nodes_that_are_over(uint64_t serial)
{
    struct graph_node *node, *next;
    HASH_ITER (hh, nodes, node, next) {
        if (node->graph == serial && is_over(node))
            delete_node(node);
    }
}

/* `stream`: where it is captured; NULL: it is not. */
static void add_node(CUgraph graph, const struct graph_memory *memory, const CUstream *stream)
{
    struct graph_node *old = find_node(memory->address);
    if (old != NULL)
        delete_node(old);
    struct graph_node *node = tables_new();
    if (node == NULL)
        return;
    *node = (struct graph_node){.address = memory->address,
                                .bytes = memory->bytes,
                                .device = memory->device,
                                .graph = serial_for(graph),
                                .live = true,
                                .capturing = stream != NULL,
                                .stream = stream == NULL ? NULL : *stream};
    insert_node(node);
}

/* The public functions take the lock themselves, and record without it. */

static void add(CUgraph graph, const struct graph_memory *memory, const CUstream *stream)
{
    if (!tables_lock())
        return;
    add_node(graph, memory, stream);
    tables_unlock();
}

void graph_node_added(CUgraph graph, CUdeviceptr address, size_t bytes, int device)
{
    add(graph, &(struct graph_memory){address, bytes, device}, NULL);
}

static CUstreamCaptureStatus capture_status(CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return ask_cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS ? status : CU_STREAM_CAPTURE_STATUS_NONE;
}

static bool is_capturing(CUstream stream)
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
    if (!is_capturing(stream))
        return false;
    CUgraph graph = ask_capture_graph(stream);
    add(graph, &(struct graph_memory){address, bytes, device}, &stream);
    return true;
}

/* The driver does not say any more what an invalidated capture was going into: what nodes captured on that
 * stream went into, or else, where one capture is under way, that. */
static CUgraph graph_of_invalidated(CUstream stream)
{
    CUgraph found = NULL;
    uint64_t serial = 0;
    bool only_one = true;
    if (!tables_lock())
        return NULL;
    for (const struct graph_node *node = nodes; node != NULL; node = node->hh.next) {
        if (!node->capturing)
            continue;
        only_one = only_one && (serial == 0 || serial == node->graph);
        serial = node->graph;
        if (node->stream == stream) {
            only_one = true;
            break;
        }
    }
    for (const struct graph *graph = graphs; graph != NULL && only_one; graph = graph->hh.next) {
        if (graph->serial == serial)
            found = graph->handle;
    }
    tables_unlock();
    return found;
}

CUgraph graph_of_capture(CUstream stream)
{
    if (!any_nodes())
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

static void record_end(struct graph_node *node)
{
    if (node->live && !node->launched)
        record_free(KEY_GRAPH, node->address, &node->block);
}

/* Takes the captured nodes of a graph out of the table, as a list. */
static struct graph_node *take_captured(uint64_t serial)
{
    struct graph_node *taken = NULL, *node, *next;
    HASH_ITER (hh, nodes, node, next) {
        if (node->graph != serial || !node->capturing)
            continue;
        take_node(node);
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
    struct graph *graph = find_graph(captured_into);
    if (graph != NULL && result == NULL) {
        lost = take_captured(graph->serial);
    } else if (graph != NULL) {
        for (struct graph_node *node = nodes; node != NULL; node = node->hh.next)
            node->capturing &= node->graph != graph->serial;
        if (result != captured_into && find_graph(result) == NULL) {
            HASH_DEL(graphs, graph);
            graph->handle = result;
            HASH_ADD_PTR(graphs, handle, graph);
        }
    }
    tables_unlock();
    for (struct graph_node *node = lost; node != NULL; node = node->next)
        record_end(node);
    delete_list(lost);
}

void graph_moved(CUgraph child, CUgraph parent)
{
    if (!any_nodes() || !tables_lock())
        return;
    struct graph *from = find_graph(child);
    uint64_t to = from == NULL ? 0 : serial_for(parent);
    if (to != 0) {
        for (struct graph_node *node = nodes; node != NULL; node = node->hh.next) {
            if (node->graph == from->serial)
                node->graph = to;
        }
    }
    tables_unlock();
}

void graph_exec_destroyed(CUgraphExec handle)
{
    struct exec *exec = NULL;
    if (!any_nodes() || !tables_lock())
        return;
    HASH_FIND_PTR(execs, &handle, exec);
    if (exec != NULL) {
        uint64_t serial = exec->graph;
        HASH_DEL(execs, exec);
        tables_delete(exec);
        delete_nodes_that_are_over(serial);
    }
    tables_unlock();
}

void graph_instantiated(CUgraph handle, CUgraphExec exec_handle)
{
    graph_exec_destroyed(exec_handle);
    if (!any_nodes() || !tables_lock())
        return;
    const struct graph *graph = find_graph(handle);
    struct exec *exec = graph == NULL ? NULL : tables_new();
    if (exec != NULL) {
        exec->handle = exec_handle;
        exec->graph = graph->serial;
        HASH_ADD_PTR(execs, handle, exec);
        if (!hash_added(exec))
            tables_delete(exec);
    }
    tables_unlock();
}

bool graph_launched(CUgraphExec handle, struct graph_memory *memory)
{
    struct exec *exec = NULL;
    bool found = false;
    if (!any_nodes() || !tables_lock())
        return false;
    HASH_FIND_PTR(execs, &handle, exec);
    for (struct graph_node *node = exec == NULL ? NULL : nodes; node != NULL && !found;
         node = node->hh.next) {
        if (node->graph != exec->graph || node->paired)
            continue;
        node->launched = true;
        if (node->live)
            continue;
        node->live = found = true;
        *memory = (struct graph_memory){node->address, node->bytes, node->device};
    }
    tables_unlock();
    return found;
}

struct graph_node *graph_destroying(struct call *call, CUgraph handle)
{
    struct graph_node *ending = NULL, *node, *next;
    if (!call->acts || !any_nodes() || !tables_lock())
        return NULL;
    const struct graph *graph = find_graph(handle);
    HASH_ITER (hh, nodes, node, next) {
        if (graph == NULL || node->graph != graph->serial)
            continue;
        take_node(node);
        node->next = ending;
        ending = node;
    }
    tables_unlock();
    for (node = ending; node != NULL; node = node->next)
        record_end(node);
    return ending;
}

static void put_back(struct graph_node *node, bool destroyed)
{
    if (destroyed && !node->launched)
        node->live = false;
    if (destroyed && is_over(node))
        tables_delete(node);
    else
        insert_node(node);
}

void graph_destroyed(struct call *call, CUresult rc, CUgraph handle, struct graph_node *ending)
{
    if (!call->acts)
        return;
    if (rc != CUDA_SUCCESS) {
        for (struct graph_node *node = ending; node != NULL; node = node->next) {
            if (node->live && !node->launched)
                record_unfree(&node->block);
        }
    }
    if ((ending == NULL && !any_nodes()) || !tables_lock())
        return;
    struct graph *graph = find_graph(handle);
    if (graph != NULL && rc == CUDA_SUCCESS) {
        HASH_DEL(graphs, graph);
        tables_delete(graph);
    }
    while (ending != NULL) {
        struct graph_node *node = ending;
        ending = node->next;
        put_back(node, rc == CUDA_SUCCESS);
    }
    tables_unlock();
}

void graph_forget_address(CUdeviceptr address)
{
    if (!any_nodes() || !tables_lock())
        return;
    struct graph_node *node = find_node(address);
    if (node != NULL)
        delete_node(node);
    tables_unlock();
}

/* What becomes of a node by a free of its address. */
enum node_free { NOT_A_NODE, NODE_WITHOUT_BLOCK, NODE_WITH_BLOCK };

static enum node_free free_node(CUdeviceptr address, bool in_graph)
{
    enum node_free what = NOT_A_NODE;
    if (!any_nodes() || !tables_lock())
        return what;
    struct graph_node *node = find_node(address);
    if (node != NULL) {
        what = node->live ? NODE_WITH_BLOCK : NODE_WITHOUT_BLOCK;
        node->live = false;
        node->paired |= in_graph;
    }
    tables_unlock();
    return what;
}

static void free_address(struct call *call, struct freeing *freeing, CUdeviceptr address, bool in_graph)
{
    freeing->recorded = false;
    freeing->node = false;
    if (!call->acts)
        return;
    enum node_free what = free_node(address, in_graph);
    freeing->node = what != NOT_A_NODE;
    freeing->paired = in_graph;
    if (what != NODE_WITHOUT_BLOCK)
        call_free(call, freeing, what == NOT_A_NODE ? KEY_ADDRESS : KEY_GRAPH, address);
}

void call_free_address(struct call *call, struct freeing *freeing, CUdeviceptr address)
{
    free_address(call, freeing, address, false);
}

void call_free_on_stream(struct call *call, struct freeing *freeing, CUdeviceptr address, CUstream stream)
{
    free_address(call, freeing, address, call->acts && any_nodes() && is_capturing(stream));
}

void call_free_in_graph(struct call *call, struct freeing *freeing, CUdeviceptr address)
{
    free_address(call, freeing, address, true);
}

void call_freed_address(struct call *call, CUresult rc, const struct freeing *freeing, CUdeviceptr address)
{
    call_freed(call, rc, freeing);
    if (!call->acts || !freeing->node || !tables_lock())
        return;
    struct graph_node *node = find_node(address);
    if (node != NULL && rc != CUDA_SUCCESS) {
        node->live = freeing->recorded;
        node->paired &= !freeing->paired;
    } else if (node != NULL && !freeing->paired) {
        node->launched = false;
        if (is_over(node))
            delete_node(node);
    }
    tables_unlock();
}
