/* What the families of memory need of each other. */
#ifndef SIMGPU_MEMORY_H
#define SIMGPU_MEMORY_H

#include "simgpu.h"

CUresult plain_free(CUdeviceptr address);

/* Pools (pool.c): the end of a block of theirs, by cuMemFree or on a stream. */
CUresult pool_free_block(struct block *block);
/* Graph memory (graph_memory.c): freed outside the graph. */
CUresult graph_free_block(struct block *block);

/* Where the bytes behind a device address lie in this process, and how many follow without a gap; NULL when
 * the address is no memory of the driver's, or virtual memory that is not mapped or not accessible. */
void *memory_at(uint64_t address, uint64_t *bytes_left);
/* The same for virtual memory management (reservation.c). */
void *vmm_memory_at(uint64_t address, uint64_t *bytes_left);

/* The mapping that an address lies in, and the attributes of such an address. */
bool vmm_mapping_at(uint64_t address, uint64_t *start, uint64_t *bytes);
CUresult vmm_attribute(CUpointer_attribute attribute, uint64_t address, uint64_t *value);

#endif
