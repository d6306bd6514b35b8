/* Streams, and the questions about them. Work on them is done when it is given (copy.c, launch.c, pool.c). */
#include "stream.h"

#include <string.h>

#include "capture.h"
#include "entry.h"
#include "pool.h"

static unsigned long long last_id;

/* Each thread has one default stream of its own; it serves whatever context is current. */
static __thread struct stream thread_stream;

/* glibc's, for destructors of thread_local objects: it keeps this library loaded until the thread has ended.
 */
extern int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *library);
extern void *__dso_handle;

static void thread_ends(void *unused)
{
    (void)unused;
    if (entry_begin("", NEEDS_NOTHING) != CUDA_SUCCESS)
        return;
    capture_abandon(&thread_stream);
    entry_end(CUDA_SUCCESS);
}

void stream_begins_capture(const struct stream *stream)
{
    static __thread bool watched;
    if (stream == &thread_stream && !watched)
        watched = !__cxa_thread_atexit_impl(thread_ends, NULL, &__dso_handle);
}

CUresult stream_get(CUstream handle, struct stream **out)
{
    struct context *context = context_current();
    if (handle == CU_STREAM_PER_THREAD) {
        *out = &thread_stream;
        thread_stream.context = context;
    } else if (!handle || handle == CU_STREAM_LEGACY) {
        *out = context_legacy_stream(context);
    } else {
        *out = handle_get(handle, HANDLE_STREAM);
    }
    if (*out && (*out)->orphan)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult stream_for_work(CUstream handle, struct stream **out)
{
    CUresult result = stream_get(handle, out);
    return result == CUDA_SUCCESS ? capture_allows_work(*out) : result;
}

struct stream *stream_new(struct context *context, unsigned flags, int priority)
{
    struct stream *stream = handle_new(HANDLE_STREAM, sizeof *stream, context);
    if (!stream)
        return NULL;
    stream->flags = flags;
    stream->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    stream->context = context;
    stream->id = ++last_id;
    return stream;
}

static CUresult create(CUstream *out, unsigned flags, int priority)
{
    if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUstream)stream_new(context_current(), flags, priority);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return CALL("cuStreamCreate", NEEDS_CONTEXT, create(stream, flags, 0));
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    return CALL("cuStreamCreateWithPriority", NEEDS_CONTEXT, create(stream, flags, priority));
}

void stream_end(struct stream *stream)
{
    capture_abandon(stream);
    handle_end(stream, sizeof *stream);
}

static CUresult destroy(CUstream handle)
{
    struct stream *stream = handle_get(handle, HANDLE_STREAM);
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->orphan)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    stream_end(stream);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
    return CALL("cuStreamDestroy", NEEDS_INIT, destroy(stream));
}

EXPORT CUresult cuStreamDestroy(CUstream stream)
{
    return cuStreamDestroy_v2(stream);
}

/* Waiting and asking: nothing is ever pending, but a capturing stream cannot answer. */
static CUresult wait(CUstream handle, bool synchronize)
{
    struct stream *stream;
    CUresult result = stream_get(handle, &stream);
    if (result == CUDA_SUCCESS)
        result = capture_forbids_wait(stream);
    if (result == CUDA_SUCCESS && synchronize)
        pools_synchronize();
    return result;
}

#define WAITING(name, synchronize)                                                                           \
    EXPORT CUresult name(CUstream stream)                                                                    \
    {                                                                                                        \
        return CALL(#name, NEEDS_CONTEXT, wait(stream, synchronize));                                        \
    }                                                                                                        \
    EXPORT CUresult name##_ptsz(CUstream stream)                                                             \
    {                                                                                                        \
        return name(per_thread(stream));                                                                     \
    }
WAITING(cuStreamSynchronize, true)
WAITING(cuStreamQuery, false)

/* A question about a stream with one answer. */
#define QUESTION(name, answer_type, expression)                                                              \
    static CUresult ask_##name(CUstream handle, answer_type *answer)                                         \
    {                                                                                                        \
        struct stream *stream;                                                                               \
        CUresult result = answer ? stream_get(handle, &stream) : CUDA_ERROR_INVALID_VALUE;                   \
        if (result == CUDA_SUCCESS)                                                                          \
            *answer = expression;                                                                            \
        return result;                                                                                       \
    }                                                                                                        \
    EXPORT CUresult name(CUstream stream, answer_type *answer)                                               \
    {                                                                                                        \
        return CALL(#name, NEEDS_CONTEXT, ask_##name(stream, answer));                                       \
    }                                                                                                        \
    EXPORT CUresult name##_ptsz(CUstream stream, answer_type *answer)                                        \
    {                                                                                                        \
        return name(per_thread(stream), answer);                                                             \
    }
QUESTION(cuStreamGetPriority, int, stream->priority)
QUESTION(cuStreamGetFlags, unsigned int, stream->flags)
QUESTION(cuStreamGetId, unsigned long long, stream->id)
QUESTION(cuStreamGetCtx, CUcontext, (CUcontext)stream->context)
QUESTION(cuStreamGetDevice, CUdevice, stream->context->device->ordinal)

static CUresult get_context_v2(CUstream handle, CUcontext *context, CUgreenCtx *green)
{
    struct stream *stream;
    CUresult result = context ? stream_get(handle, &stream) : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    *context = stream->green ? NULL : (CUcontext)stream->context;
    if (green)
        *green = (CUgreenCtx)stream->green;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
    return CALL("cuStreamGetCtx", NEEDS_CONTEXT, get_context_v2(stream, context, green));
}

EXPORT CUresult cuStreamGetCtx_v2_ptsz(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
    return cuStreamGetCtx_v2(per_thread(stream), context, green);
}

static CUresult attach(CUstream handle, CUdeviceptr address, unsigned flags)
{
    struct stream *stream;
    const struct block *block = block_at(address);
    if (!block ||
        (block->kind != BLOCK_MANAGED && block->kind != BLOCK_PINNED && block->kind != BLOCK_REGISTERED) ||
        flags < CU_MEM_ATTACH_GLOBAL || flags > CU_MEM_ATTACH_SINGLE)
        return CUDA_ERROR_INVALID_VALUE;
    return stream_for_work(handle, &stream);
}

EXPORT CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t length,
                                       unsigned int flags)
{
    (void)length;
    return CALL("cuStreamAttachMemAsync", NEEDS_CONTEXT, attach(stream, address, flags));
}

EXPORT CUresult cuStreamAttachMemAsync_ptsz(CUstream stream, CUdeviceptr address, size_t length,
                                            unsigned int flags)
{
    return cuStreamAttachMemAsync(per_thread(stream), address, length, flags);
}

/* Attributes of a stream: none has an effect here, so every one is its default. */
#define ATTRIBUTE_BYTES 64 /* of CUlaunchAttributeValue */

static CUresult get_attribute(CUstream handle, void *value)
{
    struct stream *stream;
    CUresult result = value ? stream_get(handle, &stream) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        memset(value, 0, ATTRIBUTE_BYTES);
    return result;
}

EXPORT CUresult cuStreamGetAttribute(CUstream stream, unsigned int attribute, void *value)
{
    (void)attribute;
    return CALL("cuStreamGetAttribute", NEEDS_CONTEXT, get_attribute(stream, value));
}

EXPORT CUresult cuStreamGetAttribute_ptsz(CUstream stream, unsigned int attribute, void *value)
{
    return cuStreamGetAttribute(per_thread(stream), attribute, value);
}

static CUresult set_attribute(CUstream handle, const void *value)
{
    struct stream *stream;
    return value ? stream_get(handle, &stream) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuStreamSetAttribute(CUstream stream, unsigned int attribute, const void *value)
{
    (void)attribute;
    return CALL("cuStreamSetAttribute", NEEDS_CONTEXT, set_attribute(stream, value));
}

EXPORT CUresult cuStreamSetAttribute_ptsz(CUstream stream, unsigned int attribute, const void *value)
{
    return cuStreamSetAttribute(per_thread(stream), attribute, value);
}
