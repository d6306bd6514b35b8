/* Virtual memory: handles, mappings, references. */
#include "work.h"

void settle(struct work *work, struct handle *handle)
{
    if (handle->references + handle->mappings > 0)
        return;
    end_block(work, handle->family, handle->booked, false);
    handle->handle = 0;
    if (handle->family == NO_FAMILY)
        multicast_ended(work, (int)(handle - work->handles));
}

struct handle *free_handle(struct work *work)
{
    struct handle *handle = &work->handles[random_below(work, HANDLES)];
    return handle->handle == 0 ? handle : NULL;
}

void create_handle(struct work *work)
{
    CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    struct handle *handle = free_handle(work);
    size_t bytes = random_below(work, 8) ? GRANULE * (1 + random_below(work, 3)) : 12345;
    CUmemGenericAllocationHandle made = 0;
    bool for_tiles = random_below(work, 3) == 0;
    if (handle == NULL)
        return;
    if (for_tiles)
        props.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
    if (note(work, "create", cuMemCreate(&made, bytes, &props, 0), 0) != CUDA_SUCCESS) {
        work->books[VMM].failed++;
        return;
    }
    begin_block(work, VMM, bytes);
    *handle = (struct handle){made, VMM, for_tiles, bytes, bytes, 1, 0};
}

/* Memory of the other process: as large as it is mapped, and 0 before. */
void import_handle(struct work *work)
{
    struct handle *handle = free_handle(work);
    unsigned which = random_below(work, SHARED_HANDLES);
    int file = random_below(work, 8) ? work->offer.handles[which] : -1;
    CUmemGenericAllocationHandle made = 0;
    if (handle == NULL)
        return;
    CUresult rc = cuMemImportFromShareableHandle(&made, (void *)(intptr_t)file,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (note(work, "import", rc, 0) != CUDA_SUCCESS) {
        work->books[IPC].failed++;
        return;
    }
    begin_block(work, IPC, 0);
    *handle = (struct handle){made, IPC, false, work->offer.handle_bytes[which], 0, 1, 0};
}

void map_handle(struct work *work)
{
    int index = (int)random_below(work, HANDLES), slot = (int)random_below(work, SLOTS - 3);
    struct handle *handle = &work->handles[index];
    if (handle->references == 0 || handle->handle == 0 || handle->for_tiles)
        return;
    CUdeviceptr at = work->range + (unsigned)slot * GRANULE;
    CUresult rc = cuMemMap(at, handle->bytes, 0, handle->handle, 0);
    note(work, "map", rc, 0);
    if (rc != CUDA_SUCCESS)
        return;
    handle->mappings++;
    work->slots[slot] = index;
    if (handle->booked == 0) {
        handle->booked = handle->bytes;
        work->books[handle->family].allocated += handle->bytes;
        work->books[handle->family].live += handle->bytes;
    }
}

/* One mapping, or it and what lies right behind it. */
void unmap_slot(struct work *work)
{
    int slot = (int)random_below(work, SLOTS);
    if (work->slots[slot] < 0)
        return;
    unsigned long long bytes = work->handles[work->slots[slot]].bytes;
    int next = slot + (int)(bytes / GRANULE);
    bool both = random_below(work, 3) == 0 && next < SLOTS && work->slots[next] >= 0;
    if (both)
        bytes += work->handles[work->slots[next]].bytes;
    CUresult rc = cuMemUnmap(work->range + (unsigned)slot * GRANULE, bytes);
    note(work, "unmap", rc, 0);
    if (rc != CUDA_SUCCESS)
        return;
    for (int i = slot;; i = next) {
        struct handle *handle = &work->handles[work->slots[i]];
        work->slots[i] = -1;
        handle->mappings--;
        settle(work, handle);
        if (!both || i == next)
            break;
    }
}

void change_references(struct work *work)
{
    struct handle *handle = &work->handles[random_below(work, HANDLES)];
    if (handle->handle == 0)
        return;
    if (random_below(work, 3) == 0 && handle->mappings > 0) {
        CUmemGenericAllocationHandle again = 0;
        for (int slot = 0; slot < SLOTS; slot++) {
            if (work->slots[slot] < 0 || &work->handles[work->slots[slot]] != handle)
                continue;
            CUdeviceptr at = work->range + (unsigned)slot * GRANULE;
            CUresult rc = cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at);
            note_handle(work, "retain", rc, (void *)(uintptr_t)again);
            if (rc == CUDA_SUCCESS && again == handle->handle)
                handle->references++;
            return;
        }
    }
    if (handle->references == 0)
        return;
    if (note(work, "release", cuMemRelease(handle->handle), 0) == CUDA_SUCCESS) {
        handle->references--;
        settle(work, handle);
    }
}
