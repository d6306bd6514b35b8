/* Questions about memory: how much is free, what an address belongs to. */
#include "entry.h"
#include "memory.h"
#include "physical.h"

#include <string.h>

static CUresult memory_info(size_t *free_bytes, size_t *total_bytes)
{
    const struct device *device = context_current()->device;
    if (!free_bytes || !total_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *free_bytes = (device->memory - physical_used(device)) * GRANULE;
    *total_bytes = device->memory * GRANULE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    return CALL("cuMemGetInfo", NEEDS_CONTEXT | needs_when_asked(), memory_info(free_bytes, total_bytes));
}

static unsigned clamp(size_t bytes)
{
    return bytes > UINT32_MAX ? UINT32_MAX : (unsigned)bytes;
}

EXPORT CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total_bytes)
{
    size_t wide[2] = {0, 0};
    CUresult result = CALL("cuMemGetInfo", NEEDS_CONTEXT,
                           memory_info(free_bytes ? &wide[0] : NULL, total_bytes ? &wide[1] : NULL));
    if (result == CUDA_SUCCESS) {
        *free_bytes = clamp(wide[0]);
        *total_bytes = clamp(wide[1]);
    }
    return result;
}

static CUresult address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    const struct block *block = block_at(address);
    uint64_t start = block ? block->address : 0, size = block ? block->size : 0;
    if (!block && !vmm_mapping_at(address, &start, &size))
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = start;
    if (bytes)
        *bytes = size;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    return CALL("cuMemGetAddressRange", NEEDS_CONTEXT, address_range(base, bytes, address));
}

EXPORT CUresult cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned int *bytes, CUdeviceptr_v1 address)
{
    CUdeviceptr wide_base = 0;
    size_t wide = 0;
    CUresult result = CALL("cuMemGetAddressRange", NEEDS_CONTEXT, address_range(&wide_base, &wide, address));
    if (result == CUDA_SUCCESS && base)
        *base = (CUdeviceptr_v1)wide_base;
    if (result == CUDA_SUCCESS && bytes)
        *bytes = clamp(wide);
    return result;
}

/* ---- attributes of a pointer ---- */

/* Of which type the answer is, in bytes. */
static size_t attribute_size(CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        return sizeof(uint64_t);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return 0;
    default:
        return sizeof(unsigned);
    }
}

static bool host_can_read(const struct block *block)
{
    return block->kind == BLOCK_PINNED || block->kind == BLOCK_REGISTERED || block->kind == BLOCK_MANAGED;
}

static CUresult block_attribute(const struct block *block, CUpointer_attribute attribute, CUdeviceptr address,
                                uint64_t *value)
{
    bool host = block->kind == BLOCK_PINNED || block->kind == BLOCK_REGISTERED;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *value = (uint64_t)block->context;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *value = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *value = address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *value = address;
        return host_can_read(block) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *value = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *value = block->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *value = block->kind == BLOCK_MANAGED;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *value = (uint64_t)(block->device ? block->device->ordinal : -2);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *value = block->kind == BLOCK_PLAIN;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *value = block->address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *value = block->size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *value = 1;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *value = 3; /* read and write */
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *value = (uint64_t)block->pool;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult attribute_of(CUpointer_attribute attribute, CUdeviceptr address, uint64_t *value)
{
    const struct block *block = block_at(address);
    if (block)
        return block_attribute(block, attribute, address, value);
    return vmm_attribute(attribute, address, value);
}

static CUresult pointer_attribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    size_t size = attribute_size(attribute);
    if (!data || !size)
        return data ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    uint64_t value = 0;
    CUresult result = attribute_of(attribute, address, &value);
    if (result == CUDA_SUCCESS)
        memcpy(data, &value, size);
    return result;
}

EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    return CALL("cuPointerGetAttribute", NEEDS_INIT, pointer_attribute(data, attribute, address));
}

/* Never fails for what an address is not: the answers are then 0, and the ordinal -2. */
static CUresult pointer_attributes(unsigned count, const CUpointer_attribute *attributes, void **data,
                                   CUdeviceptr address)
{
    if (!count || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        size_t size = attribute_size(attributes[i]);
        uint64_t value = 0;
        if (!data[i] || attributes[i] < CU_POINTER_ATTRIBUTE_CONTEXT ||
            attributes[i] > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE)
            return CUDA_ERROR_INVALID_VALUE;
        if (attribute_of(attributes[i], address, &value) != CUDA_SUCCESS)
            value = attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? (uint64_t)-2 : 0;
        memcpy(data[i], &value, size);
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data,
                                       CUdeviceptr address)
{
    return CALL("cuPointerGetAttributes", NEEDS_INIT, pointer_attributes(count, attributes, data, address));
}

static CUresult set_attribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !block_at(address))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    return CALL("cuPointerSetAttribute", NEEDS_INIT, set_attribute(value, attribute, address));
}
