/*
 * Graphs: nodes of work and what must come before them; and what capture writes into them. Executable graphs
 * are in graph_exec.c, memory that graphs own in graph_memory.c.
 */
#ifndef SIMGPU_GRAPH_H
#define SIMGPU_GRAPH_H

#include "copy.h"
#include "stream.h"

struct exec;
struct user_object;
struct graph_memory; /* an allocation node's memory */
struct graph;

/* What a node does; nodes and the steps of executable graphs have one each. */
struct work {
    CUgraphNodeType type;
    CUDA_MEMCPY3D copy;
    struct fill fill;
    CUDA_HOST_NODE_PARAMS host;
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUevent event;
    struct graph *child;         /* owned by the node */
    struct graph_memory *memory; /* allocated or freed here */
};

struct node {
    struct handle handle;
    struct graph *graph;
    struct work work;
    struct node_list behind; /* these come before it */
    struct node *origin;     /* in the graph that this one was cloned from */
    bool disabled;
};

struct graph {
    struct handle handle;
    struct node_list nodes;      /* in the order they were added */
    struct node *parent;         /* the node it is the child graph of */
    bool has_memory;             /* allocation or free nodes: many operations are then off */
    bool capturing;              /* a capture writes into it */
    struct held_object *objects; /* of the program's, counted */
    struct exec *execs;          /* made from it */
};

/* References to the program's objects, given back when the graph ends; false: no memory, or not that many. */
bool graph_hold_object(struct graph *graph, struct user_object *object, unsigned count);
bool graph_drop_object(struct graph *graph, const struct user_object *object, unsigned count);
void user_object_release(struct user_object *object, unsigned count);

struct graph *graph_get(CUgraph handle);
struct graph *graph_new(void);
void graph_end(struct graph *graph);
/* Its executables go on without it. */
void execs_forget(struct graph *graph);
struct graph *graph_copy(const struct graph *graph); /* NULL: no memory */

/* Every node after those it comes behind; false for a circle. */
bool graph_order(const struct graph *graph, struct node_list *order);
void node_end(struct node *node);

bool list_add(struct node_list *list, struct node *node);
bool list_has(const struct node_list *list, const struct node *node);
void list_remove(struct node_list *list, const struct node *node);
void list_end(struct node_list *list);

/* Adds a node behind others; the error tells what is wrong with them. Takes over what `work` owns. */
CUresult graph_add(struct graph *graph, const struct work *work, struct node *const *behind, size_t count,
                   struct node **out);

/* ---- memory ---- */

void graph_memory_hold(struct graph_memory *memory);
void graph_memory_release(struct graph_memory *memory);
CUdeviceptr graph_memory_address(const struct graph_memory *memory);
struct device *graph_memory_device(const struct graph_memory *memory);
uint64_t graph_memory_bytes(const struct graph_memory *memory);
bool graph_memory_is_alive(const struct graph_memory *memory);
/* What its nodes do when they run. */
CUresult graph_memory_begin(struct graph_memory *memory);
void graph_memory_finish(struct graph_memory *memory);
/* In which graph a free node of it stands already; NULL: in none. */
struct graph *graph_memory_freed_in(const struct graph_memory *memory);
void graph_memory_set_freed_in(struct graph_memory *memory, struct graph *graph);

CUresult graph_add_allocation(struct graph *graph, struct node *const *behind, size_t count,
                              CUDA_MEM_ALLOC_NODE_PARAMS *parameters, struct node **out);
CUresult graph_add_free(struct graph *graph, struct node *const *behind, size_t count, CUdeviceptr address,
                        struct node **out);

/* ---- capture: a node behind what the stream did last ---- */

CUresult graph_capture_copy(struct stream *stream, const CUDA_MEMCPY3D *copy);
CUresult graph_capture_fill(struct stream *stream, const struct fill *fill);
CUresult graph_capture_host(struct stream *stream, CUhostFn function, void *data);
/* Memory of the graph's own; its address is known at once, and memory once the graph runs. */
CUresult graph_capture_allocation(struct stream *stream, const CUmemPoolProps *properties, size_t bytes,
                                  CUdeviceptr *out);
CUresult graph_capture_free(struct stream *stream, CUdeviceptr address);
CUresult graph_capture_kernel(struct stream *stream, const CUDA_KERNEL_NODE_PARAMS *kernel);

#endif
