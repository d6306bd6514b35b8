/* Graphs: what capture writes into them. */
#ifndef SIMGPU_GRAPH_H
#define SIMGPU_GRAPH_H

#include "copy.h"
#include "stream.h"

CUresult graph_capture_copy(struct stream *stream, const CUDA_MEMCPY3D *copy);
CUresult graph_capture_fill(struct stream *stream, const struct fill *fill);
CUresult graph_capture_host(struct stream *stream, CUhostFn function, void *data);
/* Memory of the graph's own; its address is known at once, and memory once the graph runs. */
CUresult graph_capture_allocation(struct stream *stream, const CUmemPoolProps *properties, size_t bytes,
                                  CUdeviceptr *out);
CUresult graph_capture_free(struct stream *stream, CUdeviceptr address);
/* A node that does nothing when it runs: a kernel, an event. */
CUresult graph_capture_plain(struct stream *stream, CUgraphNodeType type);

#endif
