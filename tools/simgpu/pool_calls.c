/* The driver's functions for pools, and allocating and freeing on a stream. */
#include "entry.h"
#include "graph.h"
#include "memory.h"
#include "pool.h"
#include "stream.h"

static struct pool *pool_get(CUmemoryPool handle)
{
    struct pool *pool = handle_get(handle, HANDLE_POOL);
    return pool && !pool->destroyed ? pool : NULL;
}

static struct pool *pool_current(struct device *device)
{
    return device->current_pool ? device->current_pool : pool_default(device);
}

/* ---- allocating and freeing ---- */

static CUresult allocate_from(CUdeviceptr *out, size_t bytes, struct pool *pool, CUstream handle)
{
    struct stream *stream;
    if (!out || !bytes || !pool || pool->imported)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = stream_for_work(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture)
        return graph_capture_allocation(stream, &pool->properties, bytes, out);
    struct block *block = pool_take(pool, bytes);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = block->address;
    return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *out, size_t bytes, CUstream handle)
{
    struct stream *stream;
    CUresult result = stream_get(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct pool *pool = pool_current(stream->context->device);
    return pool ? allocate_from(out, bytes, pool, handle) : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream)
{
    return CALL("cuMemAllocAsync", NEEDS_CONTEXT, allocate(out, bytes, stream));
}

EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t bytes, CUstream stream)
{
    return cuMemAllocAsync(out, bytes, per_thread(stream));
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    return CALL("cuMemAllocFromPoolAsync", NEEDS_CONTEXT, allocate_from(out, bytes, pool_get(pool), stream));
}

EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
                                             CUstream stream)
{
    return cuMemAllocFromPoolAsync(out, bytes, pool, per_thread(stream));
}

static CUresult free_on(CUdeviceptr address, CUstream handle)
{
    struct stream *stream;
    CUresult result = address ? stream_for_work(handle, &stream) : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    return stream->capture ? graph_capture_free(stream, address) : plain_free(address);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    return CALL("cuMemFreeAsync", NEEDS_CONTEXT, free_on(address, stream));
}

EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream)
{
    return cuMemFreeAsync(address, per_thread(stream));
}

/* ---- making and ending pools ---- */

/* Where a pool with these properties takes its memory; an error for those that no pool can have. */
static CUresult source_of(const CUmemPoolProps *properties, struct window **source, struct device **device)
{
    bool managed = properties->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
    *device = NULL;
    if (!managed && properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (properties->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    switch (properties->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        *device = device_get(properties->location.id);
        if (!*device)
            return CUDA_ERROR_INVALID_VALUE;
        *source = managed ? managed_window() : (*device)->window;
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_INVALID: /* a managed pool may have no preferred location */
        *source = managed_window();
        return managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        *source = managed ? managed_window() : host_window();
        return properties->handleTypes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult create(CUmemoryPool *out, const CUmemPoolProps *properties)
{
    struct window *source;
    struct device *device;
    if (!out || !properties)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = source_of(properties, &source, &device);
    if (result != CUDA_SUCCESS)
        return result;
    bool shared = properties->handleTypes && device;
    if (shared)
        source = window_new(round_up(device->memory * GRANULE * 2, GRANULE), device, true);
    struct pool *pool = pool_new(properties, source, device);
    if (!pool) {
        if (shared && source)
            window_end(source);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pool->own_source = shared;
    *out = (CUmemoryPool)pool;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    return CALL("cuMemPoolCreate", NEEDS_INIT, create(pool, properties));
}

static CUresult destroy(CUmemoryPool handle)
{
    struct pool *pool = pool_get(handle);
    if (!pool || (pool->device && pool == pool->device->default_pool))
        return CUDA_ERROR_INVALID_VALUE;
    pool_destroy(pool);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    return CALL("cuMemPoolDestroy", NEEDS_INIT, destroy(pool));
}

static CUresult trim(CUmemoryPool handle, size_t keep)
{
    struct pool *pool = pool_get(handle);
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    pool_trim(pool, keep);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    return CALL("cuMemPoolTrimTo", NEEDS_INIT, trim(pool, keep));
}

/* ---- a device's pools ---- */

static CUresult device_pool(CUmemoryPool *out, CUdevice ordinal, bool current)
{
    struct device *device = device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUmemoryPool)(current ? pool_current(device) : pool_default(device));
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
    return CALL("cuDeviceGetDefaultMemPool", NEEDS_INIT, device_pool(pool, device, false));
}

EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
    return CALL("cuDeviceGetMemPool", NEEDS_INIT, device_pool(pool, device, true));
}

static CUresult set_device_pool(CUdevice ordinal, CUmemoryPool handle)
{
    struct device *device = device_get(ordinal);
    struct pool *pool = pool_get(handle);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!pool || pool->device != device || pool->imported)
        return CUDA_ERROR_INVALID_VALUE;
    device->current_pool = pool;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    return CALL("cuDeviceSetMemPool", NEEDS_INIT, set_device_pool(device, pool));
}

/* The same by location, since CUDA 13; only device memory has pools of its own here. */
static CUresult device_of_location(const CUmemLocation *location, CUmemAllocationType type, CUdevice *device)
{
    if (!location || (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED))
        return CUDA_ERROR_INVALID_VALUE;
    if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_NOT_SUPPORTED;
    *device = location->id;
    return CUDA_SUCCESS;
}

static CUresult location_pool(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type,
                              bool current)
{
    CUdevice device;
    CUresult result = device_of_location(location, type, &device);
    return result == CUDA_SUCCESS ? device_pool(out, device, current) : result;
}

EXPORT CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    return CALL("cuMemGetDefaultMemPool", NEEDS_INIT, location_pool(pool, location, type, false));
}

EXPORT CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    return CALL("cuMemGetMemPool", NEEDS_INIT, location_pool(pool, location, type, true));
}

static CUresult set_location_pool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    CUdevice device;
    CUresult result = device_of_location(location, type, &device);
    return result == CUDA_SUCCESS ? set_device_pool(device, pool) : result;
}

EXPORT CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    return CALL("cuMemSetMemPool", NEEDS_INIT, set_location_pool(location, type, pool));
}

/* ---- attributes and access ---- */

static CUresult get_attribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    const struct pool *pool = pool_get(handle);
    if (!pool || !value)
        return CUDA_ERROR_INVALID_VALUE;
    const uint64_t bytes[] = {pool->threshold, pool->reserved, pool->reserved_high, pool->used,
                              pool->used_high};
    if (attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
        attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
        *(int *)value = pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
    else if (attribute >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD && attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        *(uint64_t *)value = bytes[attribute - CU_MEMPOOL_ATTR_RELEASE_THRESHOLD];
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    return CALL("cuMemPoolGetAttribute", NEEDS_INIT | needs_when_asked(),
                get_attribute(pool, attribute, value));
}

/* The two high-water marks can only be set to 0, which starts them again from what is now. */
static CUresult set_attribute(CUmemoryPool handle, CUmemPool_attribute attribute, const void *value)
{
    struct pool *pool = pool_get(handle);
    if (!pool || !value)
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(const int *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        pool->threshold = *(const uint64_t *)value;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(const uint64_t *)value)
            return CUDA_ERROR_INVALID_VALUE;
        if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
            pool->reserved_high = pool->reserved;
        else
            pool->used_high = pool->used;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
    return CALL("cuMemPoolSetAttribute", NEEDS_INIT, set_attribute(pool, attribute, value));
}

static CUresult set_access(CUmemoryPool handle, const CUmemAccessDesc *access, size_t count)
{
    struct pool *pool = pool_get(handle);
    if (!pool || (count && !access))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !device_get(access[i].location.id))
            return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        unsigned bit = 1u << access[i].location.id;
        bool own = pool->device && pool->device->ordinal == access[i].location.id;
        if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            pool->peers |= bit;
        else if (!own && access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
            pool->peers &= ~bit;
        else
            return CUDA_ERROR_INVALID_VALUE; /* its own device keeps access, and reading alone is none */
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
    return CALL("cuMemPoolSetAccess", NEEDS_INIT, set_access(pool, access, count));
}

static CUresult get_access(CUmemAccess_flags *flags, CUmemoryPool handle, const CUmemLocation *location)
{
    const struct pool *pool = pool_get(handle);
    if (!pool || !flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
        !device_get(location->id))
        return CUDA_ERROR_INVALID_VALUE;
    bool allowed = pool->peers & 1u << location->id;
    *flags = allowed ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
    return CALL("cuMemPoolGetAccess", NEEDS_INIT, get_access(flags, pool, location));
}
