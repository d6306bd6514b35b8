/*
 * What modules and libraries take of a device's memory: the size of their image, in whole granules, in each
 * context that they are loaded into. As with CUDA, that is when the first of their functions is wanted, or at
 * once where CUDA_MODULE_LOADING=EAGER. Hold the driver's lock (entry.h).
 */
#ifndef SIMGPU_CODE_H
#define SIMGPU_CODE_H

#include "simgpu.h"

/* The size of an image as its own header tells it: a fat binary, with or without its wrapper, or ELF; of
 * anything else (PTX) the length of its text. */
uint64_t code_image_bytes(const void *image);

bool code_is_lazy(void);

/* Loads the code of a module or library (`owner`) into a context, where it is not there yet. */
CUresult code_load(const void *owner, uint64_t bytes, struct context *context);
/* Gives back what an owner, or a context, has loaded. */
void code_end(const void *owner);
void code_end_in(const struct context *context);

#endif
