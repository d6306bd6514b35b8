/* NVTX ranges, without a profiler (nvtx.c). */
#ifndef HOOKS_NVTX_H
#define HOOKS_NVTX_H

/* From the constructor: has NVTX find this library, where the user names no other tool. */
void nvtx_offer(void);

#endif
