/*
 * A long random sequence of driver calls, and books of what they should come to: what its files share.
 *
 * A struct work is one thread's: no thread touches what may be another's.
 */
#ifndef HOOKS_RANDOM_WORK_H
#define HOOKS_RANDOM_WORK_H

#include <stdbool.h>
#include <stddef.h>

#include "cuda/abi.h"

/* X(exported name, version by which cuGetProcAddress means it, parameters) */
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
    X(cuIpcGetMemHandle, 4010, (CUipcMemHandle *, CUdeviceptr))                                              \
    X(cuIpcOpenMemHandle_v2, 11000, (CUdeviceptr *, CUipcMemHandle, unsigned))                               \
    X(cuIpcCloseMemHandle, 4010, (CUdeviceptr))                                                              \
    X(cuMemExportToShareableHandle, 10020,                                                                   \
      (void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType, unsigned long long))                 \
    X(cuMemImportFromShareableHandle, 10020,                                                                 \
      (CUmemGenericAllocationHandle *, void *, CUmemAllocationHandleType))                                   \
    X(cuMemPoolExportToShareableHandle, 11020,                                                               \
      (void *, CUmemoryPool, CUmemAllocationHandleType, unsigned long long))                                 \
    X(cuMemPoolImportFromShareableHandle, 11020,                                                             \
      (CUmemoryPool *, void *, CUmemAllocationHandleType, unsigned long long))                               \
    X(cuMemPoolExportPointer, 11020, (CUmemPoolPtrExportData *, CUdeviceptr))                                \
    X(cuMemPoolImportPointer, 11020, (CUdeviceptr *, CUmemoryPool, CUmemPoolPtrExportData *))                \
    X(cuImportExternalMemory, 10000, (CUexternalMemory *, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *))         \
    X(cuDestroyExternalMemory, 10000, (CUexternalMemory))                                                    \
    X(cuExternalMemoryGetMappedBuffer, 10000,                                                                \
      (CUdeviceptr *, CUexternalMemory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *))                           \
    X(cuExternalMemoryGetMappedMipmappedArray, 10000,                                                        \
      (CUmipmappedArray *, CUexternalMemory, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *))             \
    X(cuMulticastCreate, 12010, (CUmemGenericAllocationHandle *, const CUmulticastObjectProp *))             \
    X(cuMulticastAddDevice, 12010, (CUmemGenericAllocationHandle, CUdevice))                                 \
    X(cuMulticastBindMem, 12010,                                                                             \
      (CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle, size_t, size_t,                   \
       unsigned long long))                                                                                  \
    X(cuMulticastBindAddr, 12010,                                                                            \
      (CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t, unsigned long long))                       \
    X(cuMulticastUnbind, 12010, (CUmemGenericAllocationHandle, CUdevice, size_t, size_t))                    \
    X(cuArrayGetSparseProperties, 11010, (CUDA_ARRAY_SPARSE_PROPERTIES *, CUarray))                          \
    X(cuMemMapArrayAsync, 11010, (CUarrayMapInfo *, unsigned, CUstream))                                     \
    X(cuMemGetInfo_v2, 3020, (size_t *, size_t *))

#define AS_POINTER(name, version, parameters) extern CUresult(*name) parameters;
FUNCTIONS(AS_POINTER)
#undef AS_POINTER

enum family { PLAIN, PITCHED, MANAGED, POOL, VMM, ARRAY, PINNED, REGISTERED, GRAPH, IPC, EXTERNAL, FAMILIES };
#define NO_FAMILY FAMILIES /* of what is no memory: books that nobody asks for */

struct books {
    unsigned long long allocs, frees, teardowns, allocated, live, blocks, failed;
};

enum ended_by { BY_FREE, BY_FREE_HOST, BY_UNREGISTER, BY_ARRAY_DESTROY, BY_MIPMAP_DESTROY };

/* The context of what no context's end takes along. */
#define NO_CONTEXT (-1)

struct thing {
    enum family family;
    enum ended_by by;
    unsigned long long key, bytes;
    int context; /* 0: the primary one */
};

#define THINGS    512
#define SLOTS     32
#define HANDLES   24
#define POOLS     4
#define SEEN      (1 << 16)
#define GRANULE   (2ull << 20)
#define CONTEXTS  3 /* created ones at a time */
#define EXTERNALS 2
#define BINDINGS  16
#define SPARSE    3
#define TILES     4 /* in either direction */

struct handle {
    CUmemGenericAllocationHandle handle; /* 0: free */
    enum family family;                  /* VMM, IPC where it was imported, NO_FAMILY for multicast objects */
    bool for_tiles;                      /* of sparse arrays */
    unsigned long long bytes;            /* what there is to map */
    unsigned long long booked;           /* 0 for an import that was never mapped */
    int references, mappings;
};

/* What the other process has to share with one thread (shared.c). */
#define SHARED_BLOCKS   4
#define SHARED_HANDLES  3
#define SHARED_POINTERS 6

struct offer {
    CUipcMemHandle blocks[SHARED_BLOCKS];
    unsigned long long block_bytes[SHARED_BLOCKS];
    CUmemPoolPtrExportData pointers[SHARED_POINTERS];
    unsigned long long pointer_bytes[SHARED_POINTERS];
    unsigned long long handle_bytes[SHARED_HANDLES];
    int handles[SHARED_HANDLES], pool; /* descriptors */
};

struct opened {
    CUdeviceptr address;
    int count;
};

struct external {
    CUexternalMemory memory; /* NULL: free */
    int context;
};

/* A granule of memory bound to a multicast object, both by their indices. */
struct binding {
    int object, memory; /* -1: none */
    unsigned granule;   /* of the object */
};

struct sparse {
    CUarray array; /* NULL: none */
    int context;
    unsigned tile_width, tile_height;
    int tiles[TILES * TILES]; /* a handle's index; -1: not mapped */
};

struct work {
    unsigned long long seed, digest, foreign;
    unsigned number, steps, threads;
    bool verbose;
    struct books books[FAMILIES + 1];
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
    struct offer offer;
    struct opened opened[CONTEXTS + 1][SHARED_BLOCKS]; /* in each context */
    CUmemoryPool shared_pool;
    int external_file;
    struct external externals[EXTERNALS];
    struct binding bindings[BINDINGS];
    struct sparse sparse[SPARSE];
    unsigned long long seen[SEEN], order[SEEN];
    unsigned long long seen_count;
};

/* work.c: results and books */
unsigned random_below(struct work *work, unsigned limit);
size_t random_size(struct work *work);
/* Takes a result down, and returns it. */
CUresult note(struct work *work, const char *what, CUresult rc, unsigned long long value);
CUresult note_handle(struct work *work, const char *what, CUresult rc, const void *handle);
/* A block of a family begins; with begin_thing() it is kept among the things. */
void begin_block(struct work *work, enum family family, unsigned long long bytes);
void begin_thing(struct work *work, enum family family, enum ended_by by, unsigned long long key,
                 unsigned long long bytes, int context);
void end_block(struct work *work, enum family family, unsigned long long bytes, bool teardown);
void end_thing(struct work *work, int index, bool teardown);
/* A result of an API that allocates a thing of the current context. */
void allocated(struct work *work, const char *what, CUresult rc, enum family family, enum ended_by by,
               unsigned long long key, unsigned long long bytes);

/* One step each */
void allocate_device(struct work *work);
void allocate_host(struct work *work);
void allocate_pool(struct work *work);
void change_pools(struct work *work);
void free_something(struct work *work);
void free_nonsense(struct work *work);
void allocate_array(struct work *work);
void create_handle(struct work *work);
void map_handle(struct work *work);
void unmap_slot(struct work *work);
void change_references(struct work *work);
void tell_graph_story(struct work *work);
void change_contexts(struct work *work);
void open_shared(struct work *work);
void import_handle(struct work *work);
void import_pointer(struct work *work);
void change_external(struct work *work);
void create_multicast(struct work *work);
void change_bindings(struct work *work);
void change_sparse(struct work *work);

/* virtual.c: an unused handle or NULL; and a handle lost a reference or a mapping. */
struct handle *free_handle(struct work *work);
void settle(struct work *work, struct handle *handle);
/* multicast.c: the multicast object of that index ended. */
void multicast_ended(struct work *work, int object);

/* shared.c: a process of our own that has memory to share, made before CUDA is used, until the program ends.
 */
void shared_start(struct work *works, unsigned threads);
int shared_be_the_other(int socket, unsigned threads);
/* A context ends, and what was opened in it. */
void shared_context_ended(struct work *work, int context);
/* external.c: likewise. */
void external_start(struct work *work);
void external_context_ended(struct work *work, int context);
/* sparse.c */
void sparse_start(struct work *work);
void sparse_context_ended(struct work *work, int context);

#endif
