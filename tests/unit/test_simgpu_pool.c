/* Pools of the simulated GPU: what is reserved and used, when it is given back, and pools that other
 * processes share. */
#include "simgpu/child.h"

static CUmemoryPool default_pool(void)
{
    CUmemoryPool pool;
    OK(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
    return pool;
}

static uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    uint64_t value = 0;
    OK(CU(cuMemPoolGetAttribute)(pool, attribute, &value));
    return value;
}

static CUdeviceptr allocate_on(CUstream stream, size_t bytes)
{
    CUdeviceptr address;
    OK(CU(cuMemAllocAsync)(&address, bytes, stream));
    return address;
}

static CUmemoryPool new_pool(CUmemAllocationHandleType handles, size_t most)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .handleTypes = handles,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                 .maxSize = most};
    CUmemoryPool pool;
    OK(CU(cuMemPoolCreate)(&pool, &properties));
    return pool;
}

static void body_test_freed_memory_stays_reserved_until_a_synchronisation(void)
{
    start(0);
    CUmemoryPool pool = default_pool();
    size_t before = free_bytes();
    CUdeviceptr address = allocate_on(NULL, 10 * MIB);
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 10 * MIB);
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 10 * MIB);
    EXPECT(before - free_bytes(), 10 * MIB);
    OK(CU(cuMemFreeAsync)(address, NULL));
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 10 * MIB);
    EXPECT(allocate_on(NULL, 10 * MIB), address); /* reused, not reserved again */
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 10 * MIB);
    OK(CU(cuMemFreeAsync)(address, NULL));
    OK(CU(cuStreamSynchronize)(NULL));
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0); /* the threshold is 0 */
    EXPECT(free_bytes(), before);
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 10 * MIB);
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 10 * MIB);
    uint64_t zero = 0, one = 1;
    OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
    EXPECT(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero),
           CUDA_ERROR_INVALID_VALUE);
}
CHILD_TEST(test_freed_memory_stays_reserved_until_a_synchronisation, "")

static void body_test_a_threshold_keeps_memory_and_trimming_gives_it_back(void)
{
    start(0);
    CUmemoryPool pool = default_pool();
    uint64_t threshold = 6 * MIB;
    OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    CUdeviceptr addresses[4];
    for (int i = 0; i < 4; i++)
        addresses[i] = allocate_on(NULL, 2 * MIB);
    OK(CU(cuCtxSynchronize)());
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 8 * MIB); /* all in use */
    for (int i = 0; i < 3; i++)
        OK(CU(cuMemFreeAsync)(addresses[i], NULL));
    OK(CU(cuCtxSynchronize)());
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 6 * MIB);
    OK(CU(cuMemPoolTrimTo)(pool, 4 * MIB));
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 4 * MIB);
    OK(CU(cuMemPoolTrimTo)(pool, 5 * MIB));
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 4 * MIB);
    OK(CU(cuMemPoolTrimTo)(pool, 0));
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 2 * MIB); /* the fourth is in use */
    OK(CU(cuMemFree_v2)(addresses[3]));                                     /* this way, too */
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
}
CHILD_TEST(test_a_threshold_keeps_memory_and_trimming_gives_it_back, "")

static void body_test_small_blocks_share_granules_of_a_pool(void)
{
    start(0);
    CUmemoryPool pool = default_pool();
    CUdeviceptr one = allocate_on(NULL, 100), two = allocate_on(CU_STREAM_PER_THREAD, 1000);
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 2 * MIB);
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 512 + 1024);
    TRUE(one != two);
    CUmemoryPool found;
    CUcontext context = (CUcontext)1;
    OK(CU(cuPointerGetAttribute)(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, one));
    TRUE(found == pool);
    OK(CU(cuPointerGetAttribute)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, one));
    TRUE(!context);
    OK(CU(cuMemcpyHtoD_v2)(two, "pool", 5));
    char back[5];
    OK(CU(cuMemcpyDtoH_v2)(back, two, 5));
    EXPECT(strcmp(back, "pool"), 0);
}
CHILD_TEST(test_small_blocks_share_granules_of_a_pool, "")

static void body_test_wrong_calls_are_refused(void)
{
    start(0);
    CUdeviceptr address, plain = allocate(100);
    EXPECT(CU(cuMemAllocAsync)(&address, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemAllocAsync)(NULL, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemAllocAsync)(&address, 1, (CUstream)0x123), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(CU(cuMemAllocFromPoolAsync)(&address, 1, (CUmemoryPool)0x123, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemFreeAsync)(0, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemFreeAsync)(plain + 1, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemAllocAsync)(&address, 1, NULL));
    OK(CU(cuMemFreeAsync)(address, NULL));
    EXPECT(CU(cuMemFreeAsync)(address, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemPoolDestroy)(default_pool()), CUDA_ERROR_INVALID_VALUE);
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0}};
    CUmemoryPool pool;
    EXPECT(CU(cuMemPoolCreate)(&pool, &properties), CUDA_ERROR_INVALID_VALUE);
    properties.location.type = CU_MEM_LOCATION_TYPE_HOST;
    properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    EXPECT(CU(cuMemPoolCreate)(&pool, &properties), CUDA_ERROR_INVALID_VALUE); /* host memory is not shared */
}
CHILD_TEST(test_wrong_calls_are_refused, "")

static void body_test_a_destroyed_pool_lives_until_its_last_block(void)
{
    start(0);
    size_t before = free_bytes();
    CUmemoryPool pool = new_pool(CU_MEM_HANDLE_TYPE_NONE, 0), current;
    CUdeviceptr address, other;
    OK(CU(cuDeviceSetMemPool)(0, pool));
    OK(CU(cuMemAllocAsync)(&address, 3 * MIB, NULL));
    EXPECT(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 3 * MIB);
    OK(CU(cuMemPoolDestroy)(pool));
    OK(CU(cuDeviceGetMemPool)(&current, 0));
    TRUE(current == default_pool()); /* current again */
    EXPECT(CU(cuMemAllocFromPoolAsync)(&other, 1, pool, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemPoolDestroy)(pool), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemcpyHtoD_v2)(address, "x", 1));
    EXPECT(before - free_bytes(), 4 * MIB);
    OK(CU(cuMemFreeAsync)(address, NULL));
    EXPECT(free_bytes(), before);
}
CHILD_TEST(test_a_destroyed_pool_lives_until_its_last_block, "")

static void body_test_a_pool_can_have_a_largest_size(void)
{
    start(0);
    CUmemoryPool pool = new_pool(CU_MEM_HANDLE_TYPE_NONE, 4 * MIB);
    CUdeviceptr one, two;
    OK(CU(cuMemAllocFromPoolAsync)(&one, 3 * MIB, pool, NULL));
    EXPECT(CU(cuMemAllocFromPoolAsync)(&two, 100, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuMemFreeAsync)(one, NULL));
    OK(CU(cuMemAllocFromPoolAsync)(&two, 100, pool, NULL));
    EXPECT(CU(cuMemAllocAsync)(&one, 9 * GIB, NULL), CUDA_ERROR_OUT_OF_MEMORY);
}
CHILD_TEST(test_a_pool_can_have_a_largest_size, "")

static void body_test_a_pool_can_hold_host_memory(void)
{
    start(0);
    size_t before = free_bytes();
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_HOST, 0}};
    CUmemoryPool pool;
    CUdeviceptr address;
    OK(CU(cuMemPoolCreate)(&pool, &properties));
    OK(CU(cuMemAllocFromPoolAsync)(&address, MIB, pool, NULL));
    memset((void *)address, 1, MIB);
    EXPECT(free_bytes(), before);
    OK(CU(cuMemFreeAsync)(address, NULL));
    OK(CU(cuMemPoolDestroy)(pool));
}
CHILD_TEST(test_a_pool_can_hold_host_memory, "")

static void body_test_peers_get_access(void)
{
    start(0);
    CUmemoryPool pool = new_pool(CU_MEM_HANDLE_TYPE_NONE, 0);
    CUmemLocation peer = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    CUmemAccessDesc give = {peer, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccess_flags flags;
    OK(CU(cuMemPoolGetAccess)(&flags, pool, &peer));
    EXPECT(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    OK(CU(cuMemPoolSetAccess)(pool, &give, 1));
    OK(CU(cuMemPoolGetAccess)(&flags, pool, &peer));
    EXPECT(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUmemAccessDesc revoke_own = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_NONE};
    EXPECT(CU(cuMemPoolSetAccess)(pool, &revoke_own, 1), CUDA_ERROR_INVALID_VALUE);
}
CHILD_TEST(test_peers_get_access, "SIMGPU_DEVICES=2")

/* The importer: gets the pool's descriptor by inheritance, the pointers' data by a pipe. */
static void import_side(int fd, int from, int to)
{
    CUmemPoolPtrExportData data[2];
    CUmemoryPool pool;
    CUdeviceptr small, large;
    char text[16] = "";
    start(0);
    size_t before = free_bytes();
    EXPECT(read(from, data, sizeof data), sizeof data);
    OK(CU(cuMemPoolImportFromShareableHandle)(&pool, (void *)(intptr_t)fd,
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(CU(cuMemPoolImportPointer)(&small, pool, &data[0]));
    OK(CU(cuMemPoolImportPointer)(&large, pool, &data[1]));
    EXPECT(free_bytes(), before); /* the memory is the exporter's */
    OK(CU(cuMemcpyDtoH_v2)(text, small, 6));
    EXPECT(strcmp(text, "small"), 0);
    OK(CU(cuMemcpyHtoD_v2)(large + 2 * MIB, "written", 8));
    EXPECT(CU(cuMemAllocFromPoolAsync)(&large, 1, pool, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemFreeAsync)(small, NULL));
    OK(CU(cuMemFree_v2)(large));
    EXPECT(CU(cuMemFree_v2)(large), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemPoolDestroy)(pool));
    EXPECT(write(to, "d", 1), 1);
}

static void body_test_another_process_imports_a_pool(void)
{
    int there[2], back[2], ready[2], fd = 100; /* the number both sides agree on */
    char text[16], byte;
    TRUE(!pipe(there) && !pipe(back) && !pipe(ready));
    pid_t child = fork();
    if (child == 0) {
        char path[64];
        EXPECT(read(ready[0], &byte, 1), 1);
        snprintf(path, sizeof path, "/proc/%d/fd/%d", getppid(), fd);
        FILE *file = fopen(path, "r+");
        TRUE(file);
        import_side(fileno(file), there[0], back[1]);
        _exit(0);
    }
    start(0);
    CUmemoryPool pool = new_pool(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    CUdeviceptr small, large;
    CUmemPoolPtrExportData data[2];
    int exported;
    OK(CU(cuMemAllocFromPoolAsync)(&small, 100, pool, NULL));
    OK(CU(cuMemAllocFromPoolAsync)(&large, 5 * MIB, pool, NULL));
    OK(CU(cuMemcpyHtoD_v2)(small, "small", 6));
    OK(CU(cuMemPoolExportToShareableHandle)(&exported, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    EXPECT(dup2(exported, fd), fd);
    OK(CU(cuMemPoolExportPointer)(&data[0], small));
    OK(CU(cuMemPoolExportPointer)(&data[1], large));
    EXPECT(CU(cuMemPoolExportPointer)(&data[1], small + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemPoolExportPointer)(&data[1], allocate(1)), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemPoolExportPointer)(&data[1], large));
    EXPECT(write(ready[1], "r", 1), 1);
    EXPECT(write(there[1], data, sizeof data), sizeof data);
    int status;
    waitpid(child, &status, 0);
    EXPECT(status, 0);
    OK(CU(cuMemcpyDtoH_v2)(text, large + 2 * MIB, 8));
    EXPECT(strcmp(text, "written"), 0);
}
CHILD_TEST(test_another_process_imports_a_pool, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_freed_memory_stays_reserved_until_a_synchronisation),
        cmocka_unit_test(test_a_threshold_keeps_memory_and_trimming_gives_it_back),
        cmocka_unit_test(test_small_blocks_share_granules_of_a_pool),
        cmocka_unit_test(test_wrong_calls_are_refused),
        cmocka_unit_test(test_a_destroyed_pool_lives_until_its_last_block),
        cmocka_unit_test(test_a_pool_can_have_a_largest_size),
        cmocka_unit_test(test_a_pool_can_hold_host_memory),
        cmocka_unit_test(test_peers_get_access),
        cmocka_unit_test(test_another_process_imports_a_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
