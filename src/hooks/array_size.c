/*
 * Arithmetic on array descriptors (array_size.h), after NVIDIA's text for cuArray3DCreate and
 * cuMipmappedArrayCreate: a zero height or depth means the array does not have that dimension; in a layered
 * array or a cubemap the depth counts layers or faces, which do not shrink from level to level; a sparse or
 * deferred array has no memory of its own until some is mapped to it.
 */
#include "hooks/array_size.h"

#include <stdbool.h>

#include "cuda/abi_formats.h"

#define LEVELS_MAX 32 /* more than any extent can be halved; a refused descriptor may say anything */

struct texel {
    CUarray_format format;
    unsigned bits, channels, block; /* as in abi_formats.h */
};

static const struct texel texels[] = {
#define AS_TEXEL(name, value, bits, channels, block) {name, bits, channels, block},
    CUDA_ARRAY_FORMATS(AS_TEXEL)
#undef AS_TEXEL
};

static uint64_t at_least_one(uint64_t extent)
{
    return extent == 0 ? 1 : extent;
}

static uint64_t level_extent(uint64_t extent, unsigned int level)
{
    return at_least_one(level < 64 ? extent >> level : 0);
}

static uint64_t in_blocks(uint64_t extent, unsigned block)
{
    return (extent + block - 1) / block * block;
}

static uint64_t size_of_level(const CUDA_ARRAY3D_DESCRIPTOR *array, const struct texel *texel,
                              unsigned int level)
{
    bool depth_is_layers = (array->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
    uint64_t width = in_blocks(level_extent(array->Width, level), texel->block);
    uint64_t height = in_blocks(level_extent(array->Height, level), texel->block);
    uint64_t depth = depth_is_layers ? at_least_one(array->Depth) : level_extent(array->Depth, level);
    uint64_t bits = texel->bits * (texel->channels == 0 ? (uint64_t)array->NumChannels : 1);
    return (width * height * depth * bits + 7) / 8;
}

uint64_t array_size_of_levels(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned int levels)
{
    const struct texel *texel = NULL;
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof texels / sizeof *texels; i++) {
        if (texels[i].format == array->Format)
            texel = &texels[i];
    }
    if (texel == NULL || (array->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0)
        return 0;
    if (levels == 0)
        levels = 1;
    for (unsigned int level = 0; level < levels && level < LEVELS_MAX; level++)
        bytes += size_of_level(array, texel, level);
    return bytes;
}

uint64_t array_size(const CUDA_ARRAY3D_DESCRIPTOR *array)
{
    return array_size_of_levels(array, 1);
}
