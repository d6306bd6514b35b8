/* What work becomes on a capturing stream: a node behind the stream's tail, and its new tail. */
#include "capture.h"
#include "graph.h"

/* The node just made is all that the stream's next one comes behind. */
static CUresult advance(struct stream *stream, struct node *node)
{
    stream->tail.count = 0;
    return list_add(&stream->tail, node) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult capture(struct stream *stream, const struct work *work)
{
    struct node *node;
    CUresult result = graph_add(capture_graph(stream), work, stream->tail.nodes, stream->tail.count, &node);
    return result == CUDA_SUCCESS ? advance(stream, node) : result;
}

CUresult graph_capture_copy(struct stream *stream, const CUDA_MEMCPY3D *copy)
{
    struct work work = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = *copy};
    return capture(stream, &work);
}

CUresult graph_capture_fill(struct stream *stream, const struct fill *fill)
{
    struct work work = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .fill = *fill};
    return capture(stream, &work);
}

CUresult graph_capture_host(struct stream *stream, CUhostFn function, void *data)
{
    struct work work = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {function, data}};
    return capture(stream, &work);
}

CUresult graph_capture_kernel(struct stream *stream, const CUDA_KERNEL_NODE_PARAMS *kernel)
{
    struct work work = {.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *kernel};
    return capture(stream, &work);
}

CUresult graph_capture_allocation(struct stream *stream, const CUmemPoolProps *properties, size_t bytes,
                                  CUdeviceptr *out)
{
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {.poolProps = *properties, .bytesize = bytes};
    struct node *node;
    parameters.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    CUresult result = graph_add_allocation(capture_graph(stream), stream->tail.nodes, stream->tail.count,
                                           &parameters, &node);
    if (result != CUDA_SUCCESS)
        return result;
    *out = parameters.dptr;
    return advance(stream, node);
}

CUresult graph_capture_free(struct stream *stream, CUdeviceptr address)
{
    struct node *node;
    CUresult result =
        graph_add_free(capture_graph(stream), stream->tail.nodes, stream->tail.count, address, &node);
    return result == CUDA_SUCCESS ? advance(stream, node) : result;
}
