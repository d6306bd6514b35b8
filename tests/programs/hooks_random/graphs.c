/*
 * Graphs. A story a step: made, filled by hand or by a capture, launched or not, and ended. What a launch
 * leaves is freed at some later step, like any memory.
 */
#include "work.h"

#define NODES 3

struct node {
    CUdeviceptr address;
    size_t bytes;
    bool paired, live, launched;
};

static void add_by_hand(struct work *work, CUgraph graph, struct node *node)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                       .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                                    .id = random_below(work, 8) ? 0 : 77}},
                                         .bytesize = node->bytes};
    CUgraphNode made = NULL, ended = NULL;
    CUresult rc = cuGraphAddMemAllocNode(&made, graph, NULL, 0, &params);
    note(work, "node", rc, params.dptr);
    if (rc != CUDA_SUCCESS) {
        work->books[GRAPH].failed++;
        return;
    }
    begin_block(work, GRAPH, node->bytes);
    *node = (struct node){.address = params.dptr, .bytes = node->bytes, .live = true};
    if (random_below(work, 2) == 0) {
        note(work, "free node", cuGraphAddMemFreeNode(&ended, graph, &made, 1, node->address), 0);
        end_block(work, GRAPH, node->bytes, false);
        node->paired = true;
        node->live = false;
    }
}

static void add_by_capture(struct work *work, struct node *node)
{
    CUdeviceptr address = 0;
    CUresult rc = cuMemAllocAsync(&address, node->bytes, work->stream);
    note(work, "captured", rc, address);
    if (rc != CUDA_SUCCESS) {
        work->books[POOL].failed++;
        return;
    }
    begin_block(work, GRAPH, node->bytes);
    *node = (struct node){.address = address, .bytes = node->bytes, .live = true};
    if (random_below(work, 2) == 0) {
        note(work, "captured free", cuMemFreeAsync(address, work->stream), 0);
        end_block(work, GRAPH, node->bytes, false);
        node->paired = true;
        node->live = false;
    }
}

static void launch_graph(struct work *work, CUgraphExec exec, struct node *nodes)
{
    if (note(work, "launch", cuGraphLaunch(exec, work->stream), 0) != CUDA_SUCCESS)
        return;
    note(work, "done", cuStreamSynchronize(work->stream), 0);
    for (int i = 0; i < NODES; i++) {
        if (nodes[i].address == 0 || nodes[i].paired)
            continue;
        if (!nodes[i].live) {
            begin_block(work, GRAPH, nodes[i].bytes);
        }
        nodes[i].live = nodes[i].launched = true;
    }
}

void tell_graph_story(struct work *work)
{
    struct node nodes[NODES] = {0};
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    bool by_capture = random_below(work, 2);
    if (work->depth > 0 || work->thing_count > THINGS - 16)
        return;
    if (by_capture)
        note(work, "capture", cuStreamBeginCapture_v2(work->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), 0);
    else
        note(work, "graph", cuGraphCreate(&graph, 0), 0);
    for (unsigned i = random_below(work, NODES); i < NODES; i++) {
        nodes[i].bytes = 1 + random_below(work, 1 << 22);
        if (by_capture)
            add_by_capture(work, &nodes[i]);
        else
            add_by_hand(work, graph, &nodes[i]);
    }
    if (by_capture)
        note(work, "captured all", cuStreamEndCapture(work->stream, &graph), 0);
    if (random_below(work, 3))
        note_handle(work, "instantiate", cuGraphInstantiateWithFlags(&exec, graph, 0), graph);
    if (exec != NULL && random_below(work, 4))
        launch_graph(work, exec, nodes);
    for (int i = 0; i < NODES; i++) {
        if (nodes[i].launched && random_below(work, 2) &&
            note(work, "free outside", cuMemFree_v2(nodes[i].address), 0) == CUDA_SUCCESS) {
            end_block(work, GRAPH, nodes[i].bytes, false);
            nodes[i].live = nodes[i].launched = false;
        }
    }
    bool all_back = true;
    for (int i = 0; i < NODES; i++)
        all_back = all_back && !nodes[i].launched;
    if (exec != NULL && all_back && random_below(work, 2))
        launch_graph(work, exec, nodes);
    if (exec != NULL)
        note(work, "end exec", cuGraphExecDestroy(exec), 0);
    note(work, "end graph", cuGraphDestroy(graph), 0);
    for (int i = 0; i < NODES; i++) {
        if (!nodes[i].live)
            continue;
        if (nodes[i].launched)
            work->things[work->thing_count++] =
                (struct thing){GRAPH, BY_FREE, nodes[i].address, nodes[i].bytes, NO_CONTEXT};
        else
            end_block(work, GRAPH, nodes[i].bytes, false);
    }
}
