/* How many blocks of a kernel run at once: kernels do not run here, so the answers are plain arithmetic. */
#include "entry.h"

#define THREADS 2048 /* per multiprocessor */
#define MOST    32   /* blocks per multiprocessor */
#define BLOCK   1024

static CUresult blocks(int *count, int threads)
{
    if (!count || threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    int fit = THREADS / threads;
    *count = threads > BLOCK ? 0 : fit > MOST ? MOST : fit;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction function, int threads,
                                                            size_t shared)
{
    (void)function, (void)shared;
    return CALL("cuOccupancyMaxActiveBlocksPerMultiprocessor", NEEDS_CONTEXT, blocks(count, threads));
}

EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, CUfunction function,
                                                                     int threads, size_t shared,
                                                                     unsigned int flags)
{
    (void)flags;
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(count, function, threads, shared);
}

static CUresult best_block(int *grid, int *block, int limit)
{
    if (!grid || !block)
        return CUDA_ERROR_INVALID_VALUE;
    *block = limit > 0 && limit < BLOCK ? limit : BLOCK;
    *grid = 108 * (THREADS / *block);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                                 CUoccupancyB2DSize size, size_t shared, int limit)
{
    (void)function, (void)size, (void)shared;
    return CALL("cuOccupancyMaxPotentialBlockSize", NEEDS_CONTEXT, best_block(grid, block, limit));
}

EXPORT CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
                                                          CUoccupancyB2DSize size, size_t shared, int limit,
                                                          unsigned int flags)
{
    (void)flags;
    return cuOccupancyMaxPotentialBlockSize(grid, block, function, size, shared, limit);
}

static CUresult dynamic_shared(size_t *bytes, int count)
{
    if (!bytes || count <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = (size_t)(167936 / count);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction function, int count,
                                                        int threads)
{
    (void)function, (void)threads;
    return CALL("cuOccupancyAvailableDynamicSMemPerBlock", NEEDS_CONTEXT, dynamic_shared(bytes, count));
}
