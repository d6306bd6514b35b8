/* Moving bytes, now. Every copy is one of the three-dimensional kind. */
#ifndef SIMGPU_COPY_H
#define SIMGPU_COPY_H

#include "simgpu.h"

struct fill {
    uint64_t address;
    size_t pitch, width, height; /* width in elements */
    unsigned value, element;     /* element: 1, 2 or 4 bytes */
};

CUresult copy_run(const CUDA_MEMCPY3D *copy);
CUresult fill_run(const struct fill *fill);
/* On a stream: runs, or becomes a node of the graph that the stream captures. */
CUresult copy_submit(const CUDA_MEMCPY3D *copy, CUstream stream);
CUresult fill_submit(const struct fill *fill, CUstream stream);

#endif
