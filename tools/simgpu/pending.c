/* What is not there yet. */
#include "array.h"
#include "capture.h"
#include "entry.h"
#include "graph.h"
#include "memory.h"
#include "module.h"
#include <stdlib.h>

CUresult graph_free_block(struct block *block)
{
    (void)block;
    return CUDA_ERROR_INVALID_VALUE;
}
CUresult graph_capture_copy(struct stream *s, const CUDA_MEMCPY3D *c)
{
    (void)s;
    (void)c;
    return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult graph_capture_fill(struct stream *s, const struct fill *c)
{
    (void)s;
    (void)c;
    return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult graph_capture_host(struct stream *s, CUhostFn f, void *d)
{
    (void)s;
    (void)f;
    (void)d;
    return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult graph_capture_plain(struct stream *s, CUgraphNodeType t)
{
    (void)s;
    (void)t;
    return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult capture_forbids(void)
{
    return CUDA_SUCCESS;
}
CUresult capture_allows_work(struct stream *s)
{
    (void)s;
    return CUDA_SUCCESS;
}
CUresult capture_forbids_wait(struct stream *s)
{
    (void)s;
    return CUDA_SUCCESS;
}
CUresult capture_record(struct stream *s, struct event *e)
{
    (void)s;
    (void)e;
    return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult capture_wait(struct stream *s, struct event *e)
{
    (void)s;
    (void)e;
    return CUDA_SUCCESS;
}
void capture_abandon(struct stream *s)
{
    (void)s;
}
CUresult graph_capture_allocation(struct stream *s, const CUmemPoolProps *p, size_t b, CUdeviceptr *o)
{
    (void)s;
    (void)p;
    (void)b;
    (void)o;
    return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult graph_capture_free(struct stream *s, CUdeviceptr a)
{
    (void)s;
    (void)a;
    return CUDA_ERROR_NOT_SUPPORTED;
}
