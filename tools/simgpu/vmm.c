/* Allocations of virtual memory management: made, counted, described, ended. */
#include "vmm.h"

#include <sys/mman.h>
#include <unistd.h>

#include "entry.h"
#include "multicast.h"

struct allocation *allocation_get(CUmemGenericAllocationHandle handle)
{
    struct allocation *allocation = handle_get((void *)handle, HANDLE_ALLOCATION);
    return allocation && allocation->handles ? allocation : NULL;
}

struct allocation *allocation_new(uint64_t size, const CUmemAllocationProp *properties)
{
    struct allocation *allocation = handle_new(HANDLE_ALLOCATION, sizeof *allocation, NULL);
    if (!allocation)
        return NULL;
    allocation->size = size;
    allocation->properties = *properties;
    allocation->handles = 1;
    allocation->fd = -1;
    return allocation;
}

void allocation_settle(struct allocation *allocation)
{
    if (allocation->handles || allocation->mappings)
        return;
    if (allocation->multicast)
        multicast_end(allocation->multicast);
    if (allocation->span)
        span_give(allocation->span);
    if (allocation->bytes) {
        munmap(allocation->bytes, allocation->size);
        physical_give(allocation->device, allocation->size / GRANULE);
    }
    if (allocation->fd >= 0)
        close(allocation->fd);
    handle_end(allocation, sizeof *allocation);
}

/* ---- creating ---- */

static CUresult check_properties(const CUmemAllocationProp *properties, struct device **device)
{
    *device = NULL;
    if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    switch (properties->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        *device = device_get(properties->location.id);
        if (!*device)
            return CUDA_ERROR_INVALID_DEVICE;
        break;
    case CU_MEM_LOCATION_TYPE_HOST:
        if (properties->requestedHandleTypes)
            return CUDA_ERROR_INVALID_VALUE;
        break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (properties->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED; /* no fabric here */
    return CUDA_SUCCESS;
}

static CUresult back(struct allocation *allocation)
{
    if (allocation->properties.requestedHandleTypes)
        return share_create(allocation);
    struct device *device = allocation->device;
    allocation->span = span_take(device ? device->window : host_window(), allocation->size);
    return allocation->span ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult create(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *properties,
                       unsigned long long flags)
{
    struct device *device;
    if (!out || !properties || flags || !size || size % GRANULE)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_properties(properties, &device);
    if (result != CUDA_SUCCESS)
        return result;
    struct allocation *allocation = allocation_new(size, properties);
    if (!allocation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    allocation->device = device;
    result = back(allocation);
    if (result == CUDA_SUCCESS)
        *out = (CUmemGenericAllocationHandle)allocation;
    else
        handle_end(allocation, sizeof *allocation);
    return result;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                            const CUmemAllocationProp *properties, unsigned long long flags)
{
    return CALL("cuMemCreate", NEEDS_INIT, create(handle, size, properties, flags));
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
    struct allocation *allocation = allocation_get(handle);
    if (!allocation)
        return CUDA_ERROR_INVALID_VALUE;
    allocation->handles--;
    allocation_settle(allocation);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return CALL("cuMemRelease", NEEDS_INIT, release(handle));
}

static CUresult retain(CUmemGenericAllocationHandle *out, const void *address)
{
    const struct mapping *mapping = mapping_at((uint64_t)address);
    if (!out || !mapping)
        return CUDA_ERROR_INVALID_VALUE;
    mapping->allocation->handles++;
    *out = (CUmemGenericAllocationHandle)mapping->allocation;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    return CALL("cuMemRetainAllocationHandle", NEEDS_INIT, retain(handle, address));
}

/* ---- describing ---- */

static CUresult granularity(size_t *out, const CUmemAllocationProp *properties, unsigned option)
{
    struct device *device;
    if (!out || !properties || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_properties(properties, &device);
    if (result == CUDA_SUCCESS)
        *out = GRANULE;
    return result;
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *properties,
                                              CUmemAllocationGranularity_flags option)
{
    return CALL("cuMemGetAllocationGranularity", NEEDS_INIT, granularity(out, properties, option));
}

static CUresult describe(CUmemAllocationProp *out, CUmemGenericAllocationHandle handle)
{
    const struct allocation *allocation = allocation_get(handle);
    if (!out || !allocation)
        return CUDA_ERROR_INVALID_VALUE;
    *out = allocation->properties;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out,
                                                       CUmemGenericAllocationHandle handle)
{
    return CALL("cuMemGetAllocationPropertiesFromHandle", NEEDS_INIT, describe(out, handle));
}
