/* Graphs with memory, from their making over their launches to their end (graphs.h). */
#include "hooks/graph_table.h"

void graph_node_added(CUgraph graph, CUdeviceptr address, size_t bytes, int device)
{
    graph_node_remember(graph, &(struct graph_memory){address, bytes, device}, NULL);
}

void graph_moved(CUgraph child, CUgraph parent)
{
    if (!graph_nodes_exist() || !tables_lock())
        return;
    struct graph *from = graph_find(child);
    uint64_t to = from == NULL ? 0 : graph_serial(parent);
    if (to != 0) {
        for (struct graph_node *node = graph_nodes; node != NULL; node = node->hh.next) {
            if (node->graph == from->serial)
                node->graph = to;
        }
    }
    tables_unlock();
}

struct exec *graph_exec_destroying(CUgraphExec handle)
{
    struct exec *exec = NULL;
    if (!graph_nodes_exist() || !tables_lock())
        return NULL;
    HASH_FIND_PTR(graph_execs, &handle, exec);
    if (exec != NULL)
        HASH_DEL(graph_execs, exec);
    tables_unlock();
    return exec;
}

void graph_exec_destroyed(CUresult rc, struct exec *exec)
{
    if (exec == NULL || !tables_lock())
        return;
    if (rc == CUDA_SUCCESS) {
        graph_nodes_prune(exec->graph);
        tables_delete(exec);
    } else {
        graph_exec_insert(exec);
    }
    tables_unlock();
}

void graph_instantiated(CUgraph handle, CUgraphExec exec_handle)
{
    graph_exec_destroyed(CUDA_SUCCESS, graph_exec_destroying(exec_handle)); /* one whose end we missed */
    if (!graph_nodes_exist() || !tables_lock())
        return;
    const struct graph *graph = graph_find(handle);
    struct exec *exec = graph == NULL ? NULL : tables_new();
    if (exec != NULL) {
        exec->handle = exec_handle;
        exec->graph = graph->serial;
        graph_exec_insert(exec);
    }
    tables_unlock();
}

bool graph_launched(CUgraphExec handle, struct graph_memory *memory)
{
    struct exec *exec = NULL;
    bool found = false;
    if (!graph_nodes_exist() || !tables_lock())
        return false;
    HASH_FIND_PTR(graph_execs, &handle, exec);
    for (struct graph_node *node = exec == NULL ? NULL : graph_nodes; node != NULL && !found;
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
    if (!call->acts || !graph_nodes_exist() || !tables_lock())
        return;
    ending->graph = graph_find(handle);
    if (ending->graph != NULL)
        HASH_DEL(graph_list, ending->graph);
    HASH_ITER (hh, graph_nodes, node, next) {
        if (ending->graph == NULL || node->graph != ending->graph->serial || node->launched)
            continue;
        graph_node_take(node);
        node->next = ending->nodes;
        ending->nodes = node;
    }
    tables_unlock();
    for (node = ending->nodes; node != NULL; node = node->next)
        graph_node_record_end(node);
}

/* Under the lock. An executable graph that is left can launch the node yet. */
static void settle_node(struct graph_node *node, bool destroyed)
{
    if (destroyed)
        node->live = false;
    if (destroyed && graph_node_is_over(node))
        tables_delete(node);
    else
        graph_node_insert(node);
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
        graph_insert(ending->graph);
    while (ending->nodes != NULL) {
        struct graph_node *node = ending->nodes;
        ending->nodes = node->next;
        settle_node(node, rc == CUDA_SUCCESS);
    }
    tables_unlock();
}

void graph_forget_address(CUdeviceptr address)
{
    if (!graph_nodes_exist() || !tables_lock())
        return;
    struct graph_node *node = graph_node_find(address);
    if (node != NULL)
        graph_node_delete(node);
    tables_unlock();
}
