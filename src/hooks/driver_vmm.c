/*
 * Virtual memory management. The memory behind a handle lives until the last cuMemRelease and the last
 * unmapping of it, so every mapping is a reference, as is every cuMemRetainAllocationHandle. cuMemUnmap names
 * addresses, not handles: which handle is mapped where is remembered here, by the mapping's first address.
 *
 * Two kinds of handle need remembering too: a multicast object is handled like memory and is none; and of
 * imported memory the size is not known before it is mapped.
 */
#include "base/hash.h"
#include "hooks/call.h"
#include "hooks/tables.h"
#include "hooks/vmm.h"

enum handle_kind { HANDLE_OF_MEMORY, HANDLE_OF_MULTICAST, HANDLE_WITHOUT_SIZE };

/* Of the latter two kinds only. */
struct special_handle {
    CUmemGenericAllocationHandle handle; /* the key */
    enum handle_kind kind;
    int references;
    UT_hash_handle hh;
};

static struct special_handle *special_handles;

static struct special_handle *find_special(CUmemGenericAllocationHandle handle)
{
    struct special_handle *found;
    HASH_FIND(hh, special_handles, &handle, sizeof handle, found);
    return found;
}

/* A handle gains or loses a reference. Tells what kind it was. */
static enum handle_kind count_reference(CUmemGenericAllocationHandle handle, int by)
{
    enum handle_kind kind = HANDLE_OF_MEMORY;
    if (!tables_lock())
        return kind;
    struct special_handle *special = find_special(handle);
    if (special != NULL) {
        kind = special->kind;
        special->references += by;
        if (special->references <= 0) {
            HASH_DEL(special_handles, special);
            tables_delete(special);
        }
    }
    tables_unlock();
    return kind;
}

/* One reference to a special handle, its first or one more. */
static void add_reference(CUmemGenericAllocationHandle handle, enum handle_kind kind)
{
    if (!tables_lock())
        return;
    struct special_handle *special = find_special(handle);
    if (special != NULL) {
        special->references++;
    } else if ((special = tables_new()) != NULL) {
        special->handle = handle;
        special->kind = kind;
        special->references = 1;
        HASH_ADD(hh, special_handles, handle, sizeof special->handle, special);
        if (!hash_added(special))
            tables_delete(special);
    }
    tables_unlock();
}

static void forget_special(CUmemGenericAllocationHandle handle)
{
    if (!tables_lock())
        return;
    struct special_handle *special = find_special(handle);
    if (special != NULL) {
        HASH_DEL(special_handles, special);
        tables_delete(special);
    }
    tables_unlock();
}

void vmm_imported(CUmemGenericAllocationHandle handle)
{
    forget_special(handle); /* one whose end we missed */
    add_reference(handle, HANDLE_WITHOUT_SIZE);
}

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

HOOK(cuMulticastCreate, (CUmemGenericAllocationHandle * handle, const CUmulticastObjectProp *props))
{
    FORWARD(cuMulticastCreate);
    CUresult rc = REAL(handle, props);
    if (call.acts && rc == CUDA_SUCCESS) {
        forget_special(*handle);
        add_reference(*handle, HANDLE_OF_MULTICAST);
    }
    return call_end(&call, rc);
}

static void retained(const struct call *call, CUresult rc, CUmemGenericAllocationHandle handle)
{
    if (call->acts && rc == CUDA_SUCCESS && count_reference(handle, 1) != HANDLE_OF_MULTICAST)
        record_retain(KEY_HANDLE, handle);
}

HOOK(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void *address))
{
    FORWARD(cuMemRetainAllocationHandle);
    CUresult rc = REAL(handle, address);
    retained(&call, rc, GRANTED(*handle));
    return call_end(&call, rc);
}

/* One reference less, before the real call; and taken back when that is refused. */
struct releasing {
    enum handle_kind kind;
    struct freeing freeing;
};

static void release(struct call *call, struct releasing *releasing, CUmemGenericAllocationHandle handle)
{
    *releasing = (struct releasing){HANDLE_OF_MEMORY, {0}};
    if (!call->acts)
        return;
    releasing->kind = count_reference(handle, -1);
    if (releasing->kind != HANDLE_OF_MULTICAST)
        call_free(call, &releasing->freeing, KEY_HANDLE, handle);
}

static void released(struct call *call, CUresult rc, const struct releasing *releasing,
                     CUmemGenericAllocationHandle handle)
{
    call_freed(call, rc, &releasing->freeing);
    if (rc != CUDA_SUCCESS && releasing->kind != HANDLE_OF_MEMORY)
        add_reference(handle, releasing->kind);
}

HOOK(cuMemRelease, (CUmemGenericAllocationHandle handle))
{
    struct releasing releasing;
    FORWARD(cuMemRelease);
    release(&call, &releasing, handle);
    CUresult rc = REAL(handle);
    released(&call, rc, &releasing, handle);
    return call_end(&call, rc);
}

struct mapping {
    CUdeviceptr start; /* the key */
    size_t bytes;
    CUmemGenericAllocationHandle handle;
    struct releasing releasing;
    struct mapping *next; /* while it is out of the table */
    UT_hash_handle hh;
};

_Static_assert(sizeof(struct mapping) <= TABLES_ENTRY_MAX, "a mapping fits an entry");

static struct mapping *mappings;

void vmm_forget_all(void)
{
    mappings = NULL;
    special_handles = NULL;
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
        enum handle_kind kind = count_reference(handle, 1);
        if (kind == HANDLE_WITHOUT_SIZE) {
            forget_special(handle);
            record_size(handle, bytes);
        }
        if (kind != HANDLE_OF_MULTICAST) {
            record_retain(KEY_HANDLE, handle);
            record_map(address, bytes, handle);
        }
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
        release(&call, &mapping->releasing, mapping->handle);
    }
    CUresult rc = REAL(address, bytes);
    for (struct mapping *mapping = taken; mapping != NULL && rc != CUDA_SUCCESS; mapping = mapping->next) {
        released(&call, rc, &mapping->releasing, mapping->handle);
        if (mapping->releasing.kind != HANDLE_OF_MULTICAST)
            record_map(mapping->start, mapping->bytes, mapping->handle);
    }
    end_mappings(taken, rc == CUDA_SUCCESS);
    return call_end(&call, rc);
}
