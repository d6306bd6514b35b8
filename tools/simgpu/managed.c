/* Advice about managed memory and moving it: remembered, so that questions get the answers a driver gives. */
#include <stdlib.h>

#include "entry.h"
#include "stream.h"

#define NOWHERE CU_DEVICE_INVALID

struct advice { /* of a whole allocation; block->owner */
    bool read_mostly;
    int preferred, prefetched; /* a device, CU_DEVICE_CPU or NOWHERE */
    unsigned accessed_by;
};

static void advice_end(struct block *block)
{
    free(block->owner);
}

/* The managed block that holds the whole range; NULL when there is none. */
static struct block *managed_range(CUdeviceptr address, size_t bytes)
{
    struct block *block = block_at(address);
    bool whole = block && bytes && bytes <= block->address + block->size - address;
    return whole && block->kind == BLOCK_MANAGED ? block : NULL;
}

static struct advice *advice_of(struct block *block)
{
    if (!block->owner) {
        struct advice *advice = calloc(1, sizeof *advice);
        if (advice)
            advice->preferred = advice->prefetched = NOWHERE;
        block->owner = advice;
        block->on_end = advice_end;
    }
    return block->owner;
}

/* A location as a device number; false when it is none. */
static bool place_of(const CUmemLocation *location, int *place)
{
    switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        *place = location->id;
        return device_get(location->id);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        *place = CU_DEVICE_CPU;
        return true;
    default:
        return false;
    }
}

static CUmemLocation location_of(CUdevice device)
{
    bool cpu = device == CU_DEVICE_CPU;
    return (CUmemLocation){cpu ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE, cpu ? 0 : device};
}

/* ---- advice ---- */

static CUresult advise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location)
{
    struct block *block = managed_range(address, bytes);
    struct advice *kept = block ? advice_of(block) : NULL;
    int place = NOWHERE;
    bool placed = place_of(&location, &place);
    if (!block || (!placed && advice >= CU_MEM_ADVISE_SET_PREFERRED_LOCATION &&
                   advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION))
        return CUDA_ERROR_INVALID_VALUE;
    if (!kept)
        return CUDA_ERROR_OUT_OF_MEMORY;
    switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
        kept->read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        kept->preferred = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ? place : NOWHERE;
        return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
        if (place >= 0 && advice == CU_MEM_ADVISE_SET_ACCESSED_BY)
            kept->accessed_by |= 1u << place;
        else if (place >= 0)
            kept->accessed_by &= ~(1u << place);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location)
{
    return CALL("cuMemAdvise", NEEDS_CONTEXT, advise(address, bytes, advice, location));
}

EXPORT CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device)
{
    return CALL("cuMemAdvise", NEEDS_CONTEXT, advise(address, bytes, advice, location_of(device)));
}

/* ---- moving ---- */

static CUresult prefetch(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags,
                         CUstream handle)
{
    struct stream *stream;
    struct block *block = managed_range(address, bytes);
    int place;
    if (!block || flags || !place_of(&location, &place))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = stream_for_work(handle, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct advice *kept = advice_of(block);
    if (!kept)
        return CUDA_ERROR_OUT_OF_MEMORY;
    kept->prefetched = place;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location,
                                      unsigned int flags, CUstream stream)
{
    return CALL("cuMemPrefetchAsync", NEEDS_CONTEXT, prefetch(address, bytes, location, flags, stream));
}

EXPORT CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr address, size_t bytes, CUmemLocation location,
                                           unsigned int flags, CUstream stream)
{
    return cuMemPrefetchAsync_v2(address, bytes, location, flags, per_thread(stream));
}

EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)
{
    return CALL("cuMemPrefetchAsync", NEEDS_CONTEXT,
                prefetch(address, bytes, location_of(device), 0, stream));
}

EXPORT CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)
{
    return cuMemPrefetchAsync(address, bytes, device, per_thread(stream));
}

/* Several ranges at once; each location holds for the ranges from its index on. */
static CUresult prefetch_batch(const CUdeviceptr *addresses, const size_t *sizes, size_t count,
                               const CUmemLocation *locations, const size_t *indices, size_t location_count,
                               unsigned long long flags, CUstream stream)
{
    if (!addresses || !sizes || !count || !locations || !indices || !location_count || indices[0] || flags)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0, at = 0; result == CUDA_SUCCESS && i < count; i++) {
        if (at + 1 < location_count && indices[at + 1] <= i)
            at++;
        result = prefetch(addresses[i], sizes[i], locations[at], 0, stream);
    }
    return result;
}

EXPORT CUresult cuMemPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count,
                                        CUmemLocation *locations, size_t *indices, size_t location_count,
                                        unsigned long long flags, CUstream stream)
{
    return CALL("cuMemPrefetchBatchAsync", NEEDS_CONTEXT,
                prefetch_batch(addresses, sizes, count, locations, indices, location_count, flags, stream));
}

EXPORT CUresult cuMemPrefetchBatchAsync_ptsz(CUdeviceptr *addresses, size_t *sizes, size_t count,
                                             CUmemLocation *locations, size_t *indices, size_t location_count,
                                             unsigned long long flags, CUstream stream)
{
    return cuMemPrefetchBatchAsync(addresses, sizes, count, locations, indices, location_count, flags,
                                   per_thread(stream));
}

/* ---- questions ---- */

static CUresult write_accessed_by(int *out, size_t count, unsigned accessed_by)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = accessed_by ? __builtin_ctz(accessed_by) : NOWHERE;
        accessed_by &= accessed_by - 1;
    }
    return CUDA_SUCCESS;
}

enum { READ_MOSTLY = 1, PREFERRED = 2, ACCESSED_BY = 3, LAST_PREFETCH = 4 }; /* CUmem_range_attribute */

static CUresult range_attribute(void *out, size_t size, int attribute, CUdeviceptr address, size_t bytes)
{
    const struct block *block = managed_range(address, bytes);
    static const struct advice none = {.preferred = NOWHERE, .prefetched = NOWHERE};
    const struct advice *kept = block && block->owner ? block->owner : &none;
    if (!block || !out || !size || size % sizeof(int) || (attribute != ACCESSED_BY && size != sizeof(int)))
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case READ_MOSTLY:
        *(int *)out = kept->read_mostly;
        return CUDA_SUCCESS;
    case PREFERRED:
        *(int *)out = kept->preferred;
        return CUDA_SUCCESS;
    case ACCESSED_BY:
        return write_accessed_by(out, size / sizeof(int), kept->accessed_by);
    case LAST_PREFETCH:
        *(int *)out = kept->prefetched;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

EXPORT CUresult cuMemRangeGetAttribute(void *out, size_t size, int attribute, CUdeviceptr address,
                                       size_t bytes)
{
    return CALL("cuMemRangeGetAttribute", NEEDS_CONTEXT,
                range_attribute(out, size, attribute, address, bytes));
}

static CUresult range_attributes(void **out, const size_t *sizes, const int *attributes, size_t count,
                                 CUdeviceptr address, size_t bytes)
{
    if (!out || !sizes || !attributes || !count)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++)
        result = range_attribute(out[i], sizes[i], attributes[i], address, bytes);
    return result;
}

EXPORT CUresult cuMemRangeGetAttributes(void **out, size_t *sizes, int *attributes, size_t count,
                                        CUdeviceptr address, size_t bytes)
{
    return CALL("cuMemRangeGetAttributes", NEEDS_CONTEXT,
                range_attributes(out, sizes, attributes, count, address, bytes));
}
