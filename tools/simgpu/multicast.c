/* Multicast objects: made, joined by devices, bound to their memory, unbound. */
#include "multicast.h"

#include <stdlib.h>

#include "entry.h"
#include "vmm.h"

struct binding {
    uint64_t offset, size;
    struct allocation *allocation; /* held as by a mapping; NULL: bound by an address of other memory */
    struct device *device;
    struct binding *next;
};

struct multicast {
    CUmulticastObjectProp properties;
    unsigned joined; /* a bit for each device */
    struct binding *bindings;
};

static struct slab binding_slab = {.size = sizeof(struct binding)};

bool multicast_is_complete(const struct multicast *multicast)
{
    return (unsigned)__builtin_popcount(multicast->joined) == multicast->properties.numDevices;
}

static void binding_end(struct binding **link)
{
    struct binding *binding = *link;
    *link = binding->next;
    if (binding->allocation) {
        binding->allocation->mappings--;
        allocation_settle(binding->allocation);
    }
    slab_give(&binding_slab, binding);
}

void multicast_end(struct multicast *multicast)
{
    while (multicast->bindings)
        binding_end(&multicast->bindings);
    free(multicast);
}

static struct multicast *multicast_get(CUmemGenericAllocationHandle handle)
{
    struct allocation *allocation = allocation_get(handle);
    return allocation ? allocation->multicast : NULL;
}

static bool valid(const CUmulticastObjectProp *properties)
{
    return properties && properties->numDevices && properties->numDevices <= (unsigned)device_count &&
           properties->size && properties->size % GRANULE == 0 && !properties->flags &&
           !(properties->handleTypes & ~(unsigned long long)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static CUresult create(CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *properties)
{
    if (!out || !valid(properties))
        return CUDA_ERROR_INVALID_VALUE;
    CUmemAllocationProp none = {.requestedHandleTypes = (CUmemAllocationHandleType)properties->handleTypes};
    struct allocation *allocation = allocation_new(properties->size, &none);
    struct multicast *multicast = allocation ? calloc(1, sizeof *multicast) : NULL;
    if (!multicast) {
        if (allocation)
            handle_end(allocation, sizeof *allocation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    multicast->properties = *properties;
    allocation->multicast = multicast;
    *out = (CUmemGenericAllocationHandle)allocation;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle,
                                  const CUmulticastObjectProp *properties)
{
    return CALL("cuMulticastCreate", NEEDS_INIT, create(handle, properties));
}

static CUresult add_device(CUmemGenericAllocationHandle handle, CUdevice ordinal)
{
    struct multicast *multicast = multicast_get(handle);
    if (!device_get(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!multicast || multicast_is_complete(multicast) || multicast->joined & 1u << ordinal)
        return CUDA_ERROR_INVALID_VALUE;
    multicast->joined |= 1u << ordinal;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device)
{
    return CALL("cuMulticastAddDevice", NEEDS_INIT, add_device(handle, device));
}

static CUresult bind(struct multicast *multicast, uint64_t offset, struct allocation *allocation,
                     struct device *device, uint64_t size)
{
    uint64_t most = multicast->properties.size;
    if (!size || size % GRANULE || offset % GRANULE || offset > most || size > most - offset || !device ||
        !(multicast->joined & 1u << device->ordinal))
        return CUDA_ERROR_INVALID_VALUE;
    if (!multicast_is_complete(multicast))
        return CUDA_ERROR_ILLEGAL_STATE; /* a real driver would wait for the others */
    for (const struct binding *there = multicast->bindings; there; there = there->next)
        if (there->device == device && there->offset < offset + size && offset < there->offset + there->size)
            return CUDA_ERROR_INVALID_VALUE;
    struct binding *binding = slab_take(&binding_slab);
    if (!binding)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *binding = (struct binding){offset, size, allocation, device, multicast->bindings};
    if (allocation)
        allocation->mappings++;
    multicast->bindings = binding;
    return CUDA_SUCCESS;
}

static CUresult bind_memory(CUmemGenericAllocationHandle handle, size_t offset,
                            CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                            unsigned long long flags)
{
    struct multicast *multicast = multicast_get(handle);
    struct allocation *allocation = allocation_get(memory);
    if (!multicast || !allocation || allocation->multicast || flags || memory_offset % GRANULE ||
        memory_offset > allocation->size || size > allocation->size - memory_offset)
        return CUDA_ERROR_INVALID_VALUE;
    return bind(multicast, offset, allocation, allocation->device, size);
}

EXPORT CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
                                   CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                                   unsigned long long flags)
{
    return CALL("cuMulticastBindMem", NEEDS_INIT,
                bind_memory(handle, offset, memory, memory_offset, size, flags));
}

static CUresult bind_address(CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr address,
                             size_t size, unsigned long long flags)
{
    struct multicast *multicast = multicast_get(handle);
    const struct mapping *mapping = mapping_at(address);
    const struct block *block = block_at(address);
    if (!multicast || flags || address % GRANULE)
        return CUDA_ERROR_INVALID_VALUE;
    if (mapping && size <= mapping->start + mapping->size - address)
        return bind(multicast, offset, mapping->allocation, mapping->allocation->device, size);
    if (block && block->kind == BLOCK_POOL && size <= block->address + block->size - address)
        return bind(multicast, offset, NULL, block->device, size);
    return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr address,
                                    size_t size, unsigned long long flags)
{
    return CALL("cuMulticastBindAddr", NEEDS_INIT, bind_address(handle, offset, address, size, flags));
}

static CUresult unbind(CUmemGenericAllocationHandle handle, CUdevice ordinal, size_t offset, size_t size)
{
    struct multicast *multicast = multicast_get(handle);
    struct device *device = device_get(ordinal);
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    for (struct binding **link = multicast ? &multicast->bindings : NULL; link && *link;
         link = &(*link)->next)
        if ((*link)->device == device && (*link)->offset == offset && (*link)->size == size) {
            binding_end(link);
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset,
                                  size_t size)
{
    return CALL("cuMulticastUnbind", NEEDS_INIT, unbind(handle, device, offset, size));
}

static CUresult granularity(size_t *out, const CUmulticastObjectProp *properties, unsigned option)
{
    if (!out || !properties || option > CU_MULTICAST_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    *out = GRANULE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMulticastGetGranularity(size_t *out, const CUmulticastObjectProp *properties,
                                          CUmulticastGranularity_flags option)
{
    return CALL("cuMulticastGetGranularity", NEEDS_INIT, granularity(out, properties, option));
}
