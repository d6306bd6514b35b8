/*
 * Stream-ordered memory: from a device's current pool, from a pool of the program's, or, on a stream that is
 * being captured, from the graph that the capture makes.
 *
 * A pool tells where its memory lies. Where a pool is known it is remembered; of others the driver is asked
 * by the first address that comes from them.
 */
#include "base/hash.h"
#include "hooks/ask.h"
#include "hooks/call.h"
#include "hooks/graphs.h"
#include "hooks/pool_samples.h"
#include "hooks/tables.h"

struct pool_place {
    enum space_kind space;
    int device;
};

struct known_pool {
    CUmemoryPool handle;
    struct pool_place place;
    UT_hash_handle hh;
};

_Static_assert(sizeof(struct known_pool) <= TABLES_ENTRY_MAX, "a pool fits an entry");

static struct known_pool *pools;

void pools_forget_all(void)
{
    pools = NULL;
    pool_samples_forget_all();
}

static bool find_pool(CUmemoryPool handle, struct pool_place *place)
{
    struct known_pool *known = NULL;
    if (!tables_lock())
        return false;
    HASH_FIND_PTR(pools, &handle, known);
    if (known != NULL)
        *place = known->place;
    tables_unlock();
    return known != NULL;
}

static void forget_pool(CUmemoryPool handle)
{
    struct known_pool *known;
    if (!tables_lock())
        return;
    HASH_FIND_PTR(pools, &handle, known);
    if (known != NULL) {
        HASH_DEL(pools, known);
        tables_delete(known);
    }
    tables_unlock();
}

static void remember_pool(CUmemoryPool handle, struct pool_place place)
{
    forget_pool(handle);
    if (!tables_lock())
        return;
    struct known_pool *known = tables_new();
    if (known != NULL) {
        known->handle = handle;
        known->place = place;
        HASH_ADD_PTR(pools, handle, known);
        if (!hash_added(known))
            tables_delete(known);
    }
    tables_unlock();
}

static struct pool_place place_of_props(const CUmemPoolProps *props)
{
    bool on_device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    int device = on_device ? props->location.id : DEVICE_UNKNOWN;
    if (props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED)
        return (struct pool_place){SPACE_MANAGED, device};
    return on_device ? (struct pool_place){SPACE_DEVICE, device} : (struct pool_place){SPACE_HOST, -1};
}

static struct pool_place place_of_address(CUdeviceptr address)
{
    struct pool_place place = {SPACE_DEVICE, DEVICE_UNKNOWN};
    unsigned managed = 0, type = CU_MEMORYTYPE_DEVICE;
    int device;
    if (ask_cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) == CUDA_SUCCESS)
        place.device = device;
    if (ask_cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS &&
        managed)
        place.space = SPACE_MANAGED;
    else if (ask_cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS &&
             type == CU_MEMORYTYPE_HOST)
        place.space = SPACE_HOST;
    return place;
}

/* The pool behind cuMemAllocAsync is that of the stream's device, which for the default streams is the
 * current one. */
static struct pool_place place_on_stream(CUstream stream, CUresult rc, CUdeviceptr address)
{
    struct pool_place place = {SPACE_DEVICE, DEVICE_UNKNOWN};
    int device;
    bool is_default = stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
    if (rc == CUDA_SUCCESS && !is_default &&
        ask_cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) == CUDA_SUCCESS)
        place.device = device;
    return place;
}

static struct pool_place place_in_pool(CUmemoryPool pool, CUresult rc, CUdeviceptr address)
{
    struct pool_place place = {SPACE_DEVICE, DEVICE_UNKNOWN};
    if (find_pool(pool, &place) || rc != CUDA_SUCCESS)
        return place;
    place = place_of_address(address);
    if (place.device != DEVICE_UNKNOWN || place.space == SPACE_HOST)
        remember_pool(pool, place);
    return place;
}

/* A captured allocation is a node of the graph, and holds memory when that is launched. */
static void allocated(struct call *call, CUresult rc, CUstream stream, uint64_t key, size_t bytes,
                      struct pool_place place)
{
    struct allocation allocation = {BLOCK(POOL, DEVICE, ADDRESS), .key = key, .size = bytes};
    allocation.space = place.space;
    allocation.device = place.device;
    if (call->acts && rc == CUDA_SUCCESS && graph_captured(stream, key, bytes, place.device)) {
        allocation.family = FAMILY_GRAPH;
        allocation.space = SPACE_GRAPH;
        allocation.key_space = KEY_GRAPH;
    }
    call_allocated(call, rc, &allocation);
}

/* Stream 0 of a _ptsz variant is the thread's own. */
static CUstream per_thread(CUstream stream)
{
    return stream == NULL ? CU_STREAM_PER_THREAD : stream;
}

static void allocated_async(struct call *call, CUresult rc, const CUdeviceptr *address, size_t bytes,
                            CUstream stream)
{
    uint64_t key = GRANTED(*address);
    if (!call->acts)
        return;
    struct pool_place place = place_on_stream(stream, rc, key);
    allocated(call, rc, stream, key, bytes, place);
    if (rc == CUDA_SUCCESS)
        pool_samples_watch_current(place.device == DEVICE_UNKNOWN ? place_current_device() : place.device);
}

HOOK(cuMemAllocAsync, (CUdeviceptr * address, size_t bytes, CUstream stream))
{
    FORWARD(cuMemAllocAsync);
    CUresult rc = REAL(address, bytes, stream);
    allocated_async(&call, rc, address, bytes, stream);
    return call_end(&call, rc);
}

HOOK(cuMemAllocAsync_ptsz, (CUdeviceptr * address, size_t bytes, CUstream stream))
{
    FORWARD(cuMemAllocAsync_ptsz);
    CUresult rc = REAL(address, bytes, stream);
    allocated_async(&call, rc, address, bytes, per_thread(stream));
    return call_end(&call, rc);
}

static void allocated_from(struct call *call, CUresult rc, const CUdeviceptr *address, size_t bytes,
                           CUmemoryPool pool, CUstream stream)
{
    uint64_t key = GRANTED(*address);
    if (!call->acts)
        return;
    struct pool_place place = place_in_pool(pool, rc, key);
    allocated(call, rc, stream, key, bytes, place);
    if (rc == CUDA_SUCCESS)
        pool_samples_watch(pool, place.device);
}

HOOK(cuMemAllocFromPoolAsync, (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream))
{
    FORWARD(cuMemAllocFromPoolAsync);
    CUresult rc = REAL(address, bytes, pool, stream);
    allocated_from(&call, rc, address, bytes, pool, stream);
    return call_end(&call, rc);
}

HOOK(cuMemAllocFromPoolAsync_ptsz, (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream))
{
    FORWARD(cuMemAllocFromPoolAsync_ptsz);
    CUresult rc = REAL(address, bytes, pool, stream);
    allocated_from(&call, rc, address, bytes, pool, per_thread(stream));
    return call_end(&call, rc);
}

HOOK(cuMemFreeAsync, (CUdeviceptr address, CUstream stream))
{
    struct freeing freeing;
    FORWARD(cuMemFreeAsync);
    call_free_on_stream(&call, &freeing, address, stream);
    CUresult rc = REAL(address, stream);
    call_freed_address(&call, rc, &freeing, address);
    return call_end(&call, rc);
}

HOOK(cuMemFreeAsync_ptsz, (CUdeviceptr address, CUstream stream))
{
    struct freeing freeing;
    FORWARD(cuMemFreeAsync_ptsz);
    call_free_on_stream(&call, &freeing, address, per_thread(stream));
    CUresult rc = REAL(address, stream);
    call_freed_address(&call, rc, &freeing, address);
    return call_end(&call, rc);
}

HOOK(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *props))
{
    FORWARD(cuMemPoolCreate);
    CUresult rc = REAL(pool, props);
    if (call.acts && rc == CUDA_SUCCESS)
        remember_pool(*pool, place_of_props(props));
    return call_end(&call, rc);
}

/* Blocks that are alive stay so: the pool goes when the last of them is freed. What is unused goes now. */
HOOK(cuMemPoolDestroy, (CUmemoryPool pool))
{
    int device = DEVICE_UNKNOWN;
    uint64_t used = 0;
    FORWARD(cuMemPoolDestroy);
    bool watched = pool_samples_forget(pool, &device, &used);
    if (call.acts)
        forget_pool(pool);
    CUresult rc = REAL(pool);
    if (call.acts && watched && rc == CUDA_SUCCESS)
        record_pool((uintptr_t)pool, device, used, used, 0);
    return call_end(&call, rc);
}

HOOK(cuMemPoolTrimTo, (CUmemoryPool pool, size_t bytes))
{
    FORWARD(cuMemPoolTrimTo);
    CUresult rc = REAL(pool, bytes);
    if (call.acts)
        pool_samples_take();
    return call_end(&call, rc);
}
