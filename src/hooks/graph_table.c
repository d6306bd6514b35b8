/* The tables behind graphs (graph_table.h). */
#include "hooks/graph_table.h"

#include <stdatomic.h>

_Static_assert(sizeof(struct graph_node) <= TABLES_ENTRY_MAX, "a node fits an entry");

struct graph_node *graph_nodes;
struct graph *graph_list;
struct exec *graph_execs;
static uint64_t last_serial;
static _Atomic unsigned node_count;

void graphs_forget_all(void)
{
    graph_nodes = NULL;
    graph_list = NULL;
    graph_execs = NULL;
    atomic_store_explicit(&node_count, 0, memory_order_relaxed);
}

bool graph_nodes_exist(void)
{
    return atomic_load_explicit(&node_count, memory_order_acquire) != 0;
}

struct graph_node *graph_node_find(CUdeviceptr address)
{
    struct graph_node *node;
    HASH_FIND(hh, graph_nodes, &address, sizeof address, node);
    return node;
}

void graph_node_insert(struct graph_node *node)
{
    HASH_ADD(hh, graph_nodes, address, sizeof node->address, node);
    if (hash_added(node))
        atomic_fetch_add_explicit(&node_count, 1, memory_order_release);
    else
        tables_delete(node);
}

void graph_node_take(struct graph_node *node)
{
    HASH_DEL(graph_nodes, node);
    atomic_fetch_sub_explicit(&node_count, 1, memory_order_release);
}

void graph_node_delete(struct graph_node *node)
{
    graph_node_take(node);
    tables_delete(node);
}

struct graph *graph_find(CUgraph handle)
{
    struct graph *graph;
    HASH_FIND_PTR(graph_list, &handle, graph);
    return graph;
}

bool graph_insert(struct graph *graph)
{
    HASH_ADD_PTR(graph_list, handle, graph);
    if (hash_added(graph))
        return true;
    tables_delete(graph);
    return false;
}

uint64_t graph_serial(CUgraph handle)
{
    struct graph *graph = graph_find(handle);
    if (graph != NULL)
        return graph->serial;
    graph = tables_new();
    if (graph == NULL)
        return 0;
    graph->handle = handle;
    graph->serial = ++last_serial;
    return graph_insert(graph) ? last_serial : 0;
}

static bool has_graph(uint64_t serial)
{
    for (const struct graph *graph = graph_list; graph != NULL; graph = graph->hh.next) {
        if (graph->serial == serial)
            return true;
    }
    return false;
}

static bool has_exec(uint64_t serial)
{
    for (const struct exec *exec = graph_execs; exec != NULL; exec = exec->hh.next) {
        if (exec->graph == serial)
            return true;
    }
    return false;
}

/* A node that holds nothing, and that nothing can launch again. */
bool graph_node_is_over(const struct graph_node *node)
{
    return !node->live && !has_graph(node->graph) && !has_exec(node->graph);
}

void graph_nodes_prune(uint64_t serial)
{
    struct graph_node *node, *next;
    HASH_ITER (hh, graph_nodes, node, next) {
        if (node->graph == serial && graph_node_is_over(node))
            graph_node_delete(node);
    }
}

/* `stream`: where it is captured; NULL: it is not. */
static void add_node(CUgraph graph, const struct graph_memory *memory, const CUstream *stream)
{
    struct graph_node *old = graph_node_find(memory->address);
    if (old != NULL)
        graph_node_delete(old);
    struct graph_node *node = tables_new();
    if (node == NULL)
        return;
    *node = (struct graph_node){.address = memory->address,
                                .bytes = memory->bytes,
                                .device = memory->device,
                                .graph = graph_serial(graph),
                                .live = true,
                                .capturing = stream != NULL,
                                .stream = stream == NULL ? NULL : *stream};
    graph_node_insert(node);
}

void graph_exec_insert(struct exec *exec)
{
    HASH_ADD_PTR(graph_execs, handle, exec);
    if (!hash_added(exec))
        tables_delete(exec);
}

void graph_node_record_end(struct graph_node *node)
{
    if (node->live && !node->launched)
        record_free(KEY_GRAPH, node->address, &node->block);
}

void graph_node_remember(CUgraph graph, const struct graph_memory *memory, const CUstream *stream)
{
    if (!tables_lock())
        return;
    add_node(graph, memory, stream);
    tables_unlock();
}
