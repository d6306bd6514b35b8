/*
 * Green contexts: a part of a device's multiprocessors, and a context that uses only those. Memory allocated
 * while one is current is the primary context's, which the green one retains.
 */
#include <stdlib.h>

#include "entry.h"
#include "stream.h"

#define MULTIPROCESSORS 108
#define SMALLEST_PART   4 /* multiprocessors */
#define PART_STEP       2

struct green {
    struct handle handle;
    struct context *context; /* what it looks like as a CUcontext */
    struct device *device;
    unsigned long long id;
    unsigned multiprocessors;
};

struct description { /* CUdevResourceDesc */
    struct handle handle;
    unsigned multiprocessors;
};

static unsigned long long last_id;

/* ---- resources ---- */

static CUresult resource(CUdevResource *out, CUdevResourceType type, unsigned multiprocessors)
{
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    *out = (CUdevResource){.type = type, .sm = {multiprocessors, SMALLEST_PART, PART_STEP}};
    return CUDA_SUCCESS;
}

static CUresult device_resource(CUdevice device, CUdevResource *out, CUdevResourceType type)
{
    return device_get(device) ? resource(out, type, MULTIPROCESSORS) : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *out, CUdevResourceType type)
{
    return CALL("cuDeviceGetDevResource", NEEDS_INIT, device_resource(device, out, type));
}

static CUresult green_resource(CUgreenCtx handle, CUdevResource *out, CUdevResourceType type)
{
    const struct green *green = handle_get(handle, HANDLE_GREEN);
    return green ? resource(out, type, green->multiprocessors) : CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT CUresult cuGreenCtxGetDevResource(CUgreenCtx context, CUdevResource *out, CUdevResourceType type)
{
    return CALL("cuGreenCtxGetDevResource", NEEDS_INIT, green_resource(context, out, type));
}

static CUresult context_resource(CUcontext handle, CUdevResource *out, CUdevResourceType type)
{
    const struct context *context = context_get(handle);
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return resource(out, type, context->green ? context->green->multiprocessors : MULTIPROCESSORS);
}

EXPORT CUresult cuCtxGetDevResource(CUcontext context, CUdevResource *out, CUdevResourceType type)
{
    return CALL("cuCtxGetDevResource", NEEDS_INIT, context_resource(context, out, type));
}

/* Equal groups of at least `least`; with no place for them, only how many there would be. */
static CUresult split(CUdevResource *groups, unsigned *count, const CUdevResource *input, CUdevResource *rest,
                      unsigned least)
{
    if (!count || !input)
        return CUDA_ERROR_INVALID_VALUE;
    if (input->type != CU_DEV_RESOURCE_TYPE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    unsigned size = (unsigned)round_up(least < SMALLEST_PART ? SMALLEST_PART : least, PART_STEP);
    unsigned most = input->sm.smCount / size;
    if (!most)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    *count = groups && *count < most ? *count : most;
    for (unsigned i = 0; groups && i < *count; i++)
        resource(&groups[i], CU_DEV_RESOURCE_TYPE_SM, size);
    if (groups && rest)
        resource(rest, CU_DEV_RESOURCE_TYPE_SM, input->sm.smCount - *count * size);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevSmResourceSplitByCount(CUdevResource *groups, unsigned int *count,
                                            const CUdevResource *input, CUdevResource *rest,
                                            unsigned int flags, unsigned int least)
{
    (void)flags;
    return CALL("cuDevSmResourceSplitByCount", NEEDS_INIT, split(groups, count, input, rest, least));
}

/* Descriptions are never ended: CUDA has no call for it. */
static CUresult describe(CUdevResourceDesc *out, const CUdevResource *resources, unsigned count)
{
    if (!out || !resources || !count)
        return CUDA_ERROR_INVALID_VALUE;
    struct description *description = handle_new(HANDLE_RESOURCE_DESC, sizeof *description, NULL);
    if (!description)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < count; i++)
        description->multiprocessors += resources[i].sm.smCount;
    *out = (CUdevResourceDesc)description;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *out, CUdevResource *resources,
                                          unsigned int count)
{
    return CALL("cuDevResourceGenerateDesc", NEEDS_INIT, describe(out, resources, count));
}

/* ---- contexts ---- */

static CUresult create(CUgreenCtx *out, CUdevResourceDesc handle, CUdevice ordinal, unsigned flags)
{
    const struct description *description = handle_get(handle, HANDLE_RESOURCE_DESC);
    struct device *device = device_get(ordinal);
    struct context *primary;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!out || !description || flags != CU_GREEN_CTX_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = primary_retain(device, &primary);
    if (result != CUDA_SUCCESS)
        return result;
    struct green *green = handle_new(HANDLE_GREEN, sizeof *green, NULL);
    struct context *context = green ? context_view(primary) : NULL;
    if (!context) {
        if (green)
            handle_end(green, sizeof *green);
        primary_release(device);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    green->context = context;
    green->device = device;
    green->multiprocessors = description->multiprocessors;
    green->id = ++last_id;
    context->green = green;
    *out = (CUgreenCtx)green;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc description, CUdevice device,
                                 unsigned int flags)
{
    return CALL("cuGreenCtxCreate", NEEDS_INIT, create(out, description, device, flags));
}

/* Its streams are not destroyed, but good for nothing any more. */
static CUresult destroy(CUgreenCtx handle)
{
    struct green *green = handle_get(handle, HANDLE_GREEN);
    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    for (struct handle *each = green->context->green_parent->handles; each; each = each->next)
        if (each->type == HANDLE_STREAM && ((struct stream *)each)->green == green)
            ((struct stream *)each)->orphan = true;
    context_end_view(green->context);
    primary_release(green->device);
    handle_end(green, sizeof *green);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx context)
{
    return CALL("cuGreenCtxDestroy", NEEDS_INIT, destroy(context));
}

static CUresult as_context(CUcontext *out, CUgreenCtx handle)
{
    const struct green *green = handle_get(handle, HANDLE_GREEN);
    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUcontext)green->context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxFromGreenCtx(CUcontext *out, CUgreenCtx context)
{
    return CALL("cuCtxFromGreenCtx", NEEDS_INIT, as_context(out, context));
}

static CUresult get_id(CUgreenCtx handle, unsigned long long *id)
{
    const struct green *green = handle_get(handle, HANDLE_GREEN);
    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    *id = green->id;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxGetId(CUgreenCtx context, unsigned long long *id)
{
    return CALL("cuGreenCtxGetId", NEEDS_INIT, get_id(context, id));
}

/* ---- streams and events ---- */

static CUresult create_stream(CUstream *out, CUgreenCtx handle, unsigned flags, int priority)
{
    struct green *green = handle_get(handle, HANDLE_GREEN);
    if (!green)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!out || flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    struct stream *stream = stream_new(green->context->green_parent, flags, priority);
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stream->green = green;
    *out = (CUstream)stream;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx context, unsigned int flags, int priority)
{
    return CALL("cuGreenCtxStreamCreate", NEEDS_INIT, create_stream(stream, context, flags, priority));
}

static CUresult stream_green(CUstream handle, CUgreenCtx *out)
{
    struct stream *stream;
    CUresult result = out ? stream_get(handle, &stream) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *out = (CUgreenCtx)stream->green;
    return result;
}

EXPORT CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx *context)
{
    return CALL("cuStreamGetGreenCtx", NEEDS_CONTEXT, stream_green(stream, context));
}

/* All work of a context up to now has happened, so an event for it has nothing to wait for. */
static CUresult event_of(const void *context, CUevent event)
{
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return handle_get(event, HANDLE_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuGreenCtxRecordEvent(CUgreenCtx context, CUevent event)
{
    return CALL("cuGreenCtxRecordEvent", NEEDS_INIT, event_of(handle_get(context, HANDLE_GREEN), event));
}

EXPORT CUresult cuGreenCtxWaitEvent(CUgreenCtx context, CUevent event)
{
    return CALL("cuGreenCtxWaitEvent", NEEDS_INIT, event_of(handle_get(context, HANDLE_GREEN), event));
}

EXPORT CUresult cuCtxRecordEvent(CUcontext context, CUevent event)
{
    return CALL("cuCtxRecordEvent", NEEDS_INIT, event_of(context_get(context), event));
}

EXPORT CUresult cuCtxWaitEvent(CUcontext context, CUevent event)
{
    return CALL("cuCtxWaitEvent", NEEDS_INIT, event_of(context_get(context), event));
}
