/* Virtual memory: handles, mappings, references. */
#include "work.h"

static void settle(struct work *work, struct handle *handle)
{
    if (handle->references + handle->mappings > 0)
        return;
    end_block(work, VMM, handle->bytes, false);
    handle->handle = 0;
}

void create_handle(struct work *work)
{
    CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    unsigned index = random_below(work, HANDLES);
    struct handle *handle = &work->handles[index];
    size_t bytes = random_below(work, 8) ? GRANULE * (1 + random_below(work, 3)) : 12345;
    if (handle->handle != 0)
        return;
    CUresult rc = cuMemCreate(&handle->handle, bytes, &props, 0);
    allocated(work, "create", rc, VMM, BY_FREE, handle->handle, bytes);
    if (rc == CUDA_SUCCESS)
        *handle = (struct handle){handle->handle, bytes, 1, 0};
    else
        handle->handle = 0;
}

void map_handle(struct work *work)
{
    int index = (int)random_below(work, HANDLES), slot = (int)random_below(work, SLOTS - 3);
    struct handle *handle = &work->handles[index];
    if (handle->references == 0 || handle->handle == 0)
        return;
    CUdeviceptr at = work->range + (unsigned)slot * GRANULE;
    CUresult rc = cuMemMap(at, handle->bytes, 0, handle->handle, 0);
    note(work, "map", rc, 0);
    if (rc != CUDA_SUCCESS)
        return;
    handle->mappings++;
    work->slots[slot] = index;
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
