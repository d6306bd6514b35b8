/* Arrays and mipmapped arrays. */
#include "hooks/array_size.h"
#include "hooks/call.h"
#include "hooks/holds.h"

static void made(const struct call *call, CUresult rc, uint64_t array,
                 const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    if (call->acts && rc == CUDA_SUCCESS &&
        (descriptor->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0)
        holds_array_made(array);
}

static void array_created(struct call *call, CUresult rc, const CUarray *array,
                          const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    made(call, rc, GRANTED((uintptr_t)*array), descriptor);
    call_allocated(call, rc,
                   &(struct allocation){BLOCK(ARRAY, DEVICE, ARRAY), .key = GRANTED((uintptr_t)*array),
                                        .size = descriptor->Width == 0 ? 0 : array_size(descriptor)});
}

HOOK(cuArrayCreate, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR_v1 *of))
{
    FORWARD(cuArrayCreate);
    CUresult rc = REAL(array, of);
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {0};
    if (of != NULL)
        descriptor = (CUDA_ARRAY3D_DESCRIPTOR){
            .Width = of->Width, .Height = of->Height, .Format = of->Format, .NumChannels = of->NumChannels};
    array_created(&call, rc, array, &descriptor);
    return call_end(&call, rc);
}

HOOK(cuArrayCreate_v2, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR *of))
{
    FORWARD(cuArrayCreate_v2);
    CUresult rc = REAL(array, of);
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {0};
    if (of != NULL)
        descriptor = (CUDA_ARRAY3D_DESCRIPTOR){
            .Width = of->Width, .Height = of->Height, .Format = of->Format, .NumChannels = of->NumChannels};
    array_created(&call, rc, array, &descriptor);
    return call_end(&call, rc);
}

HOOK(cuArray3DCreate, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *of))
{
    FORWARD(cuArray3DCreate);
    CUresult rc = REAL(array, of);
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {0};
    if (of != NULL)
        descriptor = (CUDA_ARRAY3D_DESCRIPTOR){.Width = of->Width,
                                               .Height = of->Height,
                                               .Depth = of->Depth,
                                               .Format = of->Format,
                                               .NumChannels = of->NumChannels,
                                               .Flags = of->Flags};
    array_created(&call, rc, array, &descriptor);
    return call_end(&call, rc);
}

HOOK(cuArray3DCreate_v2, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR *of))
{
    FORWARD(cuArray3DCreate_v2);
    CUresult rc = REAL(array, of);
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {0};
    if (of != NULL)
        descriptor = *of;
    array_created(&call, rc, array, &descriptor);
    return call_end(&call, rc);
}

HOOK(cuArrayDestroy, (CUarray array))
{
    struct freeing freeing;
    struct hold_change parts = {0};
    FORWARD(cuArrayDestroy);
    call_free(&call, &freeing, KEY_ARRAY, (uintptr_t)array);
    holds_take_all(&call, &parts, HOLDS_OF_ARRAY, (uintptr_t)array);
    CUresult rc = REAL(array);
    holds_changed(&call, rc, &parts);
    call_freed(&call, rc, &freeing);
    return call_end(&call, rc);
}

HOOK(cuMipmappedArrayCreate,
     (CUmipmappedArray * array, const CUDA_ARRAY3D_DESCRIPTOR *of, unsigned int levels))
{
    FORWARD(cuMipmappedArrayCreate);
    CUresult rc = REAL(array, of, levels);
    if (of != NULL)
        made(&call, rc, GRANTED((uintptr_t)*array), of);
    call_allocated(&call, rc,
                   &(struct allocation){BLOCK(ARRAY, DEVICE, ARRAY), .key = GRANTED((uintptr_t)*array),
                                        .size = of == NULL ? 0 : array_size_of_levels(of, levels)});
    return call_end(&call, rc);
}

HOOK(cuMipmappedArrayDestroy, (CUmipmappedArray array))
{
    struct freeing freeing;
    struct hold_change parts = {0};
    FORWARD(cuMipmappedArrayDestroy);
    call_free(&call, &freeing, KEY_ARRAY, (uintptr_t)array);
    holds_take_all(&call, &parts, HOLDS_OF_ARRAY, (uintptr_t)array);
    CUresult rc = REAL(array);
    holds_changed(&call, rc, &parts);
    call_freed(&call, rc, &freeing);
    return call_end(&call, rc);
}
