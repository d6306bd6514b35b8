/* Device memory of the simulated GPU: plain, pitched, managed; how it is counted, reused, exhausted; wrong
 * calls. */
#include "simgpu/child.h"

static void body_test_a_context_takes_its_share_of_memory(void)
{
    size_t free, total;
    start(0);
    OK(CU(cuMemGetInfo_v2)(&free, &total));
    EXPECT(total, 8 * GIB);
    EXPECT(free, 8 * GIB - 256 * MIB);
}
CHILD_TEST(test_a_context_takes_its_share_of_memory, "")

static void body_test_memory_is_counted_in_granules(void)
{
    start(0);
    size_t before = free_bytes();
    CUdeviceptr one = allocate(1);
    EXPECT(before - free_bytes(), 2 * MIB);
    CUdeviceptr two = allocate(1000); /* fits beside it */
    EXPECT(before - free_bytes(), 2 * MIB);
    EXPECT(one % 512, 0);
    EXPECT(two % 512, 0);
    CUdeviceptr large = allocate(3 * MIB);
    EXPECT(before - free_bytes(), 6 * MIB);
    OK(CU(cuMemFree_v2)(one));
    EXPECT(before - free_bytes(), 6 * MIB); /* the granule still holds the other */
    OK(CU(cuMemFree_v2)(two));
    EXPECT(before - free_bytes(), 4 * MIB);
    OK(CU(cuMemFree_v2)(large));
    EXPECT(before - free_bytes(), 0);
}
CHILD_TEST(test_memory_is_counted_in_granules, "")

static void body_test_an_address_comes_back_at_once(void)
{
    start(0);
    const size_t sizes[] = {1, 512, 4096, 700 * KIB, MIB, 2 * MIB, 100 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CUdeviceptr first = allocate(sizes[i]);
        OK(CU(cuMemFree_v2)(first));
        CUdeviceptr second = allocate(sizes[i]);
        EXPECT(second, first);
    }
}
CHILD_TEST(test_an_address_comes_back_at_once, "")

static void write_addresses(int to)
{
    CUdeviceptr addresses[5];
    start(0);
    addresses[0] = allocate(100);
    addresses[1] = allocate(10 * MIB);
    OK(CU(cuMemAllocManaged)(&addresses[2], 100, CU_MEM_ATTACH_GLOBAL));
    OK(CU(cuMemAllocHost_v2)((void **)&addresses[3], 100));
    OK(CU(cuMemAddressReserve)(&addresses[4], 2 * MIB, 0, 0, 0));
    EXPECT(write(to, addresses, sizeof addresses), sizeof addresses);
}

static void body_test_the_same_calls_give_the_same_addresses(void)
{
    CUdeviceptr seen[2][5];
    int ends[2];
    TRUE(!pipe(ends));
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            write_addresses(ends[1]);
            _exit(0);
        }
        EXPECT(read(ends[0], seen[i], sizeof seen[i]), sizeof seen[i]);
    }
    EXPECT(memcmp(seen[0], seen[1], sizeof seen[0]), 0);
}
CHILD_TEST(test_the_same_calls_give_the_same_addresses, "")

static void body_test_memory_runs_out(void)
{
    start(0);
    CUdeviceptr address, most = allocate(60 * MIB);
    EXPECT(CU(cuMemAlloc_v2)(&address, 6 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    CUdeviceptr rest = allocate(4 * MIB);
    EXPECT(free_bytes(), 0);
    EXPECT(CU(cuMemAlloc_v2)(&address, 1), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuMemFree_v2)(most));
    allocate(60 * MIB);
    OK(CU(cuMemFree_v2)(rest));
    EXPECT(CU(cuMemAlloc_v2)(&address, (size_t)-1), CUDA_ERROR_OUT_OF_MEMORY);
}
CHILD_TEST(test_memory_runs_out, "SIMGPU_MEMORY=64M SIMGPU_CONTEXT=0")

static void body_test_a_context_needs_memory(void)
{
    CUcontext context;
    OK(CU(cuInit)(0));
    EXPECT(CU(cuCtxCreate_v2)(&context, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT(CU(cuDevicePrimaryCtxRetain)(&context, 0), CUDA_ERROR_OUT_OF_MEMORY);
}
CHILD_TEST(test_a_context_needs_memory, "SIMGPU_MEMORY=64M SIMGPU_CONTEXT=128M")

static void body_test_wrong_frees_are_refused(void)
{
    start(0);
    CUdeviceptr address = allocate(4096), large = allocate(4 * MIB);
    void *host;
    OK(CU(cuMemAllocHost_v2)(&host, 100));
    EXPECT(CU(cuMemFree_v2)(address + 512), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemFree_v2)(large + 2 * MIB), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemFree_v2)(0xdeadbeef000), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemFree_v2)((CUdeviceptr)host), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemFreeHost)((void *)address), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemFree_v2)(address));
    EXPECT(CU(cuMemFree_v2)(address), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemFreeHost)(host));
    EXPECT(CU(cuMemFreeHost)(host), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemFree_v2)(0));
}
CHILD_TEST(test_wrong_frees_are_refused, "")

static void body_test_wrong_arguments_are_refused(void)
{
    start(0);
    CUdeviceptr address;
    size_t pitch;
    EXPECT(CU(cuMemAlloc_v2)(&address, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemAlloc_v2)(NULL, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemAllocPitch_v2)(&address, &pitch, 0, 1, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemAllocPitch_v2)(&address, &pitch, 1, 0, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemAllocPitch_v2)(&address, &pitch, 1, 1, 3), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemAllocPitch_v2)(&address, NULL, 1, 1, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemAllocManaged)(&address, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemAllocManaged)(&address, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemAllocManaged)(&address, 1, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemGetInfo_v2)(NULL, &pitch), CUDA_ERROR_INVALID_VALUE);
}
CHILD_TEST(test_wrong_arguments_are_refused, "")

static void body_test_nothing_works_before_initialisation(void)
{
    CUdeviceptr address;
    int value;
    EXPECT(CU(cuMemAlloc_v2)(&address, 1), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(CU(cuMemFree_v2)(0), CUDA_ERROR_NOT_INITIALIZED);
    EXPECT(CU(cuDeviceGetCount)(&value), CUDA_ERROR_NOT_INITIALIZED);
    OK(CU(cuDriverGetVersion)(&value)); /* but this */
    EXPECT(value, 13000);
    OK(CU(cuInit)(0));
    EXPECT(CU(cuInit)(1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemAlloc_v2)(&address, 1), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(CU(cuMemFree_v2)(1), CUDA_ERROR_INVALID_CONTEXT);
}
CHILD_TEST(test_nothing_works_before_initialisation, "")

static void body_test_rows_of_pitched_memory_are_aligned(void)
{
    start(0);
    CUdeviceptr address, base;
    size_t pitch, size;
    OK(CU(cuMemAllocPitch_v2)(&address, &pitch, 1000, 300, 16));
    TRUE(pitch >= 1000);
    EXPECT(pitch % 512, 0);
    OK(CU(cuMemGetAddressRange_v2)(&base, &size, address + 299 * pitch + 999));
    EXPECT(base, address);
    EXPECT(size, pitch * 300);
    OK(CU(cuMemFree_v2)(address));
}
CHILD_TEST(test_rows_of_pitched_memory_are_aligned, "")

static void body_test_managed_memory_is_the_programs_too(void)
{
    start(0);
    size_t before = free_bytes();
    CUdeviceptr address;
    OK(CU(cuMemAllocManaged)(&address, 5 * MIB, CU_MEM_ATTACH_GLOBAL));
    memset((void *)address, 7, 5 * MIB);
    EXPECT(((char *)address)[5 * MIB - 1], 7);
    EXPECT(free_bytes(), before); /* it lives where it is used: not on the device yet */
    unsigned managed = 0;
    OK(CU(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address + 100));
    EXPECT(managed, 1);
    OK(CU(cuMemFree_v2)(address));
}
CHILD_TEST(test_managed_memory_is_the_programs_too, "")

static void body_test_an_address_tells_its_allocation(void)
{
    CUcontext context = start(0), found = NULL;
    CUdeviceptr address = allocate(10000), base = 0;
    size_t size = 0;
    unsigned type = 0;
    int device = -1;
    unsigned long long id = 0, next = 0;
    OK(CU(cuMemGetAddressRange_v2)(&base, &size, address + 9999));
    EXPECT(base, address);
    EXPECT(size, 10000);
    OK(CU(cuMemGetAddressRange_v2)(NULL, &size, address));
    EXPECT(CU(cuMemGetAddressRange_v2)(&base, &size, address + 10000), CUDA_ERROR_NOT_FOUND);
    OK(CU(cuPointerGetAttribute)(&found, CU_POINTER_ATTRIBUTE_CONTEXT, address));
    TRUE(found == context);
    OK(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
    EXPECT(type, CU_MEMORYTYPE_DEVICE);
    OK(CU(cuPointerGetAttribute)(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address));
    EXPECT(device, 0);
    OK(CU(cuPointerGetAttribute)(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address));
    OK(CU(cuMemFree_v2)(address));
    EXPECT(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
           CUDA_ERROR_INVALID_VALUE);
    EXPECT(allocate(10000), address);
    OK(CU(cuPointerGetAttribute)(&next, CU_POINTER_ATTRIBUTE_BUFFER_ID, address));
    TRUE(next != id); /* never used twice */
}
CHILD_TEST(test_an_address_tells_its_allocation, "")

static void body_test_several_attributes_never_fail_for_an_unknown_address(void)
{
    start(0);
    int on_stack = 0;
    unsigned type = 9, managed = 9;
    CUcontext context = (CUcontext)9;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                        CU_POINTER_ATTRIBUTE_CONTEXT};
    void *values[] = {&type, &managed, &context};
    OK(CU(cuPointerGetAttributes)(3, attributes, values, (CUdeviceptr)&on_stack));
    EXPECT(type, 0);
    EXPECT(managed, 0);
    TRUE(!context);
}
CHILD_TEST(test_several_attributes_never_fail_for_an_unknown_address, "")

static void body_test_old_names_give_32_bit_addresses(void)
{
    start(0);
    CUdeviceptr_v1 address, base;
    unsigned pitch, size, free, total;
    size_t before = free_bytes();
    OK(CU(cuMemAlloc)(&address, 5000));
    EXPECT(before - free_bytes(), 2 * MIB);
    OK(CU(cuMemcpyHtoD)(address, "old", 4));
    char back[4];
    OK(CU(cuMemcpyDtoH)(back, address, 4));
    EXPECT(strcmp(back, "old"), 0);
    OK(CU(cuMemGetAddressRange)(&base, &size, address + 100));
    EXPECT(base, address);
    EXPECT(size, 5000);
    OK(CU(cuMemFree)(address));
    EXPECT(CU(cuMemFree)(address), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemAllocPitch)(&address, &pitch, 100, 10, 4));
    EXPECT(pitch, 512);
    OK(CU(cuMemFree_v2)(address));
    OK(CU(cuMemGetInfo)(&free, &total));
    EXPECT(total, UINT32_MAX); /* 8 GiB do not fit */
}
CHILD_TEST(test_old_names_give_32_bit_addresses, "")

static void body_test_a_failure_can_be_asked_for(void)
{
    start(0);
    CUdeviceptr address;
    OK(CU(cuMemAlloc_v2)(&address, 1));
    OK(CU(cuMemAlloc_v2)(&address, 1));
    EXPECT(CU(cuMemAlloc_v2)(&address, 1), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuMemAlloc_v2)(&address, 1));
    OK(CU(cuMemFree_v2)(address));
    EXPECT(CU(cuMemFree_v2)(address), 719); /* the second call fails as asked */
}
CHILD_TEST(test_a_failure_can_be_asked_for, "SIMGPU_FAIL=cuMemAlloc:3,cuMemFree:2:719")

static void body_test_devices_have_memory_of_their_own(void)
{
    start(0);
    size_t first = free_bytes();
    allocate(100 * MIB);
    start(1);
    EXPECT(free_bytes(), first);
    CUdeviceptr there = allocate(10 * MIB);
    start(0);
    EXPECT(first - free_bytes(), 100 * MIB);
    int device = -1;
    OK(CU(cuPointerGetAttribute)(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there));
    EXPECT(device, 1);
    OK(CU(cuMemFree_v2)(there)); /* addresses are unified: any context will do */
}
CHILD_TEST(test_devices_have_memory_of_their_own, "SIMGPU_DEVICES=2")

/* 100,000 random allocations and frees: no two overlap, all is counted, all comes back. */
static void body_test_random_allocations_never_overlap(void)
{
    enum { SLOTS = 400, STEPS = 100000 };
    static struct {
        CUdeviceptr address;
        size_t bytes;
    } slots[SLOTS];
    start(0);
    size_t before = free_bytes();
    unsigned seed = 1;
    for (int step = 0; step < STEPS; step++) {
        int at = rand_r(&seed) % SLOTS;
        if (slots[at].address) {
            OK(CU(cuMemFree_v2)(slots[at].address));
            slots[at].address = 0;
            continue;
        }
        size_t bytes = 1 + (size_t)rand_r(&seed) % (1u << (rand_r(&seed) % 23));
        slots[at].address = allocate(bytes);
        slots[at].bytes = bytes;
        if (step % 100)
            continue;
        for (int other = 0; other < SLOTS; other++)
            if (other != at && slots[other].address)
                TRUE(slots[other].address + slots[other].bytes <= slots[at].address ||
                     slots[at].address + bytes <= slots[other].address);
    }
    for (int at = 0; at < SLOTS; at++)
        if (slots[at].address)
            OK(CU(cuMemFree_v2)(slots[at].address));
    EXPECT(free_bytes(), before);
}
CHILD_TEST(test_random_allocations_never_overlap, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_context_takes_its_share_of_memory),
        cmocka_unit_test(test_memory_is_counted_in_granules),
        cmocka_unit_test(test_an_address_comes_back_at_once),
        cmocka_unit_test(test_the_same_calls_give_the_same_addresses),
        cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_a_context_needs_memory),
        cmocka_unit_test(test_wrong_frees_are_refused),
        cmocka_unit_test(test_wrong_arguments_are_refused),
        cmocka_unit_test(test_nothing_works_before_initialisation),
        cmocka_unit_test(test_rows_of_pitched_memory_are_aligned),
        cmocka_unit_test(test_managed_memory_is_the_programs_too),
        cmocka_unit_test(test_an_address_tells_its_allocation),
        cmocka_unit_test(test_several_attributes_never_fail_for_an_unknown_address),
        cmocka_unit_test(test_old_names_give_32_bit_addresses),
        cmocka_unit_test(test_a_failure_can_be_asked_for),
        cmocka_unit_test(test_devices_have_memory_of_their_own),
        cmocka_unit_test(test_random_allocations_never_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
