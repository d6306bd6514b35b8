/* Sparse and deferred arrays of the simulated GPU: what is mapped to them, and how long it keeps memory
 * alive. */
#include "simgpu/child.h"

static CUDA_ARRAY3D_DESCRIPTOR floats(size_t width, size_t height, size_t depth, unsigned flags)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){width, height, depth, CU_AD_FORMAT_FLOAT, 1, flags};
}

static CUmemGenericAllocationHandle tile_pool(size_t bytes)
{
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                      .allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL};
    CUmemGenericAllocationHandle handle;
    OK(CU(cuMemCreate)(&handle, bytes, &properties, 0));
    return handle;
}

/* A rectangle of an array's tiles of 128 x 128 floats. */
static CUarrayMapInfo tiles(CUarray array, unsigned x, unsigned y, unsigned width, unsigned height,
                            CUmemGenericAllocationHandle memory)
{
    return (CUarrayMapInfo){.resourceType = CU_RESOURCE_TYPE_ARRAY,
                            .resource.array = array,
                            .subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL,
                            .subresource.sparseLevel = {.offsetX = 128 * x,
                                                        .offsetY = 128 * y,
                                                        .extentWidth = 128 * width,
                                                        .extentHeight = 128 * height,
                                                        .extentDepth = 1},
                            .memOperationType =
                                memory ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP,
                            .memHandle.memHandle = memory,
                            .deviceBitMask = 1};
}

static CUresult map(CUarrayMapInfo info)
{
    return CU(cuMemMapArrayAsync)(&info, 1, NULL);
}

/* Memory is freed "when all outstanding mappings to the memory are unmapped and when all outstanding
 * references to the handle are also released". */
static void body_test_mapped_tiles_keep_their_memory(void)
{
    start(0);
    size_t before = free_bytes();
    CUDA_ARRAY3D_DESCRIPTOR sparse = floats(512, 512, 0, CUDA_ARRAY3D_SPARSE);
    CUDA_ARRAY_SPARSE_PROPERTIES properties;
    CUarray array;
    OK(CU(cuArray3DCreate_v2)(&array, &sparse));
    OK(CU(cuArrayGetSparseProperties)(&properties, array));
    EXPECT(properties.tileExtent.width, 128);
    EXPECT(properties.tileExtent.height, 128);
    EXPECT(properties.tileExtent.depth, 1);
    EXPECT(properties.miptailSize, 0);
    CUmemGenericAllocationHandle first = tile_pool(2 * MIB), second = tile_pool(2 * MIB);
    OK(map(tiles(array, 0, 0, 4, 4, first)));
    OK(CU(cuMemRelease)(first));
    EXPECT(free_bytes(), before - 4 * MIB);
    OK(map(tiles(array, 0, 0, 4, 3, second))); /* in its place, but for a row */
    EXPECT(free_bytes(), before - 4 * MIB);
    OK(map(tiles(array, 1, 3, 3, 1, 0)));
    EXPECT(free_bytes(), before - 4 * MIB);
    OK(map(tiles(array, 0, 3, 1, 1, 0))); /* its last tile */
    EXPECT(free_bytes(), before - 2 * MIB);
    OK(CU(cuMemRelease)(second));
    EXPECT(free_bytes(), before - 2 * MIB);
    OK(CU(cuArrayDestroy)(array));
    EXPECT(free_bytes(), before);
}
CHILD_TEST(test_mapped_tiles_keep_their_memory, "")

static void body_test_only_tiles_of_sparse_arrays_are_mapped(void)
{
    start(0);
    CUDA_ARRAY3D_DESCRIPTOR sparse = floats(512, 300, 0, CUDA_ARRAY3D_SPARSE);
    CUDA_ARRAY3D_DESCRIPTOR full = floats(512, 512, 0, 0);
    CUmemAllocationProp plain = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle pool = tile_pool(2 * MIB), other;
    CUarray array, ordinary;
    OK(CU(cuArray3DCreate_v2)(&array, &sparse));
    OK(CU(cuArray3DCreate_v2)(&ordinary, &full));
    OK(CU(cuMemCreate)(&other, 2 * MIB, &plain, 0));
    EXPECT(map(tiles(ordinary, 0, 0, 1, 1, pool)), CUDA_ERROR_INVALID_VALUE);
    EXPECT(map(tiles((CUarray)&pool, 0, 0, 1, 1, pool)), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(map(tiles(array, 0, 0, 1, 1, other)), CUDA_ERROR_INVALID_VALUE); /* no tile pool */
    EXPECT(map(tiles(array, 4, 0, 1, 1, pool)), CUDA_ERROR_INVALID_VALUE);  /* outside */
    EXPECT(map(tiles(array, 0, 0, 0, 1, pool)), CUDA_ERROR_INVALID_VALUE);
    CUarrayMapInfo info = tiles(array, 0, 2, 1, 1, pool);
    EXPECT(map(info), CUDA_ERROR_INVALID_VALUE); /* there are 44 rows left, no whole tile */
    info.subresource.sparseLevel.extentHeight = 44;
    OK(map(info));
    info.subresource.sparseLevel.offsetY = 64;
    EXPECT(map(info), CUDA_ERROR_INVALID_VALUE); /* not where a tile begins */
    info = tiles(array, 0, 0, 2, 2, pool);
    info.offset = 2 * MIB - 3 * 65536;
    EXPECT(map(info), CUDA_ERROR_INVALID_VALUE); /* not that much memory */
    info = tiles(array, 0, 0, 1, 1, pool);
    info.deviceBitMask = 2;
    EXPECT(map(info), CUDA_ERROR_INVALID_VALUE);
    CUarrayMapInfo two[] = {tiles(array, 1, 0, 1, 1, pool), tiles(array, 9, 0, 1, 1, pool)};
    EXPECT(CU(cuMemMapArrayAsync)(two, 2, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemMapArrayAsync)(NULL, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemRelease)(pool));
    size_t before = free_bytes();
    OK(map(tiles(array, 1, 0, 1, 1, 0)));
    EXPECT(free_bytes(), before); /* the refused call had mapped nothing there; the last row holds it yet */
    info = tiles(array, 0, 2, 1, 1, 0);
    info.subresource.sparseLevel.extentHeight = 44;
    OK(map(info));
    EXPECT(free_bytes(), before + 2 * MIB);
}
CHILD_TEST(test_only_tiles_of_sparse_arrays_are_mapped, "")

/* 1024, 512, 256 and 128 squared are of whole tiles of 128 x 128; the levels below share the tail. */
static void body_test_the_small_levels_of_a_sparse_mipmap_are_its_tail(void)
{
    start(0);
    CUDA_ARRAY3D_DESCRIPTOR sparse = floats(1024, 1024, 2, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_LAYERED);
    CUDA_ARRAY_SPARSE_PROPERTIES properties;
    CUmipmappedArray mipmap;
    CUarray level;
    OK(CU(cuMipmappedArrayCreate)(&mipmap, &sparse, 11));
    OK(CU(cuMipmappedArrayGetSparseProperties)(&properties, mipmap));
    EXPECT(properties.miptailFirstLevel, 4);
    EXPECT(properties.miptailSize, 65536);
    CUmemGenericAllocationHandle pool = tile_pool(2 * MIB);
    CUarrayMapInfo info = {.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
                           .resource.mipmap = mipmap,
                           .subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL,
                           .subresource.miptail = {.layer = 1, .size = 65536},
                           .memOperationType = CU_MEM_OPERATION_TYPE_MAP,
                           .memHandle.memHandle = pool,
                           .deviceBitMask = 1};
    OK(map(info));
    info.subresource.miptail.layer = 2;
    EXPECT(map(info), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMipmappedArrayGetLevel)(&level, mipmap, 0));
    EXPECT(map(tiles(level, 0, 0, 1, 1, pool)), CUDA_ERROR_INVALID_VALUE); /* by the mipmap only */
    size_t before = free_bytes();
    OK(CU(cuMemRelease)(pool));
    EXPECT(free_bytes(), before);
    OK(CU(cuMipmappedArrayDestroy)(mipmap));
    EXPECT(free_bytes(), before + 2 * MIB);
}
CHILD_TEST(test_the_small_levels_of_a_sparse_mipmap_are_its_tail, "")

static void body_test_a_deferred_array_is_mapped_as_a_whole(void)
{
    start(0);
    CUDA_ARRAY3D_DESCRIPTOR deferred = floats(512, 512, 0, CUDA_ARRAY3D_DEFERRED_MAPPING);
    CUDA_ARRAY_MEMORY_REQUIREMENTS requirements;
    CUarray array;
    OK(CU(cuArray3DCreate_v2)(&array, &deferred));
    OK(CU(cuArrayGetMemoryRequirements)(&requirements, array, 0));
    CUmemGenericAllocationHandle pool = tile_pool(requirements.size);
    CUarrayMapInfo info = tiles(array, 7, 7, 7, 7, pool); /* which is ignored */
    size_t before = free_bytes();
    OK(map(info));
    OK(CU(cuMemRelease)(pool));
    EXPECT(free_bytes(), before);
    OK(map(tiles(array, 9, 9, 9, 9, 0)));
    EXPECT(free_bytes(), before + 2 * MIB);
}
CHILD_TEST(test_a_deferred_array_is_mapped_as_a_whole, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mapped_tiles_keep_their_memory),
        cmocka_unit_test(test_only_tiles_of_sparse_arrays_are_mapped),
        cmocka_unit_test(test_the_small_levels_of_a_sparse_mipmap_are_its_tail),
        cmocka_unit_test(test_a_deferred_array_is_mapped_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
