/*
 * What the code that nvcc generates calls: it registers its kernels and variables before main, and launches
 * by the address of a host stub. Kernels do nothing here, so registering only has to succeed.
 */
#include "runtime.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct dim3 {
    unsigned x, y, z;
};

static __thread struct {
    struct dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} configuration;

EXPORT void **__cudaRegisterFatBinary(void *binary)
{
    static void *handle;
    (void)binary;
    return &handle;
}

EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

EXPORT void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                                   int threads, void *tid, void *bid, void *block, void *grid, int *warp)
{
    (void)handle, (void)host, (void)device, (void)name, (void)threads;
    (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
}

EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                              size_t bytes, int constant, int global)
{
    (void)handle, (void)host, (void)device, (void)name, (void)external, (void)bytes, (void)constant,
        (void)global;
}

EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int external,
                                     size_t bytes, int constant, int global)
{
    (void)handle, (void)host, (void)device, (void)name, (void)external, (void)bytes, (void)constant,
        (void)global;
}

EXPORT char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

EXPORT unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared,
                                            cudaStream_t stream)
{
    configuration.grid = grid;
    configuration.block = block;
    configuration.shared = shared;
    configuration.stream = stream;
    return 0;
}

EXPORT cudaError_t __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared,
                                              void *stream)
{
    *grid = configuration.grid;
    *block = configuration.block;
    *shared = configuration.shared;
    *(cudaStream_t *)stream = configuration.stream;
    return cudaSuccess;
}

EXPORT cudaError_t __cudaGetKernel(void **kernel, const void *stub)
{
    *kernel = (void *)stub;
    return cudaSuccess;
}

static cudaError_t launch(const void *stub, struct dim3 grid, struct dim3 block)
{
    if (!stub)
        return cudaErrorInvalidDeviceFunction;
    const char *verbose = getenv("SIMGPU_VERBOSE");
    if (verbose && *verbose && *verbose != '0')
        fprintf(stderr, "simgpu: the kernel of %p<<<(%u,%u,%u), (%u,%u,%u)>>> is not run\n", stub, grid.x,
                grid.y, grid.z, block.x, block.y, block.z);
    bool empty = !grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z;
    return empty ? cudaErrorInvalidConfiguration : cudaSuccess;
}

EXPORT cudaError_t cudaLaunchKernel(const void *stub, struct dim3 grid, struct dim3 block, void **arguments,
                                    size_t shared, cudaStream_t stream)
{
    (void)arguments, (void)shared, (void)stream;
    return RUN(launch(stub, grid, block));
}

EXPORT cudaError_t cudaLaunchKernel_ptsz(const void *stub, struct dim3 grid, struct dim3 block,
                                         void **arguments, size_t shared, cudaStream_t stream)
{
    return cudaLaunchKernel(stub, grid, block, arguments, shared, stream);
}

EXPORT cudaError_t __cudaLaunchKernel(void *kernel, struct dim3 grid, struct dim3 block, void **arguments,
                                      size_t shared, cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

EXPORT cudaError_t __cudaLaunchKernel_ptsz(void *kernel, struct dim3 grid, struct dim3 block,
                                           void **arguments, size_t shared, cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
