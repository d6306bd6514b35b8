/* Texture and surface objects: numbers for what a kernel would read through; kernels do not run here. */
#include "entry.h"

struct object {
    struct handle handle;
    bool surface;
};

/* A CUDA_RESOURCE_DESC begins with the type of what is bound: arrays, mipmaps, linear memory, pitched memory.
 */
enum { LAST_RESOURCE_TYPE = 3 };

static CUresult create(unsigned long long *out, const unsigned *resource, bool surface)
{
    if (!out || !resource || *resource > LAST_RESOURCE_TYPE)
        return CUDA_ERROR_INVALID_VALUE;
    struct object *object = handle_new(HANDLE_TEXTURE, sizeof *object, context_current());
    if (!object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    object->surface = surface;
    *out = (unsigned long long)object;
    return CUDA_SUCCESS;
}

void texture_end(void *object)
{
    handle_end(object, sizeof(struct object));
}

static CUresult destroy(unsigned long long number, bool surface)
{
    struct object *object = handle_get((void *)number, HANDLE_TEXTURE);
    if (!object || object->surface != surface)
        return CUDA_ERROR_INVALID_VALUE;
    texture_end(object);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexObjectCreate(CUtexObject *out, const void *resource, const void *texture,
                                  const void *view)
{
    (void)view;
    return CALL("cuTexObjectCreate", NEEDS_CONTEXT,
                texture ? create(out, resource, false) : CUDA_ERROR_INVALID_VALUE);
}

EXPORT CUresult cuTexObjectDestroy(CUtexObject object)
{
    return CALL("cuTexObjectDestroy", NEEDS_CONTEXT, destroy(object, false));
}

EXPORT CUresult cuSurfObjectCreate(CUsurfObject *out, const void *resource)
{
    return CALL("cuSurfObjectCreate", NEEDS_CONTEXT, create(out, resource, true));
}

EXPORT CUresult cuSurfObjectDestroy(CUsurfObject object)
{
    return CALL("cuSurfObjectDestroy", NEEDS_CONTEXT, destroy(object, true));
}
