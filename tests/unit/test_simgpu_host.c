/* Host memory the simulated driver knows, and copies and fills between it, the program's own and the
 * device's. */
#include "simgpu/child.h"

#include <sys/mman.h>

static void body_test_pinned_memory_is_the_programs(void)
{
    start(0);
    size_t before = free_bytes();
    void *memory;
    unsigned flags;
    CUdeviceptr device;
    OK(CU(cuMemHostAlloc)(&memory, 3 * MIB, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_WRITECOMBINED));
    memset(memory, 1, 3 * MIB);
    EXPECT(free_bytes(), before);
    OK(CU(cuMemHostGetFlags)(&flags, memory));
    EXPECT(flags, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_WRITECOMBINED);
    OK(CU(cuMemHostGetDevicePointer_v2)(&device, (char *)memory + 5, 0));
    EXPECT(device, (CUdeviceptr)memory + 5);
    OK(CU(cuMemFreeHost)(memory));
    EXPECT(CU(cuMemHostGetFlags)(&flags, memory), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemHostAlloc)(&memory, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemHostAlloc)(NULL, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemHostAlloc)(&memory, 1, 0x100), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemHostAlloc)(&memory, (size_t)1 << 62, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(CU(cuMemAllocHost_v2)(&memory, 1));
    OK(CU(cuMemFreeHost)(memory));
}
CHILD_TEST(test_pinned_memory_is_the_programs, "")

static void body_test_registered_ranges_do_not_overlap(void)
{
    start(0);
    char *memory = malloc(10000), *other = malloc(10000);
    CUdeviceptr device;
    OK(CU(cuMemHostRegister_v2)(memory + 100, 5000, CU_MEMHOSTREGISTER_DEVICEMAP));
    EXPECT(CU(cuMemHostRegister_v2)(memory + 100, 5000, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    EXPECT(CU(cuMemHostRegister_v2)(memory, 101, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    EXPECT(CU(cuMemHostRegister_v2)(memory + 5099, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    OK(CU(cuMemHostRegister)(memory + 5100, 10, 0));
    OK(CU(cuMemHostRegister_v2)(memory, 100, 0));
    OK(CU(cuMemHostRegister_v2)(other, 10000, 0));
    OK(CU(cuMemHostGetDevicePointer_v2)(&device, memory + 4000, 0));
    EXPECT(CU(cuMemHostUnregister)(memory + 101), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(CU(cuMemHostUnregister)(memory + 100));
    EXPECT(CU(cuMemHostUnregister)(memory + 100), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(CU(cuMemHostUnregister)(memory));
    OK(CU(cuMemHostUnregister)(memory + 5100));
    OK(CU(cuMemHostRegister_v2)(memory, 10000, 0));
    EXPECT(CU(cuMemHostRegister_v2)(NULL, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemHostRegister_v2)(other, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemFreeHost)(memory), CUDA_ERROR_INVALID_VALUE); /* not allocated by the driver */
}
CHILD_TEST(test_registered_ranges_do_not_overlap, "")

static void body_test_what_is_no_memory_cannot_be_registered(void)
{
    start(0);
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + 4096, 4096);
    EXPECT(CU(cuMemHostRegister_v2)(pages, 8192, 0), CUDA_ERROR_INVALID_VALUE);
    void *pinned;
    OK(CU(cuMemHostAlloc)(&pinned, 4096, 0));
    EXPECT(CU(cuMemHostRegister_v2)(pinned, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    EXPECT(CU(cuMemHostRegister_v2)((void *)allocate(4096), 4096, 0), CUDA_ERROR_INVALID_VALUE);
}
CHILD_TEST(test_what_is_no_memory_cannot_be_registered, "")

static void body_test_bytes_arrive(void)
{
    start(0);
    static unsigned char out[5 * MIB], in[5 * MIB];
    for (size_t i = 0; i < sizeof out; i++)
        out[i] = (unsigned char)(i * 7 + i / 256);
    CUdeviceptr one = allocate(sizeof out), two = allocate(sizeof out);
    OK(CU(cuMemcpyHtoD_v2)(one, out, sizeof out));
    OK(CU(cuMemcpyDtoD_v2)(two, one, sizeof out));
    OK(CU(cuMemcpyDtoH_v2)(in, two, sizeof in));
    EXPECT(memcmp(in, out, sizeof in), 0);
    memset(in, 0, sizeof in);
    OK(CU(cuMemcpy)((CUdeviceptr)in, two + 100, 1000)); /* unified: the addresses tell */
    EXPECT(memcmp(in, out + 100, 1000), 0);
    OK(CU(cuMemcpyHtoDAsync_v2)(one, out + 1, 10, NULL));
    OK(CU(cuMemcpyDtoHAsync_v2_ptsz)(in, one, 10, NULL));
    EXPECT(memcmp(in, out + 1, 10), 0);
    OK(CU(cuMemcpyHtoD_v2)(one, out, 0));
}
CHILD_TEST(test_bytes_arrive, "")

static void body_test_a_copy_stays_inside_its_allocations(void)
{
    start(0);
    char host[2000];
    CUdeviceptr address = allocate(1000);
    EXPECT(CU(cuMemcpyHtoD_v2)(address, host, 1001), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemcpyHtoD_v2)(address + 1, host, 1000), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemcpyHtoD_v2)(address + 1, host, 999));
    EXPECT(CU(cuMemcpyHtoD_v2)((CUdeviceptr)host, host, 1), CUDA_ERROR_INVALID_VALUE); /* not the device's */
    EXPECT(CU(cuMemcpyDtoH_v2)(host, 0, 1), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuMemFree_v2)(address));
    EXPECT(CU(cuMemcpyHtoD_v2)(address, host, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemcpyHtoDAsync_v2)(address, host, 1, (CUstream)0x1234), CUDA_ERROR_INVALID_HANDLE);
}
CHILD_TEST(test_a_copy_stays_inside_its_allocations, "")

static void body_test_a_rectangle_is_copied_by_rows(void)
{
    start(0);
    CUdeviceptr address;
    size_t pitch;
    OK(CU(cuMemAllocPitch_v2)(&address, &pitch, 10, 4, 4));
    char out[4][16] = {"0123456789", "abcdefghij", "ABCDEFGHIJ", "9876543210"}, in[4][16] = {""};
    CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = out,
                          .srcPitch = 16,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = address,
                          .dstPitch = pitch,
                          .WidthInBytes = 10,
                          .Height = 4};
    OK(CU(cuMemcpy2D_v2)(&copy));
    OK(CU(cuMemcpyDtoH_v2)(in[0], address + pitch * 2 + 3, 4));
    EXPECT(memcmp(in[0], "DEFG", 4), 0);
    CUDA_MEMCPY2D back = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = address,
                          .srcPitch = pitch,
                          .srcXInBytes = 2,
                          .srcY = 1,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = in,
                          .dstPitch = 16,
                          .WidthInBytes = 3,
                          .Height = 2};
    OK(CU(cuMemcpy2DUnaligned_v2)(&back));
    EXPECT(memcmp(in[0], "cde", 3), 0);
    EXPECT(memcmp(in[1], "CDE", 3), 0);
    copy.dstPitch = 9; /* narrower than a row */
    EXPECT(CU(cuMemcpy2D_v2)(&copy), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemcpy2D_v2)(NULL), CUDA_ERROR_INVALID_VALUE);
}
CHILD_TEST(test_a_rectangle_is_copied_by_rows, "")

static void body_test_fills_write_elements(void)
{
    start(0);
    CUdeviceptr address = allocate(64);
    unsigned char bytes[64];
    OK(CU(cuMemsetD8_v2)(address, 0xab, 64));
    OK(CU(cuMemsetD16_v2)(address + 2, 0x1234, 3));
    OK(CU(cuMemsetD32Async)(address + 8, 0xdeadbeef, 2, NULL));
    OK(CU(cuMemsetD2D8_v2)(address + 32, 8, 0x55, 2, 4));
    OK(CU(cuMemcpyDtoH_v2)(bytes, address, 64));
    const unsigned char expected[20] = {0xab, 0xab, 0x34, 0x12, 0x34, 0x12, 0x34, 0x12, 0xef, 0xbe,
                                        0xad, 0xde, 0xef, 0xbe, 0xad, 0xde, 0xab, 0xab, 0xab, 0xab};
    EXPECT(memcmp(bytes, expected, sizeof expected), 0);
    for (int row = 0; row < 4; row++)
        for (int x = 0; x < 8; x++)
            EXPECT(bytes[32 + row * 8 + x], x < 2 ? 0x55 : 0xab);
    EXPECT(CU(cuMemsetD16_v2)(address + 1, 0, 1), CUDA_ERROR_INVALID_VALUE); /* not aligned */
    EXPECT(CU(cuMemsetD8_v2)(address, 0, 65), CUDA_ERROR_INVALID_VALUE);
}
CHILD_TEST(test_fills_write_elements, "")

/* KiB of shared memory that this process has touched: device memory is such. */
static long resident(void)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    TRUE(file);
    while (fgets(line, sizeof line, file) && sscanf(line, "RssShmem: %ld", &kib) != 1)
        continue;
    fclose(file);
    TRUE(kib >= 0);
    return kib;
}

static void body_test_memory_costs_ram_only_while_touched(void)
{
    start(0);
    long before = resident();
    CUdeviceptr address = allocate(4 * GIB);
    EXPECT(resident(), before);
    OK(CU(cuMemsetD8_v2)(address + GIB, 1, 64 * MIB));
    TRUE(resident() - before >= (long)(64 * MIB / KIB));
    OK(CU(cuMemFree_v2)(address));
    EXPECT(resident(), before);
}
CHILD_TEST(test_memory_costs_ram_only_while_touched, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pinned_memory_is_the_programs),
        cmocka_unit_test(test_registered_ranges_do_not_overlap),
        cmocka_unit_test(test_what_is_no_memory_cannot_be_registered),
        cmocka_unit_test(test_bytes_arrive),
        cmocka_unit_test(test_a_copy_stays_inside_its_allocations),
        cmocka_unit_test(test_a_rectangle_is_copied_by_rows),
        cmocka_unit_test(test_fills_write_elements),
        cmocka_unit_test(test_memory_costs_ram_only_while_touched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
