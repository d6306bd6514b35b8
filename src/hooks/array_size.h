/* How many bytes an array takes by its descriptor: texels only, without the padding that a driver adds. */
#ifndef HOOKS_ARRAY_SIZE_H
#define HOOKS_ARRAY_SIZE_H

#include <stdint.h>

#include "cuda/abi.h"

uint64_t array_size(const CUDA_ARRAY3D_DESCRIPTOR *array);
/* All levels; 0 levels count as one. A level is half as large as the one before in every direction that is
 * not layers. */
uint64_t array_size_of_levels(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned int levels);

#endif
