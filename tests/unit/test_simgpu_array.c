/* Arrays and mipmaps of the simulated GPU: how large they are, what they hold, what is no array. */
#include "simgpu/child.h"

static CUDA_ARRAY3D_DESCRIPTOR describe(size_t width, size_t height, size_t depth, CUarray_format format,
                                        unsigned channels, unsigned flags)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){width, height, depth, format, channels, flags};
}

/* Bytes are seen by what the array leaves of a device with room for little else. */
static size_t taken(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels)
{
    size_t before = free_bytes(), after;
    CUarray array;
    CUmipmappedArray mipmap;
    if (levels) {
        OK(CU(cuMipmappedArrayCreate)(&mipmap, descriptor, levels));
        after = free_bytes();
        OK(CU(cuMipmappedArrayDestroy)(mipmap));
    } else {
        OK(CU(cuArray3DCreate_v2)(&array, descriptor));
        after = free_bytes();
        OK(CU(cuArrayDestroy)(array));
    }
    EXPECT(free_bytes(), before);
    return before - after;
}

/* 4096 x 4096 texels are 16 Mi of them: so many MiB as a texel has bytes, times 16. */
static void body_test_every_format_takes_its_bits(void)
{
    static const struct {
        CUarray_format format;
        unsigned channels, bits;
    } rows[] = {
        {CU_AD_FORMAT_UNSIGNED_INT8, 1, 8},
        {CU_AD_FORMAT_SIGNED_INT8, 4, 32},
        {CU_AD_FORMAT_UNSIGNED_INT16, 2, 32},
        {CU_AD_FORMAT_SIGNED_INT16, 1, 16},
        {CU_AD_FORMAT_UNSIGNED_INT32, 4, 128},
        {CU_AD_FORMAT_SIGNED_INT32, 2, 64},
        {CU_AD_FORMAT_HALF, 4, 64},
        {CU_AD_FORMAT_FLOAT, 1, 32},
        {CU_AD_FORMAT_NV12, 3, 12},
        {CU_AD_FORMAT_UNORM_INT8X2, 2, 16},
        {CU_AD_FORMAT_SNORM_INT16X4, 4, 64},
        {CU_AD_FORMAT_BC1_UNORM, 4, 4},
        {CU_AD_FORMAT_BC3_UNORM_SRGB, 4, 8},
        {CU_AD_FORMAT_BC4_SNORM, 1, 4},
        {CU_AD_FORMAT_BC5_UNORM, 2, 8},
        {CU_AD_FORMAT_BC6H_UF16, 3, 8},
        {CU_AD_FORMAT_BC7_UNORM, 4, 8},
        {CU_AD_FORMAT_P016, 3, 24},
        {CU_AD_FORMAT_YUY2, 2, 16},
        {CU_AD_FORMAT_Y416, 4, 64},
        {CU_AD_FORMAT_Y444_PLANAR8, 3, 24},
        {CU_AD_FORMAT_UNORM_INT_101010_2, 4, 32},
    };
    start(0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUDA_ARRAY3D_DESCRIPTOR descriptor = describe(4096, 4096, 0, rows[i].format, rows[i].channels, 0);
        EXPECT(taken(&descriptor, 0), 16 * MIB * rows[i].bits / 8);
    }
}
CHILD_TEST(test_every_format_takes_its_bits, "")

static void body_test_every_shape_takes_its_texels(void)
{
    start(0);
    CUDA_ARRAY3D_DESCRIPTOR line = describe(8 * MIB, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    EXPECT(taken(&line, 0), 32 * MIB);
    CUDA_ARRAY3D_DESCRIPTOR volume = describe(256, 256, 64, CU_AD_FORMAT_FLOAT, 2, 0);
    EXPECT(taken(&volume, 0), 32 * MIB);
    CUDA_ARRAY3D_DESCRIPTOR layers = describe(1024, 1024, 5, CU_AD_FORMAT_HALF, 1, CUDA_ARRAY3D_LAYERED);
    EXPECT(taken(&layers, 0), 10 * MIB);
    CUDA_ARRAY3D_DESCRIPTOR flat_layers =
        describe(1 << 20, 0, 4, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED);
    EXPECT(taken(&flat_layers, 0), 16 * MIB);
    CUDA_ARRAY3D_DESCRIPTOR cube = describe(1024, 1024, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP);
    EXPECT(taken(&cube, 0), 24 * MIB);
    CUDA_ARRAY3D_DESCRIPTOR cubes =
        describe(512, 512, 12, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED);
    EXPECT(taken(&cubes, 0), 48 * MIB);
    CUDA_ARRAY3D_DESCRIPTOR sparse = describe(8192, 8192, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE);
    EXPECT(taken(&sparse, 0), 0); /* tiles are mapped later */
}
CHILD_TEST(test_every_shape_takes_its_texels, "")

static void body_test_a_mipmap_holds_all_levels(void)
{
    start(0);
    /* 4096, 2048 and 1024 squared, 4 bytes each: 64 + 16 + 4 MiB */
    CUDA_ARRAY3D_DESCRIPTOR square = describe(4096, 4096, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    EXPECT(taken(&square, 3), 84 * MIB);
    /* all 13: 64 MiB + a third of it, less a third of the last level that would follow; rounded to granules
     */
    EXPECT(taken(&square, 100), 86 * MIB);
    /* the layers stay on every level: (16 + 4) MiB x 3 */
    CUDA_ARRAY3D_DESCRIPTOR layers = describe(2048, 2048, 3, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED);
    EXPECT(taken(&layers, 2), 60 * MIB);
    /* a volume shrinks in all three: 256 x 256 x 256 and 128 x 128 x 128, of 1 byte */
    CUDA_ARRAY3D_DESCRIPTOR volume = describe(256, 256, 256, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0);
    EXPECT(taken(&volume, 2), 18 * MIB);
}
CHILD_TEST(test_a_mipmap_holds_all_levels, "")

static void body_test_wrong_descriptions_are_refused(void)
{
    start(0);
    static const CUDA_ARRAY3D_DESCRIPTOR wrong[] = {
        {0, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0},                           /* no width */
        {4, 4, 0, CU_AD_FORMAT_FLOAT, 3, 0},                           /* three channels */
        {4, 4, 0, CU_AD_FORMAT_NV12, 1, 0},                            /* not the format's channels */
        {4, 4, 0, (CUarray_format)0x77, 1, 0},                         /* no format */
        {4, 0, 4, CU_AD_FORMAT_FLOAT, 1, 0},                           /* depth without height */
        {4, 4, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED},        /* no layers */
        {4, 8, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP},        /* not square */
        {4, 4, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP},        /* five faces */
        {4, 4, 4, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_TEXTURE_GATHER}, /* not flat */
    };
    CUarray array;
    CUmipmappedArray mipmap;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        EXPECT(CU(cuArray3DCreate_v2)(&array, &wrong[i]), CUDA_ERROR_INVALID_VALUE);
        EXPECT(CU(cuMipmappedArrayCreate)(&mipmap, &wrong[i], 1), CUDA_ERROR_INVALID_VALUE);
    }
    EXPECT(CU(cuArray3DCreate_v2)(&array, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuArrayDestroy)((CUarray)&array), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(CU(cuArrayDestroy)(NULL), CUDA_ERROR_INVALID_HANDLE);
    CUDA_ARRAY3D_DESCRIPTOR large = describe(131072, 65536, 0, CU_AD_FORMAT_FLOAT, 4, 0);
    EXPECT(CU(cuArray3DCreate_v2)(&array, &large), CUDA_ERROR_OUT_OF_MEMORY);
}
CHILD_TEST(test_wrong_descriptions_are_refused, "")

static void body_test_an_array_holds_rows(void)
{
    start(0);
    CUDA_ARRAY_DESCRIPTOR descriptor = {10, 4, CU_AD_FORMAT_UNSIGNED_INT8, 1}, found;
    CUarray array;
    OK(CU(cuArrayCreate_v2)(&array, &descriptor));
    OK(CU(cuArrayGetDescriptor_v2)(&found, array));
    EXPECT(found.Width, 10);
    EXPECT(found.Format, CU_AD_FORMAT_UNSIGNED_INT8);
    const char rows[] = "0123456789abcdefghijABCDEFGHIJ9876543210";
    char back[41] = "";
    OK(CU(cuMemcpyHtoA_v2)(array, 0, rows, 40)); /* a linear copy runs on through the rows */
    OK(CU(cuMemcpyAtoH_v2)(back, array, 0, 40));
    EXPECT(strcmp(back, rows), 0);
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                          .srcArray = array,
                          .srcXInBytes = 3,
                          .srcY = 1,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = back,
                          .dstPitch = 4,
                          .WidthInBytes = 2,
                          .Height = 3};
    OK(CU(cuMemcpy2D_v2)(&copy));
    EXPECT(memcmp(back, "de", 2), 0);
    EXPECT(memcmp(back + 4, "DE", 2), 0);
    EXPECT(memcmp(back + 8, "65", 2), 0);
    copy.srcXInBytes = 9;
    EXPECT(CU(cuMemcpy2D_v2)(&copy), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemcpyHtoA_v2)(array, 1, rows, 40), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr linear = allocate(40);
    OK(CU(cuMemcpyAtoD_v2)(linear, array, 20, 10));
    OK(CU(cuMemcpyDtoA_v2)(array, 0, linear, 10));
    OK(CU(cuMemcpyAtoH_v2)(back, array, 0, 10));
    EXPECT(memcmp(back, "ABCDEFGHIJ", 10), 0);
    OK(CU(cuArrayDestroy)(array));
    EXPECT(CU(cuMemcpyAtoH_v2)(back, array, 0, 1), CUDA_ERROR_INVALID_HANDLE);
}
CHILD_TEST(test_an_array_holds_rows, "")

static void body_test_levels_are_arrays_of_the_mipmap(void)
{
    start(0);
    CUDA_ARRAY3D_DESCRIPTOR descriptor = describe(64, 32, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0), found;
    CUmipmappedArray mipmap;
    CUarray zero, two, again;
    char out[4] = "lev", in[4] = "";
    OK(CU(cuMipmappedArrayCreate)(&mipmap, &descriptor, 4));
    OK(CU(cuMipmappedArrayGetLevel)(&zero, mipmap, 0));
    OK(CU(cuMipmappedArrayGetLevel)(&two, mipmap, 2));
    OK(CU(cuMipmappedArrayGetLevel)(&again, mipmap, 2));
    TRUE(again == two);
    OK(CU(cuArray3DGetDescriptor_v2)(&found, two));
    EXPECT(found.Width, 16);
    EXPECT(found.Height, 8);
    EXPECT(CU(cuMipmappedArrayGetLevel)(&again, mipmap, 4), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemcpyHtoA_v2)(two, 0, out, 4));
    OK(CU(cuMemcpyAtoH_v2)(in, two, 0, 4));
    EXPECT(strcmp(in, out), 0);
    EXPECT(CU(cuArrayDestroy)(two), CUDA_ERROR_INVALID_HANDLE);
    OK(CU(cuMipmappedArrayDestroy)(mipmap));
    EXPECT(CU(cuArray3DGetDescriptor_v2)(&found, two), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(CU(cuMipmappedArrayDestroy)(mipmap), CUDA_ERROR_INVALID_HANDLE);
}
CHILD_TEST(test_levels_are_arrays_of_the_mipmap, "")

static void body_test_planes_are_arrays_too(void)
{
    start(0);
    CUDA_ARRAY3D_DESCRIPTOR descriptor = describe(64, 32, 0, CU_AD_FORMAT_NV12, 3, 0), found;
    CUarray array, luma, chroma;
    OK(CU(cuArray3DCreate_v2)(&array, &descriptor));
    OK(CU(cuArrayGetPlane)(&luma, array, 0));
    OK(CU(cuArrayGetPlane)(&chroma, array, 1));
    OK(CU(cuArray3DGetDescriptor_v2)(&found, luma));
    EXPECT(found.Width, 64);
    EXPECT(found.NumChannels, 1);
    OK(CU(cuArray3DGetDescriptor_v2)(&found, chroma));
    EXPECT(found.Width, 32);
    EXPECT(found.Height, 16);
    EXPECT(found.NumChannels, 2);
    EXPECT(found.Format, CU_AD_FORMAT_UNSIGNED_INT8);
    EXPECT(CU(cuArrayGetPlane)(&chroma, array, 2), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuArrayDestroy)(array));
}
CHILD_TEST(test_planes_are_arrays_too, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_format_takes_its_bits),
        cmocka_unit_test(test_every_shape_takes_its_texels),
        cmocka_unit_test(test_a_mipmap_holds_all_levels),
        cmocka_unit_test(test_wrong_descriptions_are_refused),
        cmocka_unit_test(test_an_array_holds_rows),
        cmocka_unit_test(test_levels_are_arrays_of_the_mipmap),
        cmocka_unit_test(test_planes_are_arrays_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
