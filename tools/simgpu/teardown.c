/* What the end of a context does to each kind of object in it. */
#include <stdlib.h>

#include "array.h"
#include "capture.h"
#include "module.h"
#include "simgpu.h"

struct stream *context_legacy_stream(struct context *context)
{
    struct stream *stream = context->legacy;
    if (!stream) {
        context->legacy = stream = calloc(1, sizeof *stream);
        if (!stream)
            return NULL;
        stream->legacy = true;
        stream->context = context;
    }
    return stream;
}

void handle_teardown(struct handle *handle)
{
    switch (handle->type) {
    case HANDLE_STREAM:
        stream_end((struct stream *)handle);
        break;
    case HANDLE_EVENT:
        event_end((struct event *)handle);
        break;
    case HANDLE_MODULE:
        module_end(handle);
        break;
    case HANDLE_ARRAY:
        array_end((struct array *)handle);
        break;
    case HANDLE_MIPMAP:
        mipmap_end((struct mipmap *)handle);
        break;
    case HANDLE_EXTERNAL_MEMORY:
        external_end((struct external *)handle);
        break;
    case HANDLE_TEXTURE:
        texture_end(handle);
        break;
    default: /* no other kind belongs to a context */
        *handle->before = handle->next;
        if (handle->next)
            handle->next->before = handle->before;
        handle->before = NULL;
    }
}
