/* The driver's copy functions, all of them one shape behind: linear, two- and three-dimensional, with arrays.
 */
#include "copy.h"

#include "entry.h"
#include "stream.h"

#define HOST    CU_MEMORYTYPE_HOST
#define DEVICE  CU_MEMORYTYPE_DEVICE
#define ARRAY   CU_MEMORYTYPE_ARRAY
#define UNIFIED CU_MEMORYTYPE_UNIFIED

/* One row from or to an address, a host pointer, or an array at a byte offset. */
struct end {
    CUmemorytype type;
    uint64_t address; /* or the array */
    size_t offset;    /* into the array, bytes */
};

static CUDA_MEMCPY3D linear(struct end to, struct end from, size_t bytes)
{
    CUDA_MEMCPY3D copy = {.WidthInBytes = bytes, .Height = 1, .Depth = 1};
    copy.dstMemoryType = to.type;
    copy.dstHost = (void *)to.address;
    copy.dstDevice = to.address;
    copy.dstArray = (CUarray)to.address;
    copy.dstXInBytes = to.offset;
    copy.srcMemoryType = from.type;
    copy.srcHost = (const void *)from.address;
    copy.srcDevice = from.address;
    copy.srcArray = (CUarray)from.address;
    copy.srcXInBytes = from.offset;
    return copy;
}

static CUDA_MEMCPY3D widened_2d(const CUDA_MEMCPY2D *flat)
{
    return (CUDA_MEMCPY3D){.srcXInBytes = flat->srcXInBytes,
                           .srcY = flat->srcY,
                           .srcMemoryType = flat->srcMemoryType,
                           .srcHost = flat->srcHost,
                           .srcDevice = flat->srcDevice,
                           .srcArray = flat->srcArray,
                           .srcPitch = flat->srcPitch,
                           .dstXInBytes = flat->dstXInBytes,
                           .dstY = flat->dstY,
                           .dstMemoryType = flat->dstMemoryType,
                           .dstHost = flat->dstHost,
                           .dstDevice = flat->dstDevice,
                           .dstArray = flat->dstArray,
                           .dstPitch = flat->dstPitch,
                           .WidthInBytes = flat->WidthInBytes,
                           .Height = flat->Height,
                           .Depth = 1};
}

static CUDA_MEMCPY2D widened_2d_v1(const CUDA_MEMCPY2D_v1 *old)
{
    return (CUDA_MEMCPY2D){.srcXInBytes = old->srcXInBytes,
                           .srcY = old->srcY,
                           .srcMemoryType = old->srcMemoryType,
                           .srcHost = old->srcHost,
                           .srcDevice = old->srcDevice,
                           .srcArray = old->srcArray,
                           .srcPitch = old->srcPitch,
                           .dstXInBytes = old->dstXInBytes,
                           .dstY = old->dstY,
                           .dstMemoryType = old->dstMemoryType,
                           .dstHost = old->dstHost,
                           .dstDevice = old->dstDevice,
                           .dstArray = old->dstArray,
                           .dstPitch = old->dstPitch,
                           .WidthInBytes = old->WidthInBytes,
                           .Height = old->Height};
}

static CUDA_MEMCPY3D widened_3d_v1(const CUDA_MEMCPY3D_v1 *old)
{
    return (CUDA_MEMCPY3D){.srcXInBytes = old->srcXInBytes,
                           .srcY = old->srcY,
                           .srcZ = old->srcZ,
                           .srcLOD = old->srcLOD,
                           .srcMemoryType = old->srcMemoryType,
                           .srcHost = old->srcHost,
                           .srcDevice = old->srcDevice,
                           .srcArray = old->srcArray,
                           .srcPitch = old->srcPitch,
                           .srcHeight = old->srcHeight,
                           .dstXInBytes = old->dstXInBytes,
                           .dstY = old->dstY,
                           .dstZ = old->dstZ,
                           .dstLOD = old->dstLOD,
                           .dstMemoryType = old->dstMemoryType,
                           .dstHost = old->dstHost,
                           .dstDevice = old->dstDevice,
                           .dstArray = old->dstArray,
                           .dstPitch = old->dstPitch,
                           .dstHeight = old->dstHeight,
                           .WidthInBytes = old->WidthInBytes,
                           .Height = old->Height,
                           .Depth = old->Depth};
}

static CUresult submit_2d(const CUDA_MEMCPY2D *flat, CUstream stream)
{
    if (!flat)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D copy = widened_2d(flat);
    return copy_submit(&copy, stream);
}

static CUresult submit_3d(const CUDA_MEMCPY3D *copy, CUstream stream)
{
    return copy ? copy_submit(copy, stream) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult submit_2d_v1(const CUDA_MEMCPY2D_v1 *old, CUstream stream)
{
    if (!old)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY2D flat = widened_2d_v1(old);
    return submit_2d(&flat, stream);
}

static CUresult submit_3d_v1(const CUDA_MEMCPY3D_v1 *old, CUstream stream)
{
    if (!old)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D copy = widened_3d_v1(old);
    return submit_3d(&copy, stream);
}

static CUresult submit_linear(struct end to, struct end from, size_t bytes, CUstream stream)
{
    CUDA_MEMCPY3D copy = linear(to, from, bytes);
    return copy_submit(&copy, stream);
}

/* A function and its twin for the per-thread default stream, which differ in order only: here there is none.
 */
#define PLAIN(symbol, twin, name, parameters, arguments, expression)                                         \
    EXPORT CUresult symbol parameters                                                                        \
    {                                                                                                        \
        return CALL(name, NEEDS_MEMORY_CALL, expression);                                                    \
    }                                                                                                        \
    EXPORT CUresult twin parameters                                                                          \
    {                                                                                                        \
        return symbol arguments;                                                                             \
    }

#define END(type, value)  ((struct end){type, (uint64_t)(value), 0})
#define AT(array, offset) ((struct end){ARRAY, (uint64_t)(array), offset})

/* Between two addresses: the function of today, its twin, and the one with 32-bit addresses. */
#define LINEAR(name, to_kind, to_type, to_old, from_kind, from_type, from_old)                               \
    PLAIN(name##_v2, name##_v2_ptds, #name, (to_type to, from_type from, size_t bytes), (to, from, bytes),   \
          submit_linear(END(to_kind, to), END(from_kind, from), bytes, NULL))                                \
    EXPORT CUresult name(to_old to, from_old from, unsigned int bytes)                                       \
    {                                                                                                        \
        return name##_v2(to, from, bytes);                                                                   \
    }
LINEAR(cuMemcpyHtoD, DEVICE, CUdeviceptr, CUdeviceptr_v1, HOST, const void *, const void *)
LINEAR(cuMemcpyDtoH, HOST, void *, void *, DEVICE, CUdeviceptr, CUdeviceptr_v1)
LINEAR(cuMemcpyDtoD, DEVICE, CUdeviceptr, CUdeviceptr_v1, DEVICE, CUdeviceptr, CUdeviceptr_v1)

#define LINEAR_ASYNC(name, to_kind, to_type, to_old, from_kind, from_type, from_old)                         \
    EXPORT CUresult name##_v2(to_type to, from_type from, size_t bytes, CUstream stream)                     \
    {                                                                                                        \
        return CALL(#name, NEEDS_CONTEXT,                                                                    \
                    submit_linear(END(to_kind, to), END(from_kind, from), bytes, stream));                   \
    }                                                                                                        \
    EXPORT CUresult name##_v2_ptsz(to_type to, from_type from, size_t bytes, CUstream stream)                \
    {                                                                                                        \
        return name##_v2(to, from, bytes, per_thread(stream));                                               \
    }                                                                                                        \
    EXPORT CUresult name(to_old to, from_old from, unsigned int bytes, CUstream stream)                      \
    {                                                                                                        \
        return name##_v2(to, from, bytes, stream);                                                           \
    }
LINEAR_ASYNC(cuMemcpyHtoDAsync, DEVICE, CUdeviceptr, CUdeviceptr_v1, HOST, const void *, const void *)
LINEAR_ASYNC(cuMemcpyDtoHAsync, HOST, void *, void *, DEVICE, CUdeviceptr, CUdeviceptr_v1)
LINEAR_ASYNC(cuMemcpyDtoDAsync, DEVICE, CUdeviceptr, CUdeviceptr_v1, DEVICE, CUdeviceptr, CUdeviceptr_v1)

PLAIN(cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds, "cuMemcpyDtoA",
      (CUarray to, size_t offset, CUdeviceptr from, size_t bytes), (to, offset, from, bytes),
      submit_linear(AT(to, offset), END(DEVICE, from), bytes, NULL))
PLAIN(cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds, "cuMemcpyAtoD",
      (CUdeviceptr to, CUarray from, size_t offset, size_t bytes), (to, from, offset, bytes),
      submit_linear(END(DEVICE, to), AT(from, offset), bytes, NULL))
PLAIN(cuMemcpyHtoA_v2, cuMemcpyHtoA_v2_ptds, "cuMemcpyHtoA",
      (CUarray to, size_t offset, const void *from, size_t bytes), (to, offset, from, bytes),
      submit_linear(AT(to, offset), END(HOST, from), bytes, NULL))
PLAIN(cuMemcpyAtoH_v2, cuMemcpyAtoH_v2_ptds, "cuMemcpyAtoH",
      (void *to, CUarray from, size_t offset, size_t bytes), (to, from, offset, bytes),
      submit_linear(END(HOST, to), AT(from, offset), bytes, NULL))
PLAIN(cuMemcpyAtoA_v2, cuMemcpyAtoA_v2_ptds, "cuMemcpyAtoA",
      (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes),
      (to, to_offset, from, from_offset, bytes),
      submit_linear(AT(to, to_offset), AT(from, from_offset), bytes, NULL))

EXPORT CUresult cuMemcpyDtoA(CUarray to, unsigned int offset, CUdeviceptr_v1 from, unsigned int bytes)
{
    return cuMemcpyDtoA_v2(to, offset, from, bytes);
}

EXPORT CUresult cuMemcpyAtoD(CUdeviceptr_v1 to, CUarray from, unsigned int offset, unsigned int bytes)
{
    return cuMemcpyAtoD_v2(to, from, offset, bytes);
}

EXPORT CUresult cuMemcpyHtoA(CUarray to, unsigned int offset, const void *from, unsigned int bytes)
{
    return cuMemcpyHtoA_v2(to, offset, from, bytes);
}

EXPORT CUresult cuMemcpyAtoH(void *to, CUarray from, unsigned int offset, unsigned int bytes)
{
    return cuMemcpyAtoH_v2(to, from, offset, bytes);
}

EXPORT CUresult cuMemcpyAtoA(CUarray to, unsigned int to_offset, CUarray from, unsigned int from_offset,
                             unsigned int bytes)
{
    return cuMemcpyAtoA_v2(to, to_offset, from, from_offset, bytes);
}

/* On a stream, with the twin that means the thread's own default stream by 0. */
#define STREAMED(symbol, name, parameters, twin_arguments, expression)                                       \
    EXPORT CUresult symbol parameters                                                                        \
    {                                                                                                        \
        return CALL(name, NEEDS_CONTEXT, expression);                                                        \
    }                                                                                                        \
    EXPORT CUresult symbol##_ptsz parameters                                                                 \
    {                                                                                                        \
        return symbol twin_arguments;                                                                        \
    }

STREAMED(cuMemcpyHtoAAsync_v2, "cuMemcpyHtoAAsync",
         (CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream),
         (to, offset, from, bytes, per_thread(stream)),
         submit_linear(AT(to, offset), END(HOST, from), bytes, stream))
STREAMED(cuMemcpyAtoHAsync_v2, "cuMemcpyAtoHAsync",
         (void *to, CUarray from, size_t offset, size_t bytes, CUstream stream),
         (to, from, offset, bytes, per_thread(stream)),
         submit_linear(END(HOST, to), AT(from, offset), bytes, stream))
STREAMED(cuMemcpyAsync, "cuMemcpyAsync", (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
         (to, from, bytes, per_thread(stream)),
         submit_linear(END(UNIFIED, to), END(UNIFIED, from), bytes, stream))
STREAMED(cuMemcpy2DAsync_v2, "cuMemcpy2DAsync", (const CUDA_MEMCPY2D *copy, CUstream stream),
         (copy, per_thread(stream)), submit_2d(copy, stream))
STREAMED(cuMemcpy3DAsync_v2, "cuMemcpy3DAsync", (const CUDA_MEMCPY3D *copy, CUstream stream),
         (copy, per_thread(stream)), submit_3d(copy, stream))
STREAMED(cuMemcpy3DPeerAsync, "cuMemcpy3DPeerAsync", (const CUDA_MEMCPY3D_PEER *copy, CUstream stream),
         (copy, per_thread(stream)), submit_3d(copy, stream))

EXPORT CUresult cuMemcpyHtoAAsync(CUarray to, unsigned int offset, const void *from, unsigned int bytes,
                                  CUstream stream)
{
    return cuMemcpyHtoAAsync_v2(to, offset, from, bytes, stream);
}

EXPORT CUresult cuMemcpyAtoHAsync(void *to, CUarray from, unsigned int offset, unsigned int bytes,
                                  CUstream stream)
{
    return cuMemcpyAtoHAsync_v2(to, from, offset, bytes, stream);
}

PLAIN(cuMemcpy, cuMemcpy_ptds, "cuMemcpy", (CUdeviceptr to, CUdeviceptr from, size_t bytes),
      (to, from, bytes), submit_linear(END(UNIFIED, to), END(UNIFIED, from), bytes, NULL))
PLAIN(cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, "cuMemcpy2D", (const CUDA_MEMCPY2D *copy), (copy),
      submit_2d(copy, NULL))
PLAIN(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, "cuMemcpy2DUnaligned", (const CUDA_MEMCPY2D *copy),
      (copy), submit_2d(copy, NULL))
PLAIN(cuMemcpy3D_v2, cuMemcpy3D_v2_ptds, "cuMemcpy3D", (const CUDA_MEMCPY3D *copy), (copy),
      submit_3d(copy, NULL))
PLAIN(cuMemcpy3DPeer, cuMemcpy3DPeer_ptds, "cuMemcpy3DPeer", (const CUDA_MEMCPY3D_PEER *copy), (copy),
      submit_3d(copy, NULL))

EXPORT CUresult cuMemcpy2D(const CUDA_MEMCPY2D_v1 *copy)
{
    return CALL("cuMemcpy2D", NEEDS_MEMORY_CALL, submit_2d_v1(copy, NULL));
}

EXPORT CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1 *copy)
{
    return CALL("cuMemcpy2DUnaligned", NEEDS_MEMORY_CALL, submit_2d_v1(copy, NULL));
}

EXPORT CUresult cuMemcpy3D(const CUDA_MEMCPY3D_v1 *copy)
{
    return CALL("cuMemcpy3D", NEEDS_MEMORY_CALL, submit_3d_v1(copy, NULL));
}

EXPORT CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1 *copy, CUstream stream)
{
    return CALL("cuMemcpy2DAsync", NEEDS_CONTEXT, submit_2d_v1(copy, stream));
}

EXPORT CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1 *copy, CUstream stream)
{
    return CALL("cuMemcpy3DAsync", NEEDS_CONTEXT, submit_3d_v1(copy, stream));
}

/* Both contexts must live. Addresses are unified, so the copy itself needs neither. */
static CUresult submit_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                            size_t bytes, CUstream stream)
{
    if (!context_get(to_context) || !context_get(from_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return submit_linear(END(DEVICE, to), END(DEVICE, from), bytes, stream);
}

PLAIN(cuMemcpyPeer, cuMemcpyPeer_ptds, "cuMemcpyPeer",
      (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes),
      (to, to_context, from, from_context, bytes),
      submit_peer(to, to_context, from, from_context, bytes, NULL))
STREAMED(cuMemcpyPeerAsync, "cuMemcpyPeerAsync",
         (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
          CUstream stream),
         (to, to_context, from, from_context, bytes, per_thread(stream)),
         submit_peer(to, to_context, from, from_context, bytes, stream))

/* Many at once; a failure of one names it. */
static CUresult submit_batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *sizes,
                             size_t count, CUstream stream, size_t *failed)
{
    if (!to || !from || !sizes || !count || !stream)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        CUresult result = submit_linear(END(UNIFIED, to[i]), END(UNIFIED, from[i]), sizes[i], stream);
        if (result != CUDA_SUCCESS) {
            if (failed)
                *failed = i;
            return result;
        }
    }
    return CUDA_SUCCESS;
}

STREAMED(cuMemcpyBatchAsync, "cuMemcpyBatchAsync",
         (CUdeviceptr * to, CUdeviceptr *from, size_t *sizes, size_t count, CUmemcpyAttributes *attributes,
          size_t *attribute_indices, size_t attribute_count, size_t *failed, CUstream stream),
         (to, from, sizes, count, attributes, attribute_indices, attribute_count, failed, per_thread(stream)),
         ((void)attributes, (void)attribute_indices, (void)attribute_count,
          submit_batch(to, from, sizes, count, stream, failed)))
STREAMED(cuMemcpyBatchAsync_v2, "cuMemcpyBatchAsync",
         (CUdeviceptr * to, CUdeviceptr *from, size_t *sizes, size_t count, CUmemcpyAttributes *attributes,
          size_t *attribute_indices, size_t attribute_count, CUstream stream),
         (to, from, sizes, count, attributes, attribute_indices, attribute_count, per_thread(stream)),
         ((void)attributes, (void)attribute_indices, (void)attribute_count,
          submit_batch(to, from, sizes, count, stream, NULL)))
