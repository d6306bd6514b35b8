/*
 * A long random sequence of driver calls of every family, valid and invalid, and books of what they should
 * come to.
 *
 *   hooks_random SEED STEPS THREADS [v]
 *
 * Prints, for each thread, a digest of every result (return codes, and addresses by the order in which they
 * first appeared; of handles, which the driver takes from malloc, only that there is one), with v every
 * result, and then the books: one line a family, summed over threads. The books follow NVIDIA's documentation
 * and what counts by the project's accounting, not what the library says. In several threads no thread
 * touches what may be another's.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/abi.h"

#define FUNCTIONS(X)                                                                                         \
    X(cuInit, 0, (unsigned))                                                                                 \
    X(cuDevicePrimaryCtxRetain, 7000, (CUcontext *, CUdevice))                                               \
    X(cuCtxSetCurrent, 4000, (CUcontext))                                                                    \
    X(cuCtxPopCurrent_v2, 4000, (CUcontext *))                                                               \
    X(cuCtxCreate_v2, 3020, (CUcontext *, unsigned, CUdevice))                                               \
    X(cuCtxDestroy_v2, 4000, (CUcontext))                                                                    \
    X(cuMemAlloc_v2, 3020, (CUdeviceptr *, size_t))                                                          \
    X(cuMemFree_v2, 3020, (CUdeviceptr))                                                                     \
    X(cuMemAllocPitch_v2, 3020, (CUdeviceptr *, size_t *, size_t, size_t, unsigned))                         \
    X(cuMemAllocManaged, 6000, (CUdeviceptr *, size_t, unsigned))                                            \
    X(cuMemAllocHost_v2, 3020, (void **, size_t))                                                            \
    X(cuMemHostAlloc, 2020, (void **, size_t, unsigned))                                                     \
    X(cuMemFreeHost, 2000, (void *))                                                                         \
    X(cuMemHostRegister_v2, 6050, (void *, size_t, unsigned))                                                \
    X(cuMemHostUnregister, 4000, (void *))                                                                   \
    X(cuStreamCreate, 2000, (CUstream *, unsigned))                                                          \
    X(cuMemAllocAsync, 11020, (CUdeviceptr *, size_t, CUstream))                                             \
    X(cuMemAllocFromPoolAsync, 11020, (CUdeviceptr *, size_t, CUmemoryPool, CUstream))                       \
    X(cuMemFreeAsync, 11020, (CUdeviceptr, CUstream))                                                        \
    X(cuMemPoolCreate, 11020, (CUmemoryPool *, const CUmemPoolProps *))                                      \
    X(cuMemPoolDestroy, 11020, (CUmemoryPool))                                                               \
    X(cuMemPoolTrimTo, 11020, (CUmemoryPool, size_t))                                                        \
    X(cuMemAddressReserve, 10020, (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long))          \
    X(cuMemCreate, 10020,                                                                                    \
      (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long))             \
    X(cuMemRelease, 10020, (CUmemGenericAllocationHandle))                                                   \
    X(cuMemMap, 10020, (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long))      \
    X(cuMemUnmap, 10020, (CUdeviceptr, size_t))                                                              \
    X(cuMemRetainAllocationHandle, 11000, (CUmemGenericAllocationHandle *, void *))                          \
    X(cuArrayCreate_v2, 3020, (CUarray *, const CUDA_ARRAY_DESCRIPTOR *))                                    \
    X(cuArray3DCreate_v2, 3020, (CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *))                                \
    X(cuArrayDestroy, 2000, (CUarray))                                                                       \
    X(cuMipmappedArrayCreate, 5000, (CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned))         \
    X(cuMipmappedArrayDestroy, 5000, (CUmipmappedArray))                                                     \
    X(cuStreamSynchronize, 2000, (CUstream))                                                                 \
    X(cuStreamBeginCapture_v2, 10010, (CUstream, CUstreamCaptureMode))                                       \
    X(cuStreamEndCapture, 10000, (CUstream, CUgraph *))                                                      \
    X(cuGraphCreate, 10000, (CUgraph *, unsigned))                                                           \
    X(cuGraphAddMemAllocNode, 11040,                                                                         \
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUDA_MEM_ALLOC_NODE_PARAMS *))                   \
    X(cuGraphAddMemFreeNode, 11040, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUdeviceptr))      \
    X(cuGraphInstantiateWithFlags, 11040, (CUgraphExec *, CUgraph, unsigned long long))                      \
    X(cuGraphLaunch, 10000, (CUgraphExec, CUstream))                                                         \
    X(cuGraphExecDestroy, 10000, (CUgraphExec))                                                              \
    X(cuGraphDestroy, 10000, (CUgraph))                                                                      \
    X(cuMemGetInfo_v2, 3020, (size_t *, size_t *))

#define AS_POINTER(name, version, parameters) static CUresult(*name) parameters;
FUNCTIONS(AS_POINTER)

enum family { PLAIN, PITCHED, MANAGED, POOL, VMM, ARRAY, PINNED, REGISTERED, GRAPH, FAMILIES };
static const char *const names[] = {"plain", "pitched", "managed",    "pool", "vmm",
                                    "array", "pinned",  "registered", "graph"};

struct books {
    unsigned long long allocs, frees, teardowns, allocated, live, blocks, failed;
};

enum ended_by { BY_FREE, BY_FREE_HOST, BY_UNREGISTER, BY_ARRAY_DESTROY, BY_MIPMAP_DESTROY };

struct thing {
    enum family family;
    enum ended_by by;
    unsigned long long key, bytes;
    int context; /* 0: the primary one */
};

#define THINGS   512
#define SLOTS    32
#define HANDLES  24
#define POOLS    4
#define SEEN     (1 << 16)
#define GRANULE  (2ull << 20)
#define CONTEXTS 3 /* created ones at a time */

struct handle {
    CUmemGenericAllocationHandle handle; /* 0: free */
    unsigned long long bytes;
    int references, mappings;
};

struct work {
    unsigned long long seed, digest, foreign;
    unsigned number, steps, threads;
    bool verbose;
    struct books books[FAMILIES];
    struct thing things[THINGS];
    int thing_count;
    struct handle handles[HANDLES];
    CUdeviceptr range;
    int slots[SLOTS]; /* a handle's index; -1: not mapped */
    CUmemoryPool pools[POOLS];
    CUstream stream;
    CUcontext primary, contexts[CONTEXTS];
    int depth; /* of contexts; the last is current */
    unsigned char *pages;
    unsigned long long seen[SEEN], order[SEEN];
    unsigned long long seen_count;
};

static unsigned random_below(struct work *work, unsigned limit)
{
    work->seed = work->seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)((work->seed >> 33) % limit);
}

/* The n-th address or handle to appear is n, whatever its value. */
static unsigned long long order_of(struct work *work, unsigned long long value)
{
    unsigned slot = (unsigned)((value * 0x9e3779b97f4a7c15ull) >> 48) % SEEN;
    while (work->seen[slot] != 0 && work->seen[slot] != value)
        slot = (slot + 1) % SEEN;
    if (work->seen[slot] == 0) {
        if (work->seen_count > SEEN / 2)
            return 0;
        work->seen[slot] = value;
        work->order[slot] = ++work->seen_count;
    }
    return work->order[slot];
}

static CUresult note(struct work *work, const char *what, CUresult rc, unsigned long long value)
{
    unsigned long long order = rc == CUDA_SUCCESS && value != 0 ? order_of(work, value) : 0;
    for (const char *at = what; *at != '\0'; at++)
        work->digest = (work->digest ^ (unsigned char)*at) * 1099511628211ull;
    work->digest = (work->digest ^ (unsigned)rc) * 1099511628211ull;
    work->digest = (work->digest ^ order) * 1099511628211ull;
    if (work->verbose)
        printf("%s %d %llu\n", what, (int)rc, order);
    return rc;
}

/* The object behind a handle may lie anywhere in the heap. */
static CUresult note_handle(struct work *work, const char *what, CUresult rc, const void *handle)
{
    return note(work, handle != NULL ? what : "no handle", rc, 0);
}

/* Books */

static int current_context(const struct work *work)
{
    return work->depth;
}

static void begin(struct work *work, enum family family, enum ended_by by, unsigned long long key,
                  unsigned long long bytes)
{
    struct books *books = &work->books[family];
    books->allocs++;
    books->allocated += bytes;
    books->live += bytes;
    books->blocks++;
    if (family != VMM) /* those are kept apart */
        work->things[work->thing_count++] = (struct thing){family, by, key, bytes, current_context(work)};
}

static void end_block(struct work *work, enum family family, unsigned long long bytes, bool teardown)
{
    struct books *books = &work->books[family];
    if (teardown)
        books->teardowns++;
    else
        books->frees++;
    books->live -= bytes;
    books->blocks--;
}

static void end_thing(struct work *work, int index, bool teardown)
{
    end_block(work, work->things[index].family, work->things[index].bytes, teardown);
    work->things[index] = work->things[--work->thing_count];
}

/* A result of an API that allocates. */
static void allocated(struct work *work, const char *what, CUresult rc, enum family family, enum ended_by by,
                      unsigned long long key, unsigned long long bytes)
{
    note(work, what, rc, family == VMM || family == ARRAY ? 0 : key);
    if (rc == CUDA_SUCCESS)
        begin(work, family, by, key, bytes);
    else
        work->books[family].failed++;
}

/* Calls */

static size_t random_size(struct work *work)
{
    switch (random_below(work, 12)) {
    case 0:
        return 0;
    case 1:
        return (size_t)1 << 45; /* more than there is */
    case 2:
        return GRANULE * (1 + random_below(work, 4));
    default:
        return 1 + random_below(work, 1 << (4 + random_below(work, 17)));
    }
}

static void allocate_device(struct work *work)
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

static void allocate_host(struct work *work)
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

static void allocate_pool(struct work *work)
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

static void change_pools(struct work *work)
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

/* Bytes of an array by its descriptor, as the documentation has it: texels of every level. */
static unsigned long long array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *of, unsigned texel, unsigned levels)
{
    unsigned long long total = 0;
    bool layered = (of->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    for (unsigned level = 0; level < levels; level++) {
        unsigned long long width = of->Width >> level, height = of->Height >> level;
        unsigned long long depth = layered ? of->Depth : of->Depth >> level;
        total += (width ? width : 1) * (height ? height : 1) * (depth ? depth : 1) * texel;
    }
    return total;
}

static void allocate_array(struct work *work)
{
    static const struct {
        CUarray_format format;
        unsigned bytes;
    } formats[] = {{CU_AD_FORMAT_UNSIGNED_INT8, 1}, {CU_AD_FORMAT_HALF, 2}, {CU_AD_FORMAT_FLOAT, 4}};
    static const unsigned channel_counts[] = {1, 2, 4};
    unsigned format = random_below(work, 3), channels = channel_counts[random_below(work, 3)];
    CUDA_ARRAY3D_DESCRIPTOR of = {.Width = 1 + random_below(work, 256),
                                  .Height = random_below(work, 3) ? 1 + random_below(work, 64) : 0,
                                  .Format = formats[format].format,
                                  .NumChannels = channels};
    unsigned texel = formats[format].bytes * channels;
    CUarray array = NULL;
    CUmipmappedArray mipmap = NULL;
    unsigned levels = 1;
    CUresult rc;
    switch (random_below(work, 4)) {
    case 0: {
        CUDA_ARRAY_DESCRIPTOR flat = {of.Width, of.Height, of.Format, random_below(work, 8) ? channels : 3};
        rc = cuArrayCreate_v2(&array, &flat);
        break;
    }
    case 1:
        of.Depth = of.Height ? random_below(work, 8) : 0;
        if (of.Depth && random_below(work, 2))
            of.Flags = CUDA_ARRAY3D_LAYERED;
        rc = cuArray3DCreate_v2(&array, &of);
        break;
    case 2:
        of.Height = of.Width;
        of.Depth = 6;
        of.Flags = CUDA_ARRAY3D_CUBEMAP;
        rc = cuArray3DCreate_v2(&array, &of);
        break;
    default:
        levels = 1 + random_below(work, 4);
        of.Width = 64;
        of.Height = 32;
        rc = cuMipmappedArrayCreate(&mipmap, &of, levels);
    }
    allocated(work, "array", rc, ARRAY, mipmap != NULL ? BY_MIPMAP_DESTROY : BY_ARRAY_DESTROY,
              mipmap != NULL ? (uintptr_t)mipmap : (uintptr_t)array, array_bytes(&of, texel, levels));
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

static void free_something(struct work *work)
{
    if (work->thing_count == 0)
        return;
    int index = (int)random_below(work, (unsigned)work->thing_count);
    struct thing thing = work->things[index];
    if (note(work, "free", end_by(work, thing.by, thing.key), 0) == CUDA_SUCCESS)
        end_thing(work, index, false);
}

/* A free of what nobody has is refused, and foreign; one of nothing is nothing. */
static void free_nonsense(struct work *work)
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

/* Virtual memory */

static void settle(struct work *work, struct handle *handle)
{
    if (handle->references + handle->mappings > 0)
        return;
    end_block(work, VMM, handle->bytes, false);
    handle->handle = 0;
}

static void create_handle(struct work *work)
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

static void map_handle(struct work *work)
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
static void unmap_slot(struct work *work)
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

static void change_references(struct work *work)
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

/* Graphs. A story a step: made, filled by hand or by a capture, launched or not, and ended. What a launch
 * leaves is freed at some later step, like any memory. */

#define NODES 3

struct node {
    CUdeviceptr address;
    size_t bytes;
    bool paired, live, launched;
};

static void add_by_hand(struct work *work, CUgraph graph, struct node *node)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                       .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                                                    .id = random_below(work, 8) ? 0 : 77}},
                                         .bytesize = node->bytes};
    CUgraphNode made = NULL, ended = NULL;
    CUresult rc = cuGraphAddMemAllocNode(&made, graph, NULL, 0, &params);
    note(work, "node", rc, params.dptr);
    if (rc != CUDA_SUCCESS) {
        work->books[GRAPH].failed++;
        return;
    }
    begin(work, GRAPH, BY_FREE, params.dptr, node->bytes);
    work->thing_count--; /* kept in the node for now */
    *node = (struct node){.address = params.dptr, .bytes = node->bytes, .live = true};
    if (random_below(work, 2) == 0) {
        note(work, "free node", cuGraphAddMemFreeNode(&ended, graph, &made, 1, node->address), 0);
        end_block(work, GRAPH, node->bytes, false);
        node->paired = true;
        node->live = false;
    }
}

static void add_by_capture(struct work *work, struct node *node)
{
    CUdeviceptr address = 0;
    CUresult rc = cuMemAllocAsync(&address, node->bytes, work->stream);
    note(work, "captured", rc, address);
    if (rc != CUDA_SUCCESS) {
        work->books[POOL].failed++;
        return;
    }
    begin(work, GRAPH, BY_FREE, address, node->bytes);
    work->thing_count--;
    *node = (struct node){.address = address, .bytes = node->bytes, .live = true};
    if (random_below(work, 2) == 0) {
        note(work, "captured free", cuMemFreeAsync(address, work->stream), 0);
        end_block(work, GRAPH, node->bytes, false);
        node->paired = true;
        node->live = false;
    }
}

static void launch_graph(struct work *work, CUgraphExec exec, struct node *nodes)
{
    if (note(work, "launch", cuGraphLaunch(exec, work->stream), 0) != CUDA_SUCCESS)
        return;
    note(work, "done", cuStreamSynchronize(work->stream), 0);
    for (int i = 0; i < NODES; i++) {
        if (nodes[i].address == 0 || nodes[i].paired)
            continue;
        if (!nodes[i].live) {
            begin(work, GRAPH, BY_FREE, nodes[i].address, nodes[i].bytes);
            work->thing_count--;
        }
        nodes[i].live = nodes[i].launched = true;
    }
}

static void tell_graph_story(struct work *work)
{
    struct node nodes[NODES] = {0};
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    bool by_capture = random_below(work, 2);
    if (work->depth > 0 || work->thing_count > THINGS - 16)
        return;
    if (by_capture)
        note(work, "capture", cuStreamBeginCapture_v2(work->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), 0);
    else
        note(work, "graph", cuGraphCreate(&graph, 0), 0);
    for (unsigned i = random_below(work, NODES); i < NODES; i++) {
        nodes[i].bytes = 1 + random_below(work, 1 << 22);
        if (by_capture)
            add_by_capture(work, &nodes[i]);
        else
            add_by_hand(work, graph, &nodes[i]);
    }
    if (by_capture)
        note(work, "captured all", cuStreamEndCapture(work->stream, &graph), 0);
    if (random_below(work, 3))
        note_handle(work, "instantiate", cuGraphInstantiateWithFlags(&exec, graph, 0), graph);
    if (exec != NULL && random_below(work, 4))
        launch_graph(work, exec, nodes);
    for (int i = 0; i < NODES; i++) {
        if (nodes[i].launched && random_below(work, 2) &&
            note(work, "free outside", cuMemFree_v2(nodes[i].address), 0) == CUDA_SUCCESS) {
            end_block(work, GRAPH, nodes[i].bytes, false);
            nodes[i].live = nodes[i].launched = false;
        }
    }
    bool all_back = true;
    for (int i = 0; i < NODES; i++)
        all_back = all_back && !nodes[i].launched;
    if (exec != NULL && all_back && random_below(work, 2))
        launch_graph(work, exec, nodes);
    if (exec != NULL)
        note(work, "end exec", cuGraphExecDestroy(exec), 0);
    note(work, "end graph", cuGraphDestroy(graph), 0);
    for (int i = 0; i < NODES; i++) {
        if (!nodes[i].live)
            continue;
        if (nodes[i].launched)
            work->things[work->thing_count++] =
                (struct thing){GRAPH, BY_FREE, nodes[i].address, nodes[i].bytes, 0};
        else
            end_block(work, GRAPH, nodes[i].bytes, false);
    }
}

/* Contexts */

static bool outlives_contexts(enum family family)
{
    return family == POOL || family == GRAPH;
}

static void change_contexts(struct work *work)
{
    if (work->depth < CONTEXTS && random_below(work, 2)) {
        CUcontext context = NULL;
        CUresult rc = cuCtxCreate_v2(&context, 0, 0);
        if (note_handle(work, "context", rc, context) == CUDA_SUCCESS)
            work->contexts[work->depth++] = context;
    } else if (work->depth > 0) {
        CUcontext context = work->contexts[work->depth - 1];
        if (note(work, "end a context", cuCtxDestroy_v2(context), 0) != CUDA_SUCCESS)
            return;
        for (int i = work->thing_count - 1; i >= 0; i--) {
            if (work->things[i].context == work->depth && !outlives_contexts(work->things[i].family))
                end_thing(work, i, true);
        }
        for (int i = 0; i < work->thing_count; i++) { /* a pool's, from then on nobody's */
            if (work->things[i].context == work->depth)
                work->things[i].context = 0;
        }
        work->depth--;
    } else {
        note(work, "end no context", cuCtxDestroy_v2(NULL), 0);
        note(work, "end the primary context", cuCtxDestroy_v2(work->primary), 0);
    }
}

static void step(struct work *work)
{
    static void (*const kinds[])(struct work *) = {
        allocate_device, allocate_device, allocate_device, allocate_host, allocate_pool, allocate_pool,
        allocate_array,  create_handle,   map_handle,      map_handle,    unmap_slot,    change_references};
    if (work->thing_count > THINGS - 8 || random_below(work, 100) < 45)
        free_something(work);
    else if (random_below(work, 100) < 5)
        free_nonsense(work);
    else if (random_below(work, 100) < 2)
        change_contexts(work);
    else if (random_below(work, 100) < 4)
        change_pools(work);
    else if (random_below(work, 100) < 5)
        tell_graph_story(work);
    else
        kinds[random_below(work, sizeof kinds / sizeof *kinds)](work);
}

static void *run(void *argument)
{
    struct work *work = argument;
    if (cuCtxSetCurrent(work->primary) != CUDA_SUCCESS || cuStreamCreate(&work->stream, 1) != CUDA_SUCCESS ||
        cuMemAddressReserve(&work->range, SLOTS * GRANULE, 0, 0, 0) != CUDA_SUCCESS)
        abort();
    memset(work->slots, 0xff, sizeof work->slots);
    if (posix_memalign((void **)&work->pages, 4096, 4096 * 256))
        abort();
    for (unsigned i = 0; i < work->steps; i++)
        step(work);
    size_t free_bytes = 0, total = 0;
    note(work, "info", cuMemGetInfo_v2(&free_bytes, &total), work->threads == 1 ? free_bytes : 0);
    return NULL;
}

static void find_functions(unsigned long long seed)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    CUresult (*get)(const char *, void **, int, cuuint64_t, void *) =
        driver == NULL ? NULL : (__typeof__(get))dlsym(driver, "cuGetProcAddress_v2");
    if (get == NULL)
        abort();
#define FIND(name, version, parameters)                                                                      \
    name = (CUresult(*) parameters)dlsym(driver, #name);                                                     \
    if ((version) != 0 && seed % 2 == 1) {                                                                   \
        char bare[64];                                                                                       \
        strcpy(bare, #name);                                                                                 \
        if (strstr(bare, "_v2") != NULL)                                                                     \
            *strstr(bare, "_v2") = '\0';                                                                     \
        if (get(bare, (void **)&name, version, 0, NULL) != CUDA_SUCCESS)                                     \
            abort();                                                                                         \
    }
    FUNCTIONS(FIND)
}

int main(int count, char **arguments)
{
    if (count < 4)
        return 2;
    unsigned long long seed = strtoull(arguments[1], NULL, 10);
    unsigned threads = (unsigned)atoi(arguments[3]);
    CUcontext primary;
    find_functions(seed);
    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&primary, 0) != CUDA_SUCCESS)
        return 3;
    struct work *works = calloc(threads, sizeof *works);
    pthread_t *ids = calloc(threads, sizeof *ids);
    for (unsigned i = 0; i < threads; i++) {
        works[i] = (struct work){.seed = seed * 1000 + i,
                                 .number = i,
                                 .steps = (unsigned)atoi(arguments[2]),
                                 .threads = threads,
                                 .primary = primary,
                                 .verbose = count > 4};
    }
    /* Recording begins with the first allocation: what is freed before it is nobody's business. */
    cuCtxSetCurrent(primary);
    CUdeviceptr first = 0;
    CUresult rc = cuMemAlloc_v2(&first, 4096);
    allocated(&works[0], "first", rc, PLAIN, BY_FREE, first, 4096);
    for (unsigned i = 0; i < threads; i++) {
        if (threads == 1)
            run(&works[i]);
        else if (pthread_create(&ids[i], NULL, run, &works[i]) != 0)
            abort();
    }
    unsigned long long foreign = 0;
    for (unsigned i = 0; i < threads; i++) {
        if (threads > 1)
            pthread_join(ids[i], NULL);
        else
            printf("digest %016llx\n", works[i].digest);
        foreign += works[i].foreign;
    }
    for (int family = 0; family < FAMILIES; family++) {
        struct books sum = {0};
        for (unsigned i = 0; i < threads; i++) {
            const struct books *books = &works[i].books[family];
            sum.allocs += books->allocs;
            sum.frees += books->frees;
            sum.teardowns += books->teardowns;
            sum.allocated += books->allocated;
            sum.live += books->live;
            sum.blocks += books->blocks;
            sum.failed += books->failed;
        }
        printf(
            "%s allocs %llu frees %llu teardowns %llu allocated_bytes %llu live_bytes %llu live_blocks %llu "
            "failed %llu\n",
            names[family], sum.allocs, sum.frees, sum.teardowns, sum.allocated, sum.live, sum.blocks,
            sum.failed);
    }
    printf("foreign %llu\n", foreign);
    free(works);
    free(ids);
    return 0;
}
