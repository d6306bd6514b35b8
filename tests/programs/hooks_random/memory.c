/* Memory with an address: plain, pitched, managed, of the host, of pools; and every free. */
#include "work.h"

void allocate_device(struct work *work)
{
    CUdeviceptr address = 0;
    size_t bytes = random_size(work), pitch = 0;
    CUresult rc;
    switch (random_below(work, 5)) {
    case 0: {
        size_t width = 1 + random_below(work, 3000), height = random_below(work, 40);
        static const unsigned elements[] = {4, 8, 16, 3};
        rc = cuMemAllocPitch_v2(&address, &pitch, width, height, elements[random_below(work, 4)]);
        allocated(work, "pitched", rc, PITCHED, BY_FREE, address, pitch * height);
        note(work, "pitch", rc, rc == CUDA_SUCCESS ? pitch : 0);
        break;
    }
    case 1:
        rc = cuMemAllocManaged(&address, bytes, random_below(work, 4));
        allocated(work, "managed", rc, MANAGED, BY_FREE, address, bytes);
        break;
    case 2:
        if (random_below(work, 16) == 0) {
            note(work, "nowhere", cuMemAlloc_v2(NULL, bytes), 0);
            work->books[PLAIN].failed++;
            break;
        }
        /* fall through */
    default:
        rc = cuMemAlloc_v2(&address, bytes);
        allocated(work, "plain", rc, PLAIN, BY_FREE, address, bytes);
    }
}

void allocate_host(struct work *work)
{
    static const unsigned flags[] = {0, 1, 2, 4, 7, 0x80};
    void *address = NULL;
    size_t bytes = random_size(work);
    if (bytes > (1u << 30))
        bytes = 0;
    CUresult rc;
    switch (random_below(work, 3)) {
    case 0:
        rc = cuMemAllocHost_v2(&address, bytes);
        allocated(work, "pinned", rc, PINNED, BY_FREE_HOST, (uintptr_t)address, bytes);
        break;
    case 1:
        rc = cuMemHostAlloc(&address, bytes, flags[random_below(work, 6)]);
        allocated(work, "host", rc, PINNED, BY_FREE_HOST, (uintptr_t)address, bytes);
        break;
    default:
        address = work->pages + 4096 * random_below(work, 64);
        bytes = 4096 * random_below(work, 4);
        rc = cuMemHostRegister_v2(address, bytes, 0);
        allocated(work, "register", rc, REGISTERED, BY_UNREGISTER, (uintptr_t)address, bytes);
    }
}

void allocate_pool(struct work *work)
{
    CUdeviceptr address = 0;
    size_t bytes = random_size(work);
    CUstream stream = random_below(work, 2) ? work->stream : NULL;
    CUmemoryPool pool = work->pools[random_below(work, POOLS)];
    CUresult rc = random_below(work, 2) && pool != NULL
                      ? cuMemAllocFromPoolAsync(&address, bytes, pool, stream)
                      : cuMemAllocAsync(&address, bytes, stream);
    allocated(work, "pool", rc, POOL, BY_FREE, address, bytes);
}

void change_pools(struct work *work)
{
    CUmemoryPool *pool = &work->pools[random_below(work, POOLS)];
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    if (*pool == NULL) {
        CUresult rc = cuMemPoolCreate(pool, &props);
        note_handle(work, "make a pool", rc, *pool);
    } else if (random_below(work, 3) == 0) {
        note(work, "end a pool", cuMemPoolDestroy(*pool), 0);
        *pool = NULL;
    } else {
        note(work, "trim", cuMemPoolTrimTo(*pool, 0), 0);
    }
}

static CUresult end_by(struct work *work, enum ended_by by, unsigned long long key)
{
    switch (by) {
    case BY_FREE:
        return random_below(work, 4) == 0 && work->depth == 0 ? cuMemFreeAsync(key, work->stream)
                                                              : cuMemFree_v2(key);
    case BY_FREE_HOST:
        return cuMemFreeHost((void *)(uintptr_t)key);
    case BY_UNREGISTER:
        return cuMemHostUnregister((void *)(uintptr_t)key);
    case BY_ARRAY_DESTROY:
        return cuArrayDestroy((CUarray)(uintptr_t)key);
    default:
        return cuMipmappedArrayDestroy((CUmipmappedArray)(uintptr_t)key);
    }
}

void free_something(struct work *work)
{
    if (work->thing_count == 0)
        return;
    int index = (int)random_below(work, (unsigned)work->thing_count);
    struct thing thing = work->things[index];
    if (note(work, "free", end_by(work, thing.by, thing.key), 0) == CUDA_SUCCESS)
        end_thing(work, index, false);
}

/* A free of what nobody has is refused, and foreign; one of nothing is nothing. */
void free_nonsense(struct work *work)
{
    switch (random_below(work, 6)) {
    case 0:
        note(work, "free nothing", cuMemFree_v2(0), 0);
        break;
    case 1:
        note(work, "free nobody's", cuMemFree_v2(0x1000 + work->number), 0);
        work->foreign++;
        break;
    case 2:
        note(work, "free host nobody's", cuMemFreeHost(work->pages + 5), 0);
        work->foreign++;
        break;
    case 3:
        note(work, "unregister nobody's", cuMemHostUnregister(work->pages + 4096 * 200), 0);
        work->foreign++;
        break;
    case 4:
        note(work, "release nobody's", cuMemRelease(0x4000 + work->number), 0);
        work->foreign++;
        break;
    default:
        note(work, "unmap nobody's", cuMemUnmap(0x6000, GRANULE), 0);
    }
}
