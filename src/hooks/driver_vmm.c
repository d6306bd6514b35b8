/*
 * Virtual memory management. The memory behind a handle lives until the last cuMemRelease and the last
 * unmapping of it, so every mapping is a reference, as is every cuMemRetainAllocationHandle. cuMemUnmap names
 * addresses, not handles: which handle is mapped where is remembered here, by the mapping's first address.
 */
#include "base/hash.h"
#include "hooks/call.h"
#include "hooks/tables.h"
#include "hooks/vmm.h"

HOOK(cuMemCreate, (CUmemGenericAllocationHandle * handle, size_t bytes, const CUmemAllocationProp *props,
                   unsigned long long flags))
{
    FORWARD(cuMemCreate);
    CUresult rc = REAL(handle, bytes, props, flags);
    struct allocation allocation = {BLOCK(VMM, DEVICE, HANDLE), .key = GRANTED(*handle), .size = bytes};
    if (props != NULL && props->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
        allocation.device = props->location.id;
    else if (props != NULL)
        allocation.space = SPACE_HOST;
    call_allocated(&call, rc, &allocation);
    return call_end(&call, rc);
}

HOOK(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void *address))
{
    FORWARD(cuMemRetainAllocationHandle);
    CUresult rc = REAL(handle, address);
    if (call.acts && rc == CUDA_SUCCESS)
        vmm_hold(*handle);
    return call_end(&call, rc);
}

HOOK(cuMemRelease, (CUmemGenericAllocationHandle handle))
{
    struct vmm_release release;
    FORWARD(cuMemRelease);
    vmm_release(&call, &release, handle);
    CUresult rc = REAL(handle);
    vmm_released(&call, rc, &release, handle);
    return call_end(&call, rc);
}

struct mapping {
    CUdeviceptr start; /* the key */
    size_t bytes;
    CUmemGenericAllocationHandle handle;
    struct vmm_release release;
    struct mapping *next; /* while it is out of the table */
    UT_hash_handle hh;
};

_Static_assert(sizeof(struct mapping) <= TABLES_ENTRY_MAX, "a mapping fits an entry");

static struct mapping *mappings;

void mappings_forget_all(void)
{
    mappings = NULL;
}

static struct mapping *find_mapping(CUdeviceptr start)
{
    struct mapping *found;
    HASH_FIND(hh, mappings, &start, sizeof start, found);
    return found;
}

static void insert_mapping(struct mapping *mapping)
{
    HASH_ADD(hh, mappings, start, sizeof mapping->start, mapping);
    if (!hash_added(mapping))
        tables_delete(mapping);
}

static void remember_mapping(CUdeviceptr start, size_t bytes, CUmemGenericAllocationHandle handle)
{
    if (!tables_lock())
        return;
    struct mapping *mapping = find_mapping(start);
    if (mapping != NULL) { /* we missed how it went */
        HASH_DEL(mappings, mapping);
        tables_delete(mapping);
    }
    mapping = tables_new();
    if (mapping != NULL) {
        mapping->start = start;
        mapping->bytes = bytes;
        mapping->handle = handle;
        insert_mapping(mapping);
    }
    tables_unlock();
}

HOOK(cuMemMap, (CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                unsigned long long flags))
{
    FORWARD(cuMemMap);
    CUresult rc = REAL(address, bytes, offset, handle, flags);
    if (call.acts && rc == CUDA_SUCCESS) {
        if (vmm_map(handle, bytes))
            record_map(address, bytes, handle);
        remember_mapping(address, bytes, handle);
    }
    return call_end(&call, rc);
}

/* Takes what is mapped in a range out of the table, as a list. A range is one mapping or several side by
 * side. */
static struct mapping *take_mappings(CUdeviceptr address, size_t bytes)
{
    struct mapping *taken = NULL;
    CUdeviceptr at = address, end = address + bytes;
    if (!tables_lock())
        return NULL;
    while (at < end) {
        struct mapping *mapping = find_mapping(at);
        if (mapping == NULL || mapping->bytes == 0 || mapping->bytes > end - at)
            break;
        HASH_DEL(mappings, mapping);
        mapping->next = taken;
        taken = mapping;
        at += mapping->bytes;
    }
    tables_unlock();
    return taken;
}

static void end_mappings(struct mapping *list, bool unmapped)
{
    if (list == NULL || !tables_lock())
        return;
    while (list != NULL) {
        struct mapping *mapping = list;
        list = mapping->next;
        if (unmapped)
            tables_delete(mapping);
        else
            insert_mapping(mapping);
    }
    tables_unlock();
}

HOOK(cuMemUnmap, (CUdeviceptr address, size_t bytes))
{
    FORWARD(cuMemUnmap);
    struct mapping *taken = call.acts ? take_mappings(address, bytes) : NULL;
    for (struct mapping *mapping = taken; mapping != NULL; mapping = mapping->next) {
        record_unmap(mapping->start);
        vmm_release(&call, &mapping->release, mapping->handle);
    }
    CUresult rc = REAL(address, bytes);
    for (struct mapping *mapping = taken; mapping != NULL && rc != CUDA_SUCCESS; mapping = mapping->next) {
        vmm_released(&call, rc, &mapping->release, mapping->handle);
        if (mapping->release.kind != HANDLE_OF_MULTICAST)
            record_map(mapping->start, mapping->bytes, mapping->handle);
    }
    end_mappings(taken, rc == CUDA_SUCCESS);
    return call_end(&call, rc);
}
