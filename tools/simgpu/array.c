/* The driver's functions for arrays and mipmaps. */
#include "array.h"

#include "entry.h"

/* Whether memory stands behind at once. */
static bool has_memory(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    return !(descriptor->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING));
}

static struct block *memory_new(uint64_t bytes)
{
    struct context *context = context_current();
    struct block *block = block_new(&context->device_memory, bytes, BLOCK_ARRAY);
    if (block) {
        block->device = context->device;
        block_own(block, context);
    }
    return block;
}

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    if (!out || !descriptor || !array_is_valid(descriptor))
        return CUDA_ERROR_INVALID_VALUE;
    struct array *array = handle_new(HANDLE_ARRAY, sizeof *array, context_current());
    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    array->descriptor = *descriptor;
    array->bytes = array_bytes(descriptor);
    if (has_memory(descriptor) && !(array->block = memory_new(array->bytes))) {
        handle_end(array, sizeof *array);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = (CUarray)array;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    return CALL("cuArray3DCreate", NEEDS_MEMORY_CALL, create(array, descriptor));
}

EXPORT CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *old)
{
    CUDA_ARRAY3D_DESCRIPTOR wide = {0};
    if (old)
        wide = (CUDA_ARRAY3D_DESCRIPTOR){old->Width,  old->Height,      old->Depth,
                                         old->Format, old->NumChannels, old->Flags};
    return CALL("cuArray3DCreate", NEEDS_MEMORY_CALL, create(array, old ? &wide : NULL));
}

EXPORT CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *flat)
{
    CUDA_ARRAY3D_DESCRIPTOR wide = {0};
    if (flat)
        wide = (CUDA_ARRAY3D_DESCRIPTOR){flat->Width, flat->Height, 0, flat->Format, flat->NumChannels, 0};
    return CALL("cuArrayCreate", NEEDS_MEMORY_CALL, create(array, flat ? &wide : NULL));
}

EXPORT CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *old)
{
    CUDA_ARRAY3D_DESCRIPTOR wide = {0};
    if (old)
        wide = (CUDA_ARRAY3D_DESCRIPTOR){old->Width, old->Height, 0, old->Format, old->NumChannels, 0};
    return CALL("cuArrayCreate", NEEDS_MEMORY_CALL, create(array, old ? &wide : NULL));
}

/* ---- describing ---- */

static CUresult describe(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray handle)
{
    const struct array *array = handle_get(handle, HANDLE_ARRAY);
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = array->descriptor;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *descriptor, CUarray array)
{
    return CALL("cuArray3DGetDescriptor", NEEDS_CONTEXT, describe(descriptor, array));
}

EXPORT CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor, CUarray array)
{
    CUDA_ARRAY3D_DESCRIPTOR wide = {0};
    CUresult result =
        CALL("cuArray3DGetDescriptor", NEEDS_CONTEXT, describe(descriptor ? &wide : NULL, array));
    if (result == CUDA_SUCCESS)
        *descriptor =
            (CUDA_ARRAY3D_DESCRIPTOR_v1){(unsigned)wide.Width, (unsigned)wide.Height, (unsigned)wide.Depth,
                                         wide.Format,          wide.NumChannels,      wide.Flags};
    return result;
}

EXPORT CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *descriptor, CUarray array)
{
    CUDA_ARRAY3D_DESCRIPTOR wide = {0};
    CUresult result = CALL("cuArrayGetDescriptor", NEEDS_CONTEXT, describe(descriptor ? &wide : NULL, array));
    if (result == CUDA_SUCCESS)
        *descriptor = (CUDA_ARRAY_DESCRIPTOR){wide.Width, wide.Height, wide.Format, wide.NumChannels};
    return result;
}

EXPORT CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *descriptor, CUarray array)
{
    CUDA_ARRAY3D_DESCRIPTOR wide = {0};
    CUresult result = CALL("cuArrayGetDescriptor", NEEDS_CONTEXT, describe(descriptor ? &wide : NULL, array));
    if (result == CUDA_SUCCESS)
        *descriptor = (CUDA_ARRAY_DESCRIPTOR_v1){(unsigned)wide.Width, (unsigned)wide.Height, wide.Format,
                                                 wide.NumChannels};
    return result;
}

static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, uint64_t bytes, unsigned flags)
{
    if (!out || !(flags & CUDA_ARRAY3D_DEFERRED_MAPPING))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = round_up(bytes, GRANULE), .alignment = GRANULE};
    return CUDA_SUCCESS;
}

static CUresult array_requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray handle)
{
    const struct array *array = handle_get(handle, HANDLE_ARRAY);
    return array ? requirements(out, array->bytes, array->descriptor.Flags) : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray array,
                                             CUdevice device)
{
    (void)device;
    return CALL("cuArrayGetMemoryRequirements", NEEDS_CONTEXT, array_requirements(out, array));
}

static CUresult mipmap_requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUmipmappedArray handle)
{
    const struct mipmap *mipmap = handle_get(handle, HANDLE_MIPMAP);
    if (!mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    return requirements(out, mipmap_bytes(&mipmap->descriptor, mipmap->levels), mipmap->descriptor.Flags);
}

EXPORT CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out,
                                                      CUmipmappedArray mipmap, CUdevice device)
{
    (void)device;
    return CALL("cuMipmappedArrayGetMemoryRequirements", NEEDS_CONTEXT, mipmap_requirements(out, mipmap));
}

/* ---- ending ---- */

void array_end(struct array *array)
{
    for (int i = 0; i < 3; i++)
        if (array->planes[i])
            array_end(array->planes[i]);
    if (array->block)
        block_end(array->block);
    sparse_end(array->sparse);
    handle_end(array, sizeof *array);
}

static CUresult destroy(CUarray handle)
{
    struct array *array = handle_get(handle, HANDLE_ARRAY);
    if (!array || array->mipmap || array->parent) /* levels and planes end with what they are part of */
        return CUDA_ERROR_INVALID_HANDLE;
    array_end(array);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuArrayDestroy(CUarray array)
{
    return CALL("cuArrayDestroy", NEEDS_MEMORY_CALL, destroy(array));
}

/* ---- planes ---- */

static CUresult get_plane(CUarray *out, CUarray handle, unsigned index)
{
    struct array *array = handle_get(handle, HANDLE_ARRAY);
    struct array described = {.parent = array};
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || index > 2 || !array_describe_plane(&described, array, index))
        return CUDA_ERROR_INVALID_VALUE;
    struct array *plane = array->planes[index];
    if (!plane) {
        array->planes[index] = plane = handle_new(HANDLE_ARRAY, sizeof *plane, NULL);
        if (!plane)
            return CUDA_ERROR_OUT_OF_MEMORY;
        plane->descriptor = described.descriptor;
        plane->offset = described.offset;
        plane->bytes = described.bytes;
        plane->parent = array;
    }
    *out = (CUarray)plane;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuArrayGetPlane(CUarray *plane, CUarray array, unsigned int index)
{
    return CALL("cuArrayGetPlane", NEEDS_CONTEXT, get_plane(plane, array, index));
}

/* ---- mipmaps ---- */

struct mipmap *mipmap_on(struct block *block, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels)
{
    struct mipmap *mipmap = handle_new(HANDLE_MIPMAP, sizeof *mipmap, context_current());
    if (!mipmap)
        return NULL;
    mipmap->descriptor = *descriptor;
    mipmap->levels = mipmap_levels(descriptor, levels);
    mipmap->block = block;
    return mipmap;
}

static CUresult create_mipmap(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                              unsigned levels)
{
    if (!out || !descriptor || !array_is_valid(descriptor))
        return CUDA_ERROR_INVALID_VALUE;
    struct mipmap *mipmap = mipmap_on(NULL, descriptor, levels);
    if (!mipmap)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (has_memory(descriptor) && !(mipmap->block = memory_new(mipmap_bytes(descriptor, mipmap->levels)))) {
        mipmap_end(mipmap);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = (CUmipmappedArray)mipmap;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *mipmap, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                       unsigned int levels)
{
    return CALL("cuMipmappedArrayCreate", NEEDS_MEMORY_CALL, create_mipmap(mipmap, descriptor, levels));
}

void mipmap_end(struct mipmap *mipmap)
{
    for (unsigned level = 0; level < mipmap->levels; level++)
        if (mipmap->arrays[level])
            array_end(mipmap->arrays[level]);
    if (mipmap->block)
        block_end(mipmap->block);
    sparse_end(mipmap->sparse);
    handle_end(mipmap, sizeof *mipmap);
}

static CUresult destroy_mipmap(CUmipmappedArray handle)
{
    struct mipmap *mipmap = handle_get(handle, HANDLE_MIPMAP);
    if (!mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    mipmap_end(mipmap);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmap)
{
    return CALL("cuMipmappedArrayDestroy", NEEDS_MEMORY_CALL, destroy_mipmap(mipmap));
}

static CUresult get_level(CUarray *out, CUmipmappedArray handle, unsigned level)
{
    struct mipmap *mipmap = handle_get(handle, HANDLE_MIPMAP);
    if (!mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || level >= mipmap->levels)
        return CUDA_ERROR_INVALID_VALUE;
    struct array *array = mipmap->arrays[level];
    if (!array) {
        mipmap->arrays[level] = array = handle_new(HANDLE_ARRAY, sizeof *array, NULL);
        if (!array)
            return CUDA_ERROR_OUT_OF_MEMORY;
        array->mipmap = mipmap;
        array_describe_level(array, mipmap, level);
    }
    *out = (CUarray)array;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMipmappedArrayGetLevel(CUarray *array, CUmipmappedArray mipmap, unsigned int level)
{
    return CALL("cuMipmappedArrayGetLevel", NEEDS_CONTEXT, get_level(array, mipmap, level));
}
