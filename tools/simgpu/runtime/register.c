/*
 * What the code that nvcc generates calls: it registers its kernels and variables before main, and puts a
 * launch's configuration down. Kernels do nothing here (kernel.c), so registering only has to succeed.
 */
#include "runtime.h"

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
