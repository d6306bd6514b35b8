/* Memory pools: the driver's, under the runtime's names. */
#include "runtime.h"

EXPORT cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    return ASK(driver.cuDeviceGetDefaultMemPool(pool, device));
}

EXPORT cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    return ASK(driver.cuDeviceGetMemPool(pool, device));
}

EXPORT cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    return ASK(driver.cuDeviceSetMemPool(device, pool));
}

EXPORT cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *properties)
{
    return ASK(driver.cuMemPoolCreate(pool, properties));
}

EXPORT cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    return ASK(driver.cuMemPoolDestroy(pool));
}

EXPORT cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes)
{
    return ASK(driver.cuMemPoolTrimTo(pool, bytes));
}

EXPORT cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, CUmemPool_attribute attribute, void *value)
{
    return ASK(driver.cuMemPoolGetAttribute(pool, attribute, value));
}

EXPORT cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, CUmemPool_attribute attribute, void *value)
{
    return ASK(driver.cuMemPoolSetAttribute(pool, attribute, value));
}

EXPORT cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *access, size_t count)
{
    return ASK(driver.cuMemPoolSetAccess(pool, access, count));
}

EXPORT cudaError_t cudaMemPoolGetAccess(CUmemAccess_flags *flags, cudaMemPool_t pool,
                                        cudaMemLocation *location)
{
    return ASK(driver.cuMemPoolGetAccess(flags, pool, location));
}

EXPORT cudaError_t cudaMemPoolExportToShareableHandle(void *handle, cudaMemPool_t pool,
                                                      CUmemAllocationHandleType type, unsigned int flags)
{
    return ASK(driver.cuMemPoolExportToShareableHandle(handle, pool, type, flags));
}

EXPORT cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *handle,
                                                        CUmemAllocationHandleType type, unsigned int flags)
{
    return ASK(driver.cuMemPoolImportFromShareableHandle(pool, handle, type, flags));
}

EXPORT cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData *data, void *pointer)
{
    return ASK(driver.cuMemPoolExportPointer(data, (CUdeviceptr)pointer));
}

EXPORT cudaError_t cudaMemPoolImportPointer(void **out, cudaMemPool_t pool, cudaMemPoolPtrExportData *data)
{
    return ASK(driver.cuMemPoolImportPointer((CUdeviceptr *)out, pool, data));
}
