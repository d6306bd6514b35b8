/*
 * Kernels, known by the address of their host stub: a launch does nothing but be checked, and what is asked
 * of a kernel is answered as of one that needs little.
 */
#include "runtime.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* cudaFuncAttributes of CUDA 12 and 13, as far as it is filled. */
struct function_attributes {
    size_t shared_bytes, constant_bytes, local_bytes;
    int max_threads_per_block, registers, ptx_version, binary_version, cache_mode;
    int max_dynamic_shared_bytes, preferred_carveout;
};

/* cudaLaunchConfig_t, as far as it is read. */
struct launch_configuration {
    struct dim3 grid, block;
};

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

EXPORT cudaError_t cudaLaunchKernelExC(const struct launch_configuration *configuration, const void *stub,
                                       void **arguments)
{
    (void)arguments;
    return RUN(configuration ? launch(stub, configuration->grid, configuration->block)
                             : cudaErrorInvalidValue);
}

EXPORT cudaError_t cudaLaunchKernelExC_ptsz(const struct launch_configuration *configuration,
                                            const void *stub, void **arguments)
{
    return cudaLaunchKernelExC(configuration, stub, arguments);
}

static cudaError_t attributes_of(struct function_attributes *out, const void *stub)
{
    if (!out)
        return cudaErrorInvalidValue;
    if (!stub)
        return cudaErrorInvalidDeviceFunction;
    *out = (struct function_attributes){.max_threads_per_block = 1024,
                                        .registers = 32,
                                        .ptx_version = 80,
                                        .binary_version = 80,
                                        .max_dynamic_shared_bytes = 48 << 10};
    return cudaSuccess;
}

EXPORT cudaError_t cudaFuncGetAttributes(struct function_attributes *out, const void *stub)
{
    return RUN(attributes_of(out, stub));
}

EXPORT cudaError_t cudaFuncSetAttribute(const void *stub, int attribute, int value)
{
    (void)attribute, (void)value;
    return RUN(stub ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *stub,
                                                                          int threads, size_t shared,
                                                                          unsigned int flags)
{
    return RUN(driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, (CUfunction)stub, threads,
                                                                           shared, flags));
}

EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *stub, int threads,
                                                                 size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, stub, threads, shared, 0);
}
