/* Writing and waiting for values in memory on a stream. A write happens at once; a wait never has to wait. */
#include "copy.h"

#include "entry.h"
#include "memory.h"
#include "stream.h"

/* Every layout of CUstreamBatchMemOpParams starts alike. */
struct operation {
    unsigned kind; /* CUstreamBatchMemOpType */
    CUdeviceptr address;
    uint64_t value;
    unsigned flags;
    CUdeviceptr alias;
    uint64_t unused;
};

enum { WAIT_32 = 1, WRITE_32 = 2, FLUSH = 3, WAIT_64 = 4, WRITE_64 = 5, BARRIER = 6 };

static CUresult write_value(CUdeviceptr address, uint64_t value, unsigned bytes, CUstream stream)
{
    struct fill low = {address, 0, 1, 1, (unsigned)value, 4},
                high = {address + 4, 0, 1, 1, (unsigned)(value >> 32), 4};
    CUresult result = fill_submit(&low, stream);
    return result == CUDA_SUCCESS && bytes == 8 ? fill_submit(&high, stream) : result;
}

static CUresult wait_value(CUdeviceptr address, CUstream handle)
{
    uint64_t left;
    struct stream *stream;
    return memory_at(address, &left) ? stream_for_work(handle, &stream) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult run(const struct operation *operation, CUstream stream)
{
    switch (operation->kind) {
    case WAIT_32:
    case WAIT_64:
        return wait_value(operation->address, stream);
    case WRITE_32:
        return write_value(operation->address, operation->value, 4, stream);
    case WRITE_64:
        return write_value(operation->address, operation->value, 8, stream);
    case FLUSH:
    case BARRIER:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult run_all(CUstream stream, unsigned count, const struct operation *operations, unsigned flags)
{
    if (!operations || !count || count > 256 || flags)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; result == CUDA_SUCCESS && i < count; i++)
        result = run(&operations[i], stream);
    return result;
}

/* The function, its twin for the thread's own default stream, and both under the name of CUDA 8 to 11.6. */
#define VALUE(name, value_type, expression)                                                                  \
    EXPORT CUresult name##_v2(CUstream stream, CUdeviceptr address, value_type value, unsigned int flags)    \
    {                                                                                                        \
        (void)flags, (void)value;                                                                            \
        return CALL(#name, NEEDS_CONTEXT, expression);                                                       \
    }                                                                                                        \
    EXPORT CUresult name##_v2_ptsz(CUstream stream, CUdeviceptr address, value_type value,                   \
                                   unsigned int flags)                                                       \
    {                                                                                                        \
        return name##_v2(per_thread(stream), address, value, flags);                                         \
    }                                                                                                        \
    EXPORT CUresult name(CUstream stream, CUdeviceptr address, value_type value, unsigned int flags)         \
    {                                                                                                        \
        return name##_v2(stream, address, value, flags);                                                     \
    }                                                                                                        \
    EXPORT CUresult name##_ptsz(CUstream stream, CUdeviceptr address, value_type value, unsigned int flags)  \
    {                                                                                                        \
        return name##_v2(per_thread(stream), address, value, flags);                                         \
    }
VALUE(cuStreamWriteValue32, cuuint32_t, write_value(address, value, 4, stream))
VALUE(cuStreamWriteValue64, cuuint64_t, write_value(address, value, 8, stream))
VALUE(cuStreamWaitValue32, cuuint32_t, wait_value(address, stream))
VALUE(cuStreamWaitValue64, cuuint64_t, wait_value(address, stream))

EXPORT CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, void *operations,
                                      unsigned int flags)
{
    return CALL("cuStreamBatchMemOp", NEEDS_CONTEXT, run_all(stream, count, operations, flags));
}

EXPORT CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned int count, void *operations,
                                           unsigned int flags)
{
    return cuStreamBatchMemOp_v2(per_thread(stream), count, operations, flags);
}

EXPORT CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, void *operations, unsigned int flags)
{
    return cuStreamBatchMemOp_v2(stream, count, operations, flags);
}

EXPORT CUresult cuStreamBatchMemOp_ptsz(CUstream stream, unsigned int count, void *operations,
                                        unsigned int flags)
{
    return cuStreamBatchMemOp_v2(per_thread(stream), count, operations, flags);
}
