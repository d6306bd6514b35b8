/* The driver's functions that a small program needs, as cuda.h has them. */
#ifndef PROGRAMS_DRIVER_H
#define PROGRAMS_DRIVER_H

#include <stddef.h>

typedef unsigned long long address;

int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(address *address, size_t bytes);
int cuMemFree_v2(address address);

#endif
