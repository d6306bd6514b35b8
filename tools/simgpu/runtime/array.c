/* Arrays and mipmaps: the runtime describes an element by the bits of its channels, the driver by a format.
 */
#include "runtime.h"

#include <stdbool.h>

/* Kinds that name one format of the driver's, with its channels. */
static const struct {
    cudaChannelFormatKind kind;
    CUarray_format format;
    unsigned channels;
} fixed_formats[] = {
    {cudaChannelFormatKindNV12, CU_AD_FORMAT_NV12, 3},
    {cudaChannelFormatKindUnsignedNormalized8X1, CU_AD_FORMAT_UNORM_INT8X1, 1},
    {cudaChannelFormatKindUnsignedNormalized8X2, CU_AD_FORMAT_UNORM_INT8X2, 2},
    {cudaChannelFormatKindUnsignedNormalized8X4, CU_AD_FORMAT_UNORM_INT8X4, 4},
    {cudaChannelFormatKindUnsignedNormalized16X1, CU_AD_FORMAT_UNORM_INT16X1, 1},
    {cudaChannelFormatKindUnsignedNormalized16X2, CU_AD_FORMAT_UNORM_INT16X2, 2},
    {cudaChannelFormatKindUnsignedNormalized16X4, CU_AD_FORMAT_UNORM_INT16X4, 4},
    {cudaChannelFormatKindSignedNormalized8X1, CU_AD_FORMAT_SNORM_INT8X1, 1},
    {cudaChannelFormatKindSignedNormalized8X2, CU_AD_FORMAT_SNORM_INT8X2, 2},
    {cudaChannelFormatKindSignedNormalized8X4, CU_AD_FORMAT_SNORM_INT8X4, 4},
    {cudaChannelFormatKindSignedNormalized16X1, CU_AD_FORMAT_SNORM_INT16X1, 1},
    {cudaChannelFormatKindSignedNormalized16X2, CU_AD_FORMAT_SNORM_INT16X2, 2},
    {cudaChannelFormatKindSignedNormalized16X4, CU_AD_FORMAT_SNORM_INT16X4, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed1, CU_AD_FORMAT_BC1_UNORM, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed1SRGB, CU_AD_FORMAT_BC1_UNORM_SRGB, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed2, CU_AD_FORMAT_BC2_UNORM, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed2SRGB, CU_AD_FORMAT_BC2_UNORM_SRGB, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed3, CU_AD_FORMAT_BC3_UNORM, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed3SRGB, CU_AD_FORMAT_BC3_UNORM_SRGB, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed4, CU_AD_FORMAT_BC4_UNORM, 1},
    {cudaChannelFormatKindSignedBlockCompressed4, CU_AD_FORMAT_BC4_SNORM, 1},
    {cudaChannelFormatKindUnsignedBlockCompressed5, CU_AD_FORMAT_BC5_UNORM, 2},
    {cudaChannelFormatKindSignedBlockCompressed5, CU_AD_FORMAT_BC5_SNORM, 2},
    {cudaChannelFormatKindUnsignedBlockCompressed6H, CU_AD_FORMAT_BC6H_UF16, 3},
    {cudaChannelFormatKindSignedBlockCompressed6H, CU_AD_FORMAT_BC6H_SF16, 3},
    {cudaChannelFormatKindUnsignedBlockCompressed7, CU_AD_FORMAT_BC7_UNORM, 4},
    {cudaChannelFormatKindUnsignedBlockCompressed7SRGB, CU_AD_FORMAT_BC7_UNORM_SRGB, 4},
    {cudaChannelFormatKindUnsignedNormalized1010102, CU_AD_FORMAT_UNORM_INT_101010_2, 4},
};

static bool plain_format(cudaChannelFormatKind kind, int bits, CUarray_format *format)
{
    static const CUarray_format formats[3][3] = {
        {CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT32},
        {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32},
        {0, CU_AD_FORMAT_HALF, CU_AD_FORMAT_FLOAT},
    };
    int column = bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : -1;
    if (kind > cudaChannelFormatKindFloat || column < 0)
        return false;
    *format = formats[kind][column];
    return *format != 0;
}

static bool driver_format(const struct cudaChannelFormatDesc *element, CUarray_format *format,
                          unsigned *channels)
{
    for (size_t i = 0; i < sizeof fixed_formats / sizeof *fixed_formats; i++)
        if (fixed_formats[i].kind == element->f) {
            *format = fixed_formats[i].format;
            *channels = fixed_formats[i].channels;
            return true;
        }
    *channels = (element->x != 0) + (element->y != 0) + (element->z != 0) + (element->w != 0);
    return plain_format(element->f, element->x, format);
}

static cudaError_t describe(CUDA_ARRAY3D_DESCRIPTOR *out, const struct cudaChannelFormatDesc *element,
                            struct cudaExtent extent, unsigned flags)
{
    if (!element || !driver_format(element, &out->Format, &out->NumChannels))
        return cudaErrorInvalidValue;
    out->Width = extent.width;
    out->Height = extent.height;
    out->Depth = extent.depth;
    out->Flags = flags;
    return cudaSuccess;
}

static cudaError_t create_3d(cudaArray_t *out, const struct cudaChannelFormatDesc *element,
                             struct cudaExtent extent, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    cudaError_t error = out ? describe(&descriptor, element, extent, flags) : cudaErrorInvalidValue;
    return error == cudaSuccess ? (cudaError_t)driver.cuArray3DCreate((CUarray *)out, &descriptor) : error;
}

static cudaError_t create_2d(cudaArray_t *out, const struct cudaChannelFormatDesc *element, size_t width,
                             size_t height, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR wide;
    struct cudaExtent extent = {width, height, 0};
    if (flags)
        return create_3d(out, element, extent, flags);
    cudaError_t error = out ? describe(&wide, element, extent, 0) : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return error;
    CUDA_ARRAY_DESCRIPTOR descriptor = {width, height, wide.Format, wide.NumChannels};
    return (cudaError_t)driver.cuArrayCreate((CUarray *)out, &descriptor);
}

EXPORT cudaError_t cudaMallocArray(cudaArray_t *out, const struct cudaChannelFormatDesc *element,
                                   size_t width, size_t height, unsigned int flags)
{
    return RUN(create_2d(out, element, width, height, flags));
}

EXPORT cudaError_t cudaMalloc3DArray(cudaArray_t *out, const struct cudaChannelFormatDesc *element,
                                     struct cudaExtent extent, unsigned int flags)
{
    return RUN(create_3d(out, element, extent, flags));
}

EXPORT cudaError_t cudaFreeArray(cudaArray_t array)
{
    return RUN(array ? driver.cuArrayDestroy((CUarray)array) : CUDA_SUCCESS);
}

static cudaError_t create_mipmap(cudaMipmappedArray_t *out, const struct cudaChannelFormatDesc *element,
                                 struct cudaExtent extent, unsigned levels, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    cudaError_t error = out ? describe(&descriptor, element, extent, flags) : cudaErrorInvalidValue;
    if (error != cudaSuccess)
        return error;
    return (cudaError_t)driver.cuMipmappedArrayCreate((CUmipmappedArray *)out, &descriptor, levels);
}

EXPORT cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *out,
                                            const struct cudaChannelFormatDesc *element,
                                            struct cudaExtent extent, unsigned int levels, unsigned int flags)
{
    return RUN(create_mipmap(out, element, extent, levels, flags));
}

EXPORT cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array)
{
    return RUN(array ? driver.cuMipmappedArrayDestroy((CUmipmappedArray)array) : CUDA_SUCCESS);
}

EXPORT cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *out, cudaMipmappedArray_const_t array,
                                              unsigned int level)
{
    return RUN(driver.cuMipmappedArrayGetLevel((CUarray *)out, (CUmipmappedArray)array, level));
}

static cudaError_t mapped_mipmap(cudaMipmappedArray_t *out, cudaExternalMemory_t memory,
                                 const struct cudaExternalMemoryMipmappedArrayDesc *mapping)
{
    if (!out || !mapping)
        return cudaErrorInvalidValue;
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC own = {.offset = mapping->offset,
                                                     .numLevels = mapping->numLevels};
    cudaError_t error = describe(&own.arrayDesc, &mapping->formatDesc, mapping->extent, mapping->flags);
    if (error != cudaSuccess)
        return error;
    return (cudaError_t)driver.cuExternalMemoryGetMappedMipmappedArray((CUmipmappedArray *)out, memory, &own);
}

EXPORT cudaError_t
cudaExternalMemoryGetMappedMipmappedArray(cudaMipmappedArray_t *out, cudaExternalMemory_t memory,
                                          const struct cudaExternalMemoryMipmappedArrayDesc *mapping)
{
    return RUN(mapped_mipmap(out, memory, mapping));
}

EXPORT struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind f)
{
    return (struct cudaChannelFormatDesc){x, y, z, w, f};
}
