/*
 * The nodes, graphs and executable graphs that hold memory, as graphs.c, graph_capture.c and graph_frees.c
 * share them. A program without such nodes has empty tables, and pays one load of a counter for each launch
 * and each free.
 *
 * All is under the lock of tables.h but for the functions that say otherwise.
 */
#ifndef HOOKS_GRAPH_TABLE_H
#define HOOKS_GRAPH_TABLE_H

#include "base/hash.h"
#include "hooks/graphs.h"
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

extern struct graph_node *graph_nodes;
extern struct graph *graph_list;
extern struct exec *graph_execs;

/* Without the lock. */
bool graph_nodes_exist(void);

struct graph_node *graph_node_find(CUdeviceptr address);
void graph_node_insert(struct graph_node *node);
void graph_node_take(struct graph_node *node);
void graph_node_delete(struct graph_node *node);
/* A node that holds nothing, and that nothing can launch again. */
bool graph_node_is_over(const struct graph_node *node);
/* Deletes those of a graph that are. */
void graph_nodes_prune(uint64_t serial);

struct graph *graph_find(CUgraph handle);
bool graph_insert(struct graph *graph);
/* Of a graph that gets one where it has none yet; 0: no memory. */
uint64_t graph_serial(CUgraph handle);

void graph_exec_insert(struct exec *exec);

/* Without the lock, which they take: a node was added, captured on a stream or (NULL) by hand. */
void graph_node_remember(CUgraph graph, const struct graph_memory *memory, const CUstream *stream);
/* Without the lock: the end of the block of a node that is out of the table, unless a launch took its memory.
 */
void graph_node_record_end(struct graph_node *node);

/* Asks the driver, without the lock. */
bool graph_is_capturing(CUstream stream);

#endif
