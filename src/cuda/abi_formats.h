/*
 * Every element format of a CUDA array, as of CUDA 13.0, and what a texel of it takes.
 * X(name, value, bits, channels, block): `channels` 0 means that the descriptor's NumChannels says how many,
 * each of `bits`; otherwise the format fixes the channels and `bits` is that of a whole texel, averaged over
 * the planes of a subsampled format. Block-compressed formats store squares of `block` texels on a side.
 */
#ifndef CUDA_ABI_FORMATS_H
#define CUDA_ABI_FORMATS_H

#define CUDA_ARRAY_FORMATS(X)                                                                                \
    X(CU_AD_FORMAT_UNSIGNED_INT8, 0x01, 8, 0, 1)                                                             \
    X(CU_AD_FORMAT_UNSIGNED_INT16, 0x02, 16, 0, 1)                                                           \
    X(CU_AD_FORMAT_UNSIGNED_INT32, 0x03, 32, 0, 1)                                                           \
    X(CU_AD_FORMAT_SIGNED_INT8, 0x08, 8, 0, 1)                                                               \
    X(CU_AD_FORMAT_SIGNED_INT16, 0x09, 16, 0, 1)                                                             \
    X(CU_AD_FORMAT_SIGNED_INT32, 0x0a, 32, 0, 1)                                                             \
    X(CU_AD_FORMAT_HALF, 0x10, 16, 0, 1)                                                                     \
    X(CU_AD_FORMAT_FLOAT, 0x20, 32, 0, 1)                                                                    \
    X(CU_AD_FORMAT_NV12, 0xb0, 12, 3, 1)                                                                     \
    X(CU_AD_FORMAT_UNORM_INT8X1, 0xc0, 8, 1, 1)                                                              \
    X(CU_AD_FORMAT_UNORM_INT8X2, 0xc1, 16, 2, 1)                                                             \
    X(CU_AD_FORMAT_UNORM_INT8X4, 0xc2, 32, 4, 1)                                                             \
    X(CU_AD_FORMAT_UNORM_INT16X1, 0xc3, 16, 1, 1)                                                            \
    X(CU_AD_FORMAT_UNORM_INT16X2, 0xc4, 32, 2, 1)                                                            \
    X(CU_AD_FORMAT_UNORM_INT16X4, 0xc5, 64, 4, 1)                                                            \
    X(CU_AD_FORMAT_SNORM_INT8X1, 0xc6, 8, 1, 1)                                                              \
    X(CU_AD_FORMAT_SNORM_INT8X2, 0xc7, 16, 2, 1)                                                             \
    X(CU_AD_FORMAT_SNORM_INT8X4, 0xc8, 32, 4, 1)                                                             \
    X(CU_AD_FORMAT_SNORM_INT16X1, 0xc9, 16, 1, 1)                                                            \
    X(CU_AD_FORMAT_SNORM_INT16X2, 0xca, 32, 2, 1)                                                            \
    X(CU_AD_FORMAT_SNORM_INT16X4, 0xcb, 64, 4, 1)                                                            \
    X(CU_AD_FORMAT_BC1_UNORM, 0x91, 4, 4, 4)                                                                 \
    X(CU_AD_FORMAT_BC1_UNORM_SRGB, 0x92, 4, 4, 4)                                                            \
    X(CU_AD_FORMAT_BC2_UNORM, 0x93, 8, 4, 4)                                                                 \
    X(CU_AD_FORMAT_BC2_UNORM_SRGB, 0x94, 8, 4, 4)                                                            \
    X(CU_AD_FORMAT_BC3_UNORM, 0x95, 8, 4, 4)                                                                 \
    X(CU_AD_FORMAT_BC3_UNORM_SRGB, 0x96, 8, 4, 4)                                                            \
    X(CU_AD_FORMAT_BC4_UNORM, 0x97, 4, 1, 4)                                                                 \
    X(CU_AD_FORMAT_BC4_SNORM, 0x98, 4, 1, 4)                                                                 \
    X(CU_AD_FORMAT_BC5_UNORM, 0x99, 8, 2, 4)                                                                 \
    X(CU_AD_FORMAT_BC5_SNORM, 0x9a, 8, 2, 4)                                                                 \
    X(CU_AD_FORMAT_BC6H_UF16, 0x9b, 8, 3, 4)                                                                 \
    X(CU_AD_FORMAT_BC6H_SF16, 0x9c, 8, 3, 4)                                                                 \
    X(CU_AD_FORMAT_BC7_UNORM, 0x9d, 8, 4, 4)                                                                 \
    X(CU_AD_FORMAT_BC7_UNORM_SRGB, 0x9e, 8, 4, 4)                                                            \
    X(CU_AD_FORMAT_P010, 0x9f, 24, 3, 1)                                                                     \
    X(CU_AD_FORMAT_P016, 0xa1, 24, 3, 1)                                                                     \
    X(CU_AD_FORMAT_NV16, 0xa2, 16, 3, 1)                                                                     \
    X(CU_AD_FORMAT_P210, 0xa3, 32, 3, 1)                                                                     \
    X(CU_AD_FORMAT_P216, 0xa4, 32, 3, 1)                                                                     \
    X(CU_AD_FORMAT_YUY2, 0xa5, 16, 2, 1)                                                                     \
    X(CU_AD_FORMAT_Y210, 0xa6, 32, 2, 1)                                                                     \
    X(CU_AD_FORMAT_Y216, 0xa7, 32, 2, 1)                                                                     \
    X(CU_AD_FORMAT_AYUV, 0xa8, 32, 4, 1)                                                                     \
    X(CU_AD_FORMAT_Y410, 0xa9, 32, 4, 1)                                                                     \
    X(CU_AD_FORMAT_Y416, 0xb1, 64, 4, 1)                                                                     \
    X(CU_AD_FORMAT_Y444_PLANAR8, 0xb2, 24, 3, 1)                                                             \
    X(CU_AD_FORMAT_Y444_PLANAR10, 0xb3, 48, 3, 1)                                                            \
    X(CU_AD_FORMAT_YUV444_8bit_SemiPlanar, 0xb4, 24, 3, 1)                                                   \
    X(CU_AD_FORMAT_YUV444_16bit_SemiPlanar, 0xb5, 48, 3, 1)                                                  \
    X(CU_AD_FORMAT_UNORM_INT_101010_2, 0x50, 32, 4, 1)

#endif
