/*
 * Memory that graphs allocate, as far as hooks must remember it.
 *
 * A block of the graph family stands for an allocation node, keyed by the address that the node was
 * given, which is the node's for as long as its graph, or what was instantiated from it, lives. It
 * begins when the node is added, by hand or by a capture, and ends by
 *   - a free node for its address, in this or another graph: the pair needs nothing once a launch
 *     is through;
 *   - cuMemFree or cuMemFreeAsync of its address, after a launch. A further launch takes the memory
 *     again, and begins the block anew;
 *   - the end of its graph, unless a launch has taken the memory and nothing has given it back:
 *     NVIDIA's guide says that "graph destruction does not automatically free any live
 *     graph-allocated memory".
 */
#ifndef HOOKS_GRAPHS_H
#define HOOKS_GRAPHS_H

#include <stdbool.h>

#include "cuda/abi.h"
#include "hooks/call.h"

/* Frees of an address, be it of a graph's memory or any other: in the place of call_free() and call_freed().
 */
void call_free_address(struct call *call, struct freeing *freeing, CUdeviceptr address);
/* On a capturing stream it adds a free node. */
void call_free_on_stream(struct call *call, struct freeing *freeing, CUdeviceptr address, CUstream stream);
/* A free node for the address. */
void call_free_in_graph(struct call *call, struct freeing *freeing, CUdeviceptr address);
void call_freed_address(struct call *call, CUresult rc, const struct freeing *freeing, CUdeviceptr address);

/* An allocation was granted on a stream: true when that is being captured, and then a node was remembered. */
bool graph_captured(CUstream stream, CUdeviceptr address, size_t bytes, int device);
/* The graph a stream is being captured into; NULL when it is not, or no node of the capture is remembered. */
CUgraph graph_of_capture(CUstream stream);
/* After an end that was refused. */
bool graph_capture_goes_on(CUstream stream);
/* The capture ended, and `graph` (NULL: none) came of it. */
void graph_capture_ended(CUgraph captured_into, CUgraph graph);

void graph_node_added(CUgraph graph, CUdeviceptr address, size_t bytes, int device);
/* The child's nodes belong to the parent from now on. */
void graph_moved(CUgraph child, CUgraph parent);

void graph_instantiated(CUgraph graph, CUgraphExec exec);
/* Before an executable graph is destroyed, and after. */
struct exec *graph_exec_destroying(CUgraphExec exec);
void graph_exec_destroyed(CUresult rc, struct exec *exec);
/* After a launch: the next node that holds memory anew; false when there is none left. */
struct graph_memory {
    CUdeviceptr address;
    size_t bytes;
    int device;
};
bool graph_launched(CUgraphExec exec, struct graph_memory *memory);

/* Before a graph is destroyed: records the ends of its blocks. After: makes it final, or takes it back. */
struct graph_ending {
    struct graph *graph; /* NULL: none that holds memory */
    struct graph_node *nodes;
};
void graph_destroying(struct call *call, struct graph_ending *ending, CUgraph graph);
void graph_destroyed(CUresult rc, struct graph_ending *ending);

/* Something else was allocated at this address: no graph's memory is there any more. */
void graph_forget_address(CUdeviceptr address);

#endif
