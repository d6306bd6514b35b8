/* Graphs and stream capture of the simulated GPU: what runs, what is refused, and the memory graphs own. */
#include "simgpu/child.h"

#include <pthread.h>

static CUgraph new_graph(void)
{
    CUgraph graph;
    OK(CU(cuGraphCreate)(&graph, 0));
    return graph;
}

static CUgraphExec executable(CUgraph graph, unsigned long long flags)
{
    CUgraphExec exec;
    OK(CU(cuGraphInstantiateWithFlags)(&exec, graph, flags));
    return exec;
}

static CUgraphNode add_allocation(CUgraph graph, size_t bytes, CUdeviceptr *address)
{
    CUgraphNode node;
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                           .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
                                             .bytesize = bytes};
    OK(CU(cuGraphAddMemAllocNode)(&node, graph, NULL, 0, &parameters));
    *address = parameters.dptr;
    return node;
}

static uint64_t graph_memory(CUgraphMem_attribute attribute)
{
    uint64_t value;
    OK(CU(cuDeviceGetGraphMemAttribute)(0, attribute, &value));
    return value;
}

static CUstream new_stream(unsigned flags)
{
    CUstream stream;
    OK(CU(cuStreamCreate)(&stream, flags));
    return stream;
}

static CUstreamCaptureStatus status_of(CUstream stream)
{
    CUstreamCaptureStatus status;
    OK(CU(cuStreamIsCapturing)(stream, &status));
    return status;
}

/* ---- graphs ---- */

static int calls;

static void count_call(void *data)
{
    calls += *(int *)data;
}

static void body_test_a_launch_runs_the_nodes_in_order(void)
{
    start(0);
    CUgraph graph = new_graph();
    CUgraphNode fill, copy, host;
    CUdeviceptr one = allocate(64), two = allocate(64);
    int step = 3;
    CUDA_MEMCPY3D linear = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = one,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstDevice = two,
                            .WidthInBytes = 64,
                            .Height = 1,
                            .Depth = 1};
    CUDA_MEMSET_NODE_PARAMS bytes = {.dst = one, .value = 0x5a, .elementSize = 1, .width = 64, .height = 1};
    CUDA_HOST_NODE_PARAMS function = {count_call, &step};
    OK(CU(cuGraphAddMemcpyNode)(&copy, graph, NULL, 0, &linear, NULL));
    OK(CU(cuGraphAddMemsetNode)(&fill, graph, NULL, 0, &bytes, NULL));
    OK(CU(cuGraphAddDependencies)(graph, &fill, &copy, 1)); /* added later, runs first */
    OK(CU(cuGraphAddHostNode)(&host, graph, &copy, 1, &function));
    CUgraphExec exec = executable(graph, 0);
    unsigned char back[64] = {0};
    OK(CU(cuMemcpyDtoH_v2)(back, two, 64));
    EXPECT(back[0], 0); /* nothing ran yet */
    OK(CU(cuGraphLaunch)(exec, NULL));
    OK(CU(cuGraphLaunch)(exec, NULL));
    OK(CU(cuMemcpyDtoH_v2)(back, two, 64));
    EXPECT(back[63], 0x5a);
    EXPECT(calls, 6);
    size_t count = 0;
    OK(CU(cuGraphGetNodes)(graph, NULL, &count));
    EXPECT(count, 3);
    OK(CU(cuGraphGetRootNodes)(graph, NULL, &count));
    EXPECT(count, 1);
    CUgraphNode from[3], to[3];
    count = 3;
    OK(CU(cuGraphGetEdges)(graph, from, to, &count));
    EXPECT(count, 2);
    TRUE(!from[2]);
    OK(CU(cuGraphAddDependencies)(graph, &copy, &fill, 1)); /* a circle */
    EXPECT(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
}
CHILD_TEST(test_a_launch_runs_the_nodes_in_order, "")

static void body_test_a_clone_and_a_child_are_graphs_of_their_own(void)
{
    start(0);
    CUgraph graph = new_graph(), clone, parent = new_graph(), child;
    CUgraphNode node, second, found, holder;
    int step = 1;
    CUDA_HOST_NODE_PARAMS function = {count_call, &step};
    OK(CU(cuGraphAddHostNode)(&node, graph, NULL, 0, &function));
    OK(CU(cuGraphAddHostNode)(&second, graph, &node, 1, &function));
    OK(CU(cuGraphClone)(&clone, graph));
    OK(CU(cuGraphNodeFindInClone)(&found, second, clone));
    size_t count = 1;
    CUgraphNode before;
    OK(CU(cuGraphNodeGetDependencies)(found, &before, &count));
    EXPECT(count, 1);
    TRUE(before != node);
    OK(CU(cuGraphAddChildGraphNode)(&holder, parent, NULL, 0, graph));
    OK(CU(cuGraphChildGraphNodeGetGraph)(holder, &child));
    TRUE(child != graph);
    EXPECT(CU(cuGraphDestroy)(child), CUDA_ERROR_INVALID_VALUE); /* the node's */
    OK(CU(cuGraphDestroy)(graph));
    CUgraphExec exec = executable(parent, 0);
    OK(CU(cuGraphDestroy)(parent));
    OK(CU(cuGraphLaunch)(exec, NULL)); /* lives on */
    EXPECT(calls, 2);
    OK(CU(cuGraphExecDestroy)(exec));
    EXPECT(CU(cuGraphLaunch)(exec, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuGraphDestroy)(graph), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuGraphDestroyNode)(found));
    OK(CU(cuGraphGetNodes)(clone, NULL, &count));
    EXPECT(count, 1);
}
CHILD_TEST(test_a_clone_and_a_child_are_graphs_of_their_own, "")

/* ---- memory ---- */

static void body_test_graph_memory_lives_from_launch_to_free(void)
{
    start(0);
    size_t before = free_bytes();
    CUgraph graph = new_graph();
    CUdeviceptr address, fixed;
    CUgraphNode node = add_allocation(graph, 3 * MIB, &address);
    CUDA_MEM_ALLOC_NODE_PARAMS parameters;
    OK(CU(cuGraphMemAllocNodeGetParams)(node, &parameters));
    EXPECT(parameters.dptr, address);
    EXPECT(parameters.bytesize, 3 * MIB);
    EXPECT(CU(cuMemFree_v2)(address), CUDA_ERROR_INVALID_VALUE); /* not allocated yet */
    CUgraphExec exec = executable(graph, 0), other;
    EXPECT(free_bytes(), before);
    EXPECT(CU(cuGraphInstantiateWithFlags)(&other, graph, 0), CUDA_ERROR_NOT_SUPPORTED); /* one at a time */
    OK(CU(cuGraphLaunch)(exec, NULL));
    EXPECT(before - free_bytes(), 4 * MIB);
    EXPECT(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 3 * MIB);
    OK(CU(cuMemcpyHtoD_v2)(address + 3 * MIB - 4, "end", 4));
    EXPECT(CU(cuGraphLaunch)(exec, NULL), CUDA_ERROR_INVALID_VALUE); /* not freed yet */
    OK(CU(cuMemFreeAsync)(address, NULL));
    EXPECT(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
    EXPECT(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 4 * MIB); /* kept for the next launch */
    OK(CU(cuGraphLaunch)(exec, NULL));
    OK(CU(cuGraphExecDestroy)(exec));
    OK(CU(cuGraphDestroy)(graph));
    OK(CU(cuMemcpyHtoD_v2)(address, "kept", 4)); /* outlives both */
    OK(CU(cuMemFree_v2)(address));
    OK(CU(cuDeviceGraphMemTrim)(0));
    EXPECT(free_bytes(), before);
    EXPECT(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 3 * MIB);
    add_allocation(new_graph(), 3 * MIB, &fixed);
    EXPECT(fixed, address);
}
CHILD_TEST(test_graph_memory_lives_from_launch_to_free, "")

static void body_test_a_free_node_ends_memory_in_the_graph(void)
{
    start(0);
    CUgraph graph = new_graph(), other = new_graph(), clone;
    CUdeviceptr address;
    CUgraphNode allocation = add_allocation(graph, MIB, &address), release, again;
    OK(CU(cuGraphAddMemFreeNode)(&release, graph, &allocation, 1, address));
    EXPECT(CU(cuGraphAddMemFreeNode)(&again, graph, NULL, 0, address), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuGraphAddMemFreeNode)(&again, other, NULL, 0, address), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuGraphAddMemFreeNode)(&again, other, NULL, 0, allocate(100)), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuGraphClone)(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(CU(cuGraphDestroyNode)(release), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(CU(cuGraphAddChildGraphNode)(&again, other, NULL, 0, graph), CUDA_ERROR_NOT_SUPPORTED);
    CUgraphExec exec = executable(graph, 0);
    for (int i = 0; i < 5; i++)
        OK(CU(cuGraphLaunch)(exec, NULL));
    EXPECT(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
    EXPECT(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), MIB);
    EXPECT(CU(cuMemFree_v2)(address), CUDA_ERROR_INVALID_VALUE);
}
CHILD_TEST(test_a_free_node_ends_memory_in_the_graph, "")

static void body_test_another_graph_can_free_it(void)
{
    start(0);
    CUgraph graph = new_graph(), other = new_graph();
    CUdeviceptr address;
    CUgraphNode node;
    add_allocation(graph, MIB, &address);
    OK(CU(cuGraphAddMemFreeNode)(&node, other, NULL, 0, address));
    CUgraphExec first = executable(graph, 0), second = executable(other, 0);
    EXPECT(CU(cuGraphLaunch)(second, NULL), CUDA_ERROR_INVALID_VALUE); /* nothing to free */
    OK(CU(cuGraphLaunch)(first, NULL));
    OK(CU(cuGraphLaunch)(second, NULL));
    OK(CU(cuGraphLaunch)(first, NULL));
    EXPECT(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), MIB);
}
CHILD_TEST(test_another_graph_can_free_it, "")

static void body_test_unfreed_memory_is_freed_at_launch_where_asked(void)
{
    start(0);
    CUgraph graph = new_graph();
    CUdeviceptr address;
    add_allocation(graph, MIB, &address);
    CUgraphExec exec = executable(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    for (int i = 0; i < 3; i++)
        OK(CU(cuGraphLaunch)(exec, NULL));
    EXPECT(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), MIB);
}
CHILD_TEST(test_unfreed_memory_is_freed_at_launch_where_asked, "")

/* ---- capture ---- */

static void body_test_a_capturing_stream_writes_a_graph(void)
{
    start(0);
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr address, own = allocate(16);
    CUgraph graph, writing;
    CUstreamCaptureStatus status;
    cuuint64_t id;
    size_t count;
    const CUgraphNode *behind;
    OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(CU(cuMemAllocAsync)(&address, MIB, stream));
    OK(CU(cuMemsetD8Async)(address, 7, MIB, stream));
    OK(CU(cuMemcpyAsync)(own, address, 16, stream));
    OK(CU(cuStreamGetCaptureInfo_v2)(stream, &status, &id, &writing, &behind, &count));
    EXPECT(count, 1);
    OK(CU(cuMemFreeAsync)(address, stream));
    EXPECT(CU(cuMemFreeAsync)(own, stream), CUDA_ERROR_INVALID_VALUE); /* not a graph's */
    EXPECT(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 0);          /* nothing ran */
    OK(CU(cuStreamEndCapture)(stream, &graph));
    TRUE(graph == writing);
    EXPECT(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
    CUgraphNode nodes[4];
    const CUgraphNodeType expected[4] = {CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEMSET,
                                         CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEM_FREE};
    count = 4;
    OK(CU(cuGraphGetNodes)(graph, nodes, &count));
    EXPECT(count, 4);
    for (int i = 0; i < 4; i++) {
        CUgraphNodeType type;
        OK(CU(cuGraphNodeGetType)(nodes[i], &type));
        EXPECT(type, expected[i]);
    }
    CUgraphExec exec = executable(graph, 0);
    unsigned char back[16];
    OK(CU(cuGraphLaunch)(exec, stream));
    OK(CU(cuMemcpyDtoH_v2)(back, own, 16));
    EXPECT(back[15], 7);
}
CHILD_TEST(test_a_capturing_stream_writes_a_graph, "")

static void body_test_unsafe_calls_break_a_capture(void)
{
    start(0);
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr address;
    CUgraph graph = (CUgraph)1;
    OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(CU(cuMemAlloc_v2)(&address, 100), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT(status_of(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT(CU(cuMemsetD8Async)(0, 0, 0, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT(CU(cuStreamEndCapture)(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    TRUE(!graph);
    OK(CU(cuMemAlloc_v2)(&address, 100));

    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* as PyTorch's allocator does */
    OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(CU(cuThreadExchangeStreamCaptureMode)(&mode));
    OK(CU(cuMemAlloc_v2)(&address, 100));
    OK(CU(cuThreadExchangeStreamCaptureMode)(&mode));
    EXPECT(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT(CU(cuStreamSynchronize)(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT(CU(cuStreamEndCapture)(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

    OK(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(CU(cuMemFree_v2)(address));
    OK(CU(cuStreamEndCapture)(stream, &graph));
    EXPECT(CU(cuStreamEndCapture)(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
}
CHILD_TEST(test_unsafe_calls_break_a_capture, "")

static void body_test_the_default_stream_cannot_be_captured(void)
{
    start(0);
    CUstream blocking = new_stream(CU_STREAM_DEFAULT);
    CUdeviceptr address = allocate(10);
    CUgraph graph;
    EXPECT(CU(cuStreamBeginCapture_v2)(NULL, CU_STREAM_CAPTURE_MODE_RELAXED),
           CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    OK(CU(cuStreamBeginCapture_v2)(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(CU(cuStreamEndCapture_ptsz)(NULL, &graph));
    OK(CU(cuStreamBeginCapture_v2)(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(CU(cuMemsetD8Async)(address, 0, 10, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    EXPECT(CU(cuStreamEndCapture)(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}
CHILD_TEST(test_the_default_stream_cannot_be_captured, "")

static void body_test_streams_fork_and_join_by_events(void)
{
    start(0);
    CUstream first = new_stream(CU_STREAM_NON_BLOCKING), second = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent fork_event, join_event, outside;
    CUdeviceptr address = allocate(100);
    CUgraph graph;
    OK(CU(cuEventCreate)(&fork_event, 0));
    OK(CU(cuEventCreate)(&join_event, 0));
    OK(CU(cuEventCreate)(&outside, 0));
    OK(CU(cuEventRecord)(outside, second));
    for (int joined = 0; joined < 2; joined++) {
        OK(CU(cuStreamBeginCapture_v2)(first, CU_STREAM_CAPTURE_MODE_RELAXED));
        OK(CU(cuMemsetD8Async)(address, 1, 10, first));
        OK(CU(cuEventRecord)(fork_event, first));
        EXPECT(CU(cuEventQuery)(fork_event), CUDA_ERROR_CAPTURED_EVENT);
        OK(CU(cuStreamWaitEvent)(second, fork_event, 0));
        EXPECT(status_of(second), CU_STREAM_CAPTURE_STATUS_ACTIVE);
        OK(CU(cuMemsetD8Async)(address, 2, 10, second));
        if (joined) {
            OK(CU(cuEventRecord)(join_event, second));
            OK(CU(cuStreamWaitEvent)(first, join_event, 0));
            OK(CU(cuMemsetD8Async)(address, 3, 10, first));
        }
        EXPECT(CU(cuStreamEndCapture)(first, &graph),
               joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
        EXPECT(status_of(second), CU_STREAM_CAPTURE_STATUS_NONE);
    }
    size_t edges = 0;
    OK(CU(cuGraphGetEdges)(graph, NULL, NULL, &edges));
    EXPECT(edges, 3); /* fill to fill, and both to the last */
    OK(CU(cuStreamBeginCapture_v2)(first, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(CU(cuStreamWaitEvent)(first, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    OK(CU(cuStreamDestroy_v2)(first));
}
CHILD_TEST(test_streams_fork_and_join_by_events, "")

static CUstream captured_stream;

static void *end_elsewhere(void *unused)
{
    CUgraph graph;
    start(0);
    EXPECT(CU(cuStreamEndCapture)(captured_stream, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    return unused;
}

static void body_test_the_thread_that_began_ends(void)
{
    pthread_t thread;
    CUgraph graph;
    start(0);
    captured_stream = new_stream(0);
    OK(CU(cuStreamBeginCapture_v2)(captured_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    pthread_create(&thread, NULL, end_elsewhere, NULL);
    pthread_join(thread, NULL);
    OK(CU(cuStreamEndCapture)(captured_stream, &graph));
}
CHILD_TEST(test_the_thread_that_began_ends, "")

static void *leave_a_capture_behind(void *unused)
{
    start(0);
    OK(CU(cuStreamBeginCapture_v2)(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL));
    return unused;
}

static void body_test_a_capture_ends_with_its_thread(void)
{
    pthread_t thread;
    start(0);
    pthread_create(&thread, NULL, leave_a_capture_behind, NULL);
    pthread_join(thread, NULL);
    CUdeviceptr address = allocate(100); /* forbidden while it went on */
    OK(CU(cuMemsetD8_v2)(address, 0, 100));
}
CHILD_TEST(test_a_capture_ends_with_its_thread, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_launch_runs_the_nodes_in_order),
        cmocka_unit_test(test_a_clone_and_a_child_are_graphs_of_their_own),
        cmocka_unit_test(test_graph_memory_lives_from_launch_to_free),
        cmocka_unit_test(test_a_free_node_ends_memory_in_the_graph),
        cmocka_unit_test(test_another_graph_can_free_it),
        cmocka_unit_test(test_unfreed_memory_is_freed_at_launch_where_asked),
        cmocka_unit_test(test_a_capturing_stream_writes_a_graph),
        cmocka_unit_test(test_unsafe_calls_break_a_capture),
        cmocka_unit_test(test_the_default_stream_cannot_be_captured),
        cmocka_unit_test(test_streams_fork_and_join_by_events),
        cmocka_unit_test(test_the_thread_that_began_ends),
        cmocka_unit_test(test_a_capture_ends_with_its_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
