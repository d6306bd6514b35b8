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

static bool insert_graph(struct graph *graph)
{
    HASH_ADD_PTR(graphs, handle, graph);
    if (hash_added(graph))
        return true;
    tables_delete(graph);
    return false;
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
    return insert_graph(graph) ? last_serial : 0;
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

static void insert_exec(struct exec *exec)
{
    HASH_ADD_PTR(execs, handle, exec);
    if (!hash_added(exec))
        tables_delete(exec);
}

struct exec *graph_exec_destroying(CUgraphExec handle)
{
    struct exec *exec = NULL;
    if (!any_nodes() || !tables_lock())
        return NULL;
    HASH_FIND_PTR(execs, &handle, exec);
    if (exec != NULL)
        HASH_DEL(execs, exec);
    tables_unlock();
    return exec;
}

void graph_exec_destroyed(CUresult rc, struct exec *exec)
{
    if (exec == NULL || !tables_lock())
        return;
    if (rc == CUDA_SUCCESS) {
        delete_nodes_that_are_over(exec->graph);
        tables_delete(exec);
    } else {
        insert_exec(exec);
    }
    tables_unlock();
}

void graph_instantiated(CUgraph handle, CUgraphExec exec_handle)
{
    graph_exec_destroyed(CUDA_SUCCESS, graph_exec_destroying(exec_handle)); /* one whose end we missed */
    if (!any_nodes() || !tables_lock())
        return;
    const struct graph *graph = find_graph(handle);
    struct exec *exec = graph == NULL ? NULL : tables_new();
    if (exec != NULL) {
        exec->handle = exec_handle;
        exec->graph = graph->serial;
        insert_exec(exec);
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

/* Handles and addresses are another thread's as soon as the driver is through, so the graph leaves the tables
 * before. Memory that a launch has taken stays as it is. */
void graph_destroying(struct call *call, struct graph_ending *ending, CUgraph handle)
{
    struct graph_node *node, *next;
    *ending = (struct graph_ending){0};
    if (!call->acts || !any_nodes() || !tables_lock())
        return;
    ending->graph = find_graph(handle);
    if (ending->graph != NULL)
        HASH_DEL(graphs, ending->graph);
    HASH_ITER (hh, nodes, node, next) {
        if (ending->graph == NULL || node->graph != ending->graph->serial || node->launched)
            continue;
        take_node(node);
        node->next = ending->nodes;
        ending->nodes = node;
    }
    tables_unlock();
    for (node = ending->nodes; node != NULL; node = node->next)
        record_end(node);
}

/* Under the lock. An executable graph that is left can launch the node yet. */
static void settle_node(struct graph_node *node, bool destroyed)
{
    if (destroyed)
        node->live = false;
    if (destroyed && is_over(node))
        tables_delete(node);
    else
        insert_node(node);
}

void graph_destroyed(CUresult rc, struct graph_ending *ending)
{
    if (ending->graph == NULL)
        return;
    for (struct graph_node *node = ending->nodes; node != NULL && rc != CUDA_SUCCESS; node = node->next) {
        if (node->live)
            record_unfree(&node->block);
    }
    if (!tables_lock())
        return;
    if (rc == CUDA_SUCCESS)
        tables_delete(ending->graph);
    else
        insert_graph(ending->graph);
    while (ending->nodes != NULL) {
        struct graph_node *node = ending->nodes;
        ending->nodes = node->next;
        settle_node(node, rc == CUDA_SUCCESS);
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

/* Before a free of `address`: the node there, if any, gives its memory back. Kept in `freeing` is what takes
 * it back. */
static void free_node(struct freeing *freeing, CUdeviceptr address, bool in_graph)
{
    if (!any_nodes() || !tables_lock())
        return;
    struct graph_node *node = find_node(address);
    if (node != NULL) {
        freeing->is_node = true;
        freeing->was_live = node->live;
        freeing->was_launched = node->launched;
        freeing->was_paired = node->paired;
        node->live = false;
        node->paired |= in_graph;
        node->launched &= in_graph;
        if (!in_graph && is_over(node)) {
            take_node(node);
            freeing->node = node;
        }
    }
    tables_unlock();
}

static void free_address(struct call *call, struct freeing *freeing, CUdeviceptr address, bool in_graph)
{
    *freeing = (struct freeing){0};
    if (!call->acts)
        return;
    free_node(freeing, address, in_graph);
    if (!freeing->is_node || freeing->was_live)
        call_free(call, freeing, freeing->is_node ? KEY_GRAPH : KEY_ADDRESS, address);
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
    if (!freeing->is_node || (rc == CUDA_SUCCESS && freeing->node == NULL) || !tables_lock())
        return;
    struct graph_node *node = freeing->node;
    if (rc == CUDA_SUCCESS) {
        tables_delete(node);
    } else {
        if (node != NULL)
            insert_node(node);
        node = find_node(address);
        if (node != NULL) {
            node->live = freeing->was_live;
            node->launched = freeing->was_launched;
            node->paired = freeing->was_paired;
        }
    }
    tables_unlock();
}
