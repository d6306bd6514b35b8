/* Frees of an address that may be a graph's: by cuMemFree, on a stream, or by a free node (graphs.h). */
#include "hooks/graph_table.h"

/* Before a free of `address`: the node there, if any, gives its memory back. Kept in `freeing` is what takes
 * it back. */
static void free_node(struct freeing *freeing, CUdeviceptr address, bool in_graph)
{
    if (!graph_nodes_exist() || !tables_lock())
        return;
    struct graph_node *node = graph_node_find(address);
    if (node != NULL) {
        freeing->is_node = true;
        freeing->was_live = node->live;
        freeing->was_launched = node->launched;
        freeing->was_paired = node->paired;
        node->live = false;
        node->paired |= in_graph;
        node->launched &= in_graph;
        if (!in_graph && graph_node_is_over(node)) {
            graph_node_take(node);
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
    free_address(call, freeing, address, call->acts && graph_nodes_exist() && graph_is_capturing(stream));
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
            graph_node_insert(node);
        node = graph_node_find(address);
        if (node != NULL) {
            node->live = freeing->was_live;
            node->launched = freeing->was_launched;
            node->paired = freeing->was_paired;
        }
    }
    tables_unlock();
}
