/*
 * Sparse arrays, and those whose memory is mapped later: the array itself has no memory, and its parts hold
 * what they are mapped onto (holds.h). Mapping is ordered by a stream; here a part changes hands with the
 * call, like memory that is freed on a stream.
 */
#include "hooks/ask.h"
#include "hooks/call.h"
#include "hooks/holds.h"

#define LEVEL_OF_TAIL  UINT32_MAX       /* what comes behind the levels */
#define LEVEL_OF_WHOLE (UINT32_MAX - 1) /* of an array that is mapped as a whole */

static bool is_mipmap(const CUarrayMapInfo *info)
{
    return info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
}

/* Only those that are mapped as a whole have requirements. */
static bool is_mapped_as_whole(const CUarrayMapInfo *info)
{
    CUDA_ARRAY_MEMORY_REQUIREMENTS ignored;
    int device = info->deviceBitMask == 0 ? 0 : __builtin_ctz(info->deviceBitMask);
    return (is_mipmap(info)
                ? ask_cuMipmappedArrayGetMemoryRequirements(&ignored, info->resource.mipmap, device)
                : ask_cuArrayGetMemoryRequirements(&ignored, info->resource.array, device)) == CUDA_SUCCESS;
}

static struct hold_region region_of(const CUarrayMapInfo *info)
{
    if (is_mapped_as_whole(info))
        return (struct hold_region){.level = LEVEL_OF_WHOLE, .extent = {1, 1, 1}};
    if (info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL)
        return (struct hold_region){.level = LEVEL_OF_TAIL,
                                    .layer = info->subresource.miptail.layer,
                                    .start = {info->subresource.miptail.offset, 0, 0},
                                    .extent = {info->subresource.miptail.size, 1, 1}};
    return (struct hold_region){
        .level = info->subresource.sparseLevel.level,
        .layer = info->subresource.sparseLevel.layer,
        .start = {info->subresource.sparseLevel.offsetX, info->subresource.sparseLevel.offsetY,
                  info->subresource.sparseLevel.offsetZ},
        .extent = {info->subresource.sparseLevel.extentWidth, info->subresource.sparseLevel.extentHeight,
                   info->subresource.sparseLevel.extentDepth}};
}

static void map_or_unmap(struct call *call, struct hold_change *change, const CUarrayMapInfo *info)
{
    struct hold_region region = region_of(info);
    uint64_t array = is_mipmap(info) ? (uintptr_t)info->resource.mipmap : (uintptr_t)info->resource.array;
    if (info->memOperationType == CU_MEM_OPERATION_TYPE_MAP)
        holds_add(call, change, HOLDS_OF_ARRAY, array, &region, info->memHandle.memHandle);
    else if (info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
        holds_take(call, change, HOLDS_OF_ARRAY, array, &region);
}

static void change_parts(struct call *call, struct hold_change *change, const CUarrayMapInfo *list,
                         unsigned int count)
{
    for (unsigned int i = 0; list != NULL && i < count && call->acts; i++)
        map_or_unmap(call, change, &list[i]);
}

HOOK(cuMemMapArrayAsync, (CUarrayMapInfo * list, unsigned int count, CUstream stream))
{
    struct hold_change change = {0};
    FORWARD(cuMemMapArrayAsync);
    change_parts(&call, &change, list, count);
    CUresult rc = REAL(list, count, stream);
    holds_changed(&call, rc, &change);
    return call_end(&call, rc);
}

HOOK(cuMemMapArrayAsync_ptsz, (CUarrayMapInfo * list, unsigned int count, CUstream stream))
{
    struct hold_change change = {0};
    FORWARD(cuMemMapArrayAsync_ptsz);
    change_parts(&call, &change, list, count);
    CUresult rc = REAL(list, count, stream);
    holds_changed(&call, rc, &change);
    return call_end(&call, rc);
}
