/* Reserved addresses and what is mapped at them. Copies go to the memory behind, so mapping costs no system
 * call. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "entry.h"
#include "memory.h"
#include "multicast.h"
#include "vmm.h"

static struct slab mapping_slab = {.size = sizeof(struct mapping)};

/* The reservation that an address lies in; not in the part that only aligns it. */
static struct reservation *reservation_at(uint64_t address)
{
    const struct span *span = span_at(address);
    struct reservation *reservation = span ? span->reservation : NULL;
    return reservation && address - reservation->start < reservation->size ? reservation : NULL;
}

struct mapping *mapping_at(uint64_t address)
{
    const struct reservation *reservation = reservation_at(address);
    return reservation ? reservation->mappings[(address - reservation->start) / GRANULE] : NULL;
}

/* ---- reserving ---- */

#define ADDRESSES (4ull << 40) /* set aside for reservations, without access */

/* Addresses for a reservation: at the hint where there is one and it is free, from our own otherwise. */
static struct span *take_addresses(uint64_t size, uint64_t hint, void **room)
{
    static struct window *window;
    for (uint64_t bytes = window_size(ADDRESSES, size); !window && bytes >= GRANULE; bytes /= 2)
        window = window_of_addresses(bytes);
    *room = NULL;
    if (hint) {
        *room = mmap((void *)hint, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (*room == (void *)hint && hint % GRANULE == 0)
            return span_known(hint, size);
        if (*room != MAP_FAILED)
            munmap(*room, size);
        *room = NULL;
    }
    return window ? span_take(window, size) : NULL;
}

static void give_addresses(struct span *span, void *room)
{
    uint64_t size = span->size;
    if (!room) {
        span_give(span);
        return;
    }
    span_forget(span);
    munmap(room, size);
}

static CUresult reserve(CUdeviceptr *out, size_t asked, size_t alignment, CUdeviceptr hint,
                        unsigned long long flags)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (!out || !asked || asked % page || hint % page || flags || (alignment & (alignment - 1)) ||
        asked > UINT64_MAX / 4 || alignment > UINT64_MAX / 4)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t size = round_up(asked, GRANULE), align = alignment > GRANULE ? alignment : GRANULE;
    struct reservation *reservation =
        calloc(1, sizeof *reservation + size / GRANULE * sizeof(struct mapping *));
    /* More than is asked for, so that an aligned part can be used. */
    struct span *span =
        reservation ? take_addresses(size + align - GRANULE, hint % align ? 0 : hint, &reservation->room)
                    : NULL;
    if (!span) {
        free(reservation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    reservation->start = round_up(span->start, align);
    reservation->size = size;
    reservation->asked = asked;
    reservation->span = span;
    span->reservation = reservation;
    *out = reservation->start;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr hint,
                                    unsigned long long flags)
{
    return CALL("cuMemAddressReserve", NEEDS_INIT, reserve(out, size, alignment, hint, flags));
}

static CUresult free_addresses(CUdeviceptr address, size_t size)
{
    struct reservation *reservation = reservation_at(address);
    if (!reservation || reservation->start != address || reservation->asked != size)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t i = 0; i < reservation->size / GRANULE; i++)
        if (reservation->mappings[i])
            return CUDA_ERROR_INVALID_VALUE;
    give_addresses(reservation->span, reservation->room);
    free(reservation);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t size)
{
    return CALL("cuMemAddressFree", NEEDS_INIT, free_addresses(address, size));
}

/* ---- mapping ---- */

/* Whether [address, address + size) lies in one reservation, in whole granules. */
static struct reservation *range_in_reservation(uint64_t address, uint64_t size)
{
    struct reservation *reservation = reservation_at(address);
    if (!reservation || !size || address % GRANULE || size % GRANULE ||
        size > reservation->start + reservation->size - address)
        return NULL;
    return reservation;
}

static void set_mappings(struct reservation *reservation, uint64_t address, uint64_t size,
                         struct mapping *mapping)
{
    uint64_t first = (address - reservation->start) / GRANULE;
    for (uint64_t i = 0; i < size / GRANULE; i++)
        reservation->mappings[first + i] = mapping;
}

static CUresult map(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                    unsigned long long flags)
{
    struct allocation *allocation = allocation_get(handle);
    struct reservation *reservation = range_in_reservation(address, size);
    if (!allocation || !reservation || offset || flags || size > allocation->size)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = address; at < address + size; at += GRANULE)
        if (mapping_at(at))
            return CUDA_ERROR_INVALID_VALUE;
    if (allocation->multicast && !multicast_is_complete(allocation->multicast))
        return CUDA_ERROR_ILLEGAL_STATE; /* a real driver would wait for the others */
    struct mapping *mapping = slab_take(&mapping_slab);
    if (!mapping)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *mapping = (struct mapping){.start = address, .size = size, .allocation = allocation};
    allocation->mappings++;
    set_mappings(reservation, address, size, mapping);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                         unsigned long long flags)
{
    return CALL("cuMemMap", NEEDS_INIT, map(address, size, offset, handle, flags));
}

/* The range may hold several mappings, each as a whole. */
static bool whole_mappings(uint64_t address, uint64_t size)
{
    for (uint64_t at = address; at < address + size;) {
        const struct mapping *mapping = mapping_at(at);
        if (!mapping || mapping->start != at || mapping->size > address + size - at)
            return false;
        at += mapping->size;
    }
    return true;
}

static CUresult unmap(CUdeviceptr address, size_t size)
{
    struct reservation *reservation = range_in_reservation(address, size);
    if (!reservation || !whole_mappings(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = address; at < address + size;) {
        struct mapping *mapping = mapping_at(at);
        set_mappings(reservation, at, mapping->size, NULL);
        at += mapping->size;
        mapping->allocation->mappings--;
        allocation_settle(mapping->allocation);
        slab_give(&mapping_slab, mapping);
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
    return CALL("cuMemUnmap", NEEDS_INIT, unmap(address, size));
}

/* ---- access ---- */

static CUresult check_access(const CUmemAccessDesc *access)
{
    if (access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && access->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    if (access->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        return device_get(access->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    bool host = access->location.type == CU_MEM_LOCATION_TYPE_HOST ||
                access->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    return host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void give_access(struct mapping *mapping, const CUmemAccessDesc *access)
{
    if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        mapping->host_access = access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
        return;
    }
    unsigned bit = 1u << access->location.id;
    mapping->readable &= ~bit;
    mapping->writable &= ~bit;
    if (access->flags & CU_MEM_ACCESS_FLAGS_PROT_READ)
        mapping->readable |= bit;
    if (access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        mapping->writable |= bit;
}

static CUresult set_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count)
{
    if (!access || !count || !range_in_reservation(address, size) || !whole_mappings(address, size))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        CUresult result = check_access(&access[i]);
        if (result != CUDA_SUCCESS)
            return result;
    }
    for (uint64_t at = address; at < address + size;) {
        struct mapping *mapping = mapping_at(at);
        for (size_t i = 0; i < count; i++)
            give_access(mapping, &access[i]);
        at += mapping->size;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count)
{
    return CALL("cuMemSetAccess", NEEDS_INIT, set_access(address, size, access, count));
}

static CUresult get_access(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
    const struct mapping *mapping = mapping_at(address);
    if (!flags || !location || !mapping || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_get(location->id))
        return CUDA_ERROR_INVALID_DEVICE;
    unsigned bit = 1u << location->id;
    *flags = mapping->writable & bit   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : mapping->readable & bit ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                       : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
    return CALL("cuMemGetAccess", NEEDS_INIT, get_access(flags, location, address));
}

/* ---- what an address means ---- */

void *vmm_memory_at(uint64_t address, uint64_t *bytes_left)
{
    const struct mapping *mapping = mapping_at(address);
    if (!mapping || !mapping->readable || mapping->allocation->multicast)
        return NULL;
    struct allocation *allocation = mapping->allocation;
    uint64_t offset = address - mapping->start;
    *bytes_left = mapping->size - offset;
    if (!allocation->span)
        return (char *)allocation->bytes + offset;
    span_touch(allocation->span, allocation->span->start + offset,
               *bytes_left < GRANULE ? *bytes_left : GRANULE);
    return (char *)allocation->span->start + offset;
}

bool vmm_mapping_at(uint64_t address, uint64_t *start, uint64_t *bytes)
{
    const struct mapping *mapping = mapping_at(address);
    if (mapping) {
        *start = mapping->start;
        *bytes = mapping->size;
    }
    return mapping;
}

CUresult vmm_attribute(CUpointer_attribute attribute, uint64_t address, uint64_t *value)
{
    const struct reservation *reservation = reservation_at(address);
    const struct mapping *mapping = mapping_at(address);
    if (!reservation)
        return CUDA_ERROR_INVALID_VALUE;
    *value = 0;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *value = reservation->start;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *value = reservation->asked;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *value = mapping != NULL;
        return CUDA_SUCCESS;
    default:
        break;
    }
    if (!mapping)
        return CUDA_ERROR_INVALID_VALUE;
    const struct allocation *allocation = mapping->allocation;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: /* belongs to none */
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *value = allocation->device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *value = address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *value = (uint64_t)(allocation->device ? allocation->device->ordinal : -1);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *value = allocation->properties.requestedHandleTypes;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *value = mapping->writable   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                 : mapping->readable ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *value = mapping->size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *value = mapping->start;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
