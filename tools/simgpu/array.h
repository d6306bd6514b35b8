/* Arrays, as copies see them. */
#ifndef SIMGPU_ARRAY_H
#define SIMGPU_ARRAY_H

#include "simgpu.h"

/* Where the rows of a copy lie in an array; x in bytes, y in rows, z in slices or layers. */
CUresult array_side(CUarray array, size_t x, size_t y, size_t z, const CUDA_MEMCPY3D *copy, uint64_t *start,
                    uint64_t *pitch, uint64_t *slice, bool *checked);

#endif
