/* A preloaded library that counts calls of some of the driver's exports, as a tracer does; it says so at
 * exit. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>

#include "cuda/abi.h"

static atomic_int allocations, async_allocations;

/* The driver is opened by dlopen, out of RTLD_NEXT's sight. */
static void *real(const char *name)
{
    return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
}

__attribute__((visibility("default"))) CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return ((CUresult(*)(CUdeviceptr *, size_t))real("cuMemAlloc_v2"))(address, bytes);
}

__attribute__((visibility("default"))) CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes,
                                                                CUstream stream)
{
    atomic_fetch_add(&async_allocations, 1);
    return ((CUresult(*)(CUdeviceptr *, size_t, CUstream))real("cuMemAllocAsync"))(address, bytes, stream);
}

__attribute__((destructor)) static void say(void)
{
    printf("interposed %d %d\n", atomic_load(&allocations), atomic_load(&async_allocations));
}
