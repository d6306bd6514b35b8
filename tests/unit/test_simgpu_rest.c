/* The rest of the simulated driver: memory of other APIs, peers, green contexts, advice, values, the
 * program's objects. */
#include "simgpu/child.h"

#include <sys/mman.h>

static int memory_file(size_t bytes, const char *text)
{
    int fd = memfd_create("external", MFD_CLOEXEC);
    TRUE(fd >= 0 && !ftruncate(fd, (off_t)bytes));
    EXPECT(pwrite(fd, text, strlen(text) + 1, 4096 + 16), strlen(text) + 1);
    return fd;
}

static void body_test_external_memory_is_mapped(void)
{
    start(0);
    size_t before = free_bytes();
    int fd = memory_file(8 * MIB, "outside");
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC source = {
        .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .handle.fd = fd, .size = 8 * MIB};
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC piece = {.offset = 4096 + 16, .size = 5 * MIB},
                                     beyond = {.offset = MIB, .size = 8 * MIB};
    CUexternalMemory memory;
    CUdeviceptr address, none;
    char text[16];
    OK(CU(cuImportExternalMemory)(&memory, &source));
    OK(CU(cuExternalMemoryGetMappedBuffer)(&address, memory, &piece));
    EXPECT(CU(cuExternalMemoryGetMappedBuffer)(&none, memory, &beyond), CUDA_ERROR_INVALID_VALUE);
    EXPECT(free_bytes(), before); /* not the device's */
    OK(CU(cuMemcpyDtoH_v2)(text, address, 8));
    EXPECT(strcmp(text, "outside"), 0);
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC layout = {.arrayDesc = {256, 256, 0, CU_AD_FORMAT_FLOAT, 1, 0},
                                                        .numLevels = 3};
    CUmipmappedArray mipmap;
    CUarray level;
    OK(CU(cuExternalMemoryGetMappedMipmappedArray)(&mipmap, memory, &layout));
    OK(CU(cuMipmappedArrayGetLevel)(&level, mipmap, 0));
    OK(CU(cuMemcpyAtoH_v2)(text, level, 4096 + 16, 8));
    EXPECT(strcmp(text, "outside"), 0);
    OK(CU(cuDestroyExternalMemory)(memory));
    EXPECT(CU(cuDestroyExternalMemory)(memory), CUDA_ERROR_INVALID_HANDLE);
    OK(CU(cuMemcpyDtoH_v2)(text, address, 8)); /* mapped still */
    OK(CU(cuMemFree_v2)(address));
    OK(CU(cuMipmappedArrayDestroy)(mipmap));
    EXPECT(CU(cuMemFree_v2)(address), CUDA_ERROR_INVALID_VALUE);
    source.handle.fd = -1;
    EXPECT(CU(cuImportExternalMemory)(&memory, &source), CUDA_ERROR_INVALID_VALUE);
    source.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP;
    EXPECT(CU(cuImportExternalMemory)(&memory, &source), CUDA_ERROR_NOT_SUPPORTED);
}
CHILD_TEST(test_external_memory_is_mapped, "")

static void body_test_peer_access_is_switched_on_once(void)
{
    CUcontext other = start(1), context = start(0);
    int can = 0;
    OK(CU(cuDeviceCanAccessPeer)(&can, 0, 1));
    EXPECT(can, 1);
    OK(CU(cuDeviceCanAccessPeer)(&can, 0, 0));
    EXPECT(can, 0);
    EXPECT(CU(cuCtxDisablePeerAccess)(other), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    OK(CU(cuCtxEnablePeerAccess)(other, 0));
    EXPECT(CU(cuCtxEnablePeerAccess)(other, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    EXPECT(CU(cuCtxEnablePeerAccess)(context, 0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(CU(cuCtxEnablePeerAccess)(other, 1), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuCtxDisablePeerAccess)(other));
    CUdeviceptr here = allocate(16), there;
    OK(CU(cuCtxSetCurrent)(other));
    there = allocate(16);
    char text[16] = "from here", back[16];
    OK(CU(cuMemcpyHtoD_v2)(here, text, 16));
    OK(CU(cuMemcpyPeer)(there, other, here, context, 16));
    OK(CU(cuMemcpyDtoH_v2)(back, there, 16));
    EXPECT(strcmp(back, text), 0);
    EXPECT(CU(cuMemcpyPeer)(there, NULL, here, context, 16), CUDA_ERROR_INVALID_CONTEXT);
}
CHILD_TEST(test_peer_access_is_switched_on_once, "SIMGPU_DEVICES=2")

static void body_test_memory_of_a_green_context_is_the_primarys(void)
{
    CUdevResource all, groups[2], rest;
    CUdevResourceDesc description;
    CUgreenCtx green, found;
    CUcontext context, current, primary;
    CUstream stream;
    unsigned count = 2, flags;
    int active;
    OK(CU(cuInit)(0));
    OK(CU(cuDeviceGetDevResource)(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    OK(CU(cuDevSmResourceSplitByCount)(groups, &count, &all, &rest, 0, 8));
    EXPECT(count, 2);
    TRUE(groups[0].sm.smCount >= 8);
    EXPECT(groups[0].sm.smCount + groups[1].sm.smCount + rest.sm.smCount, all.sm.smCount);
    OK(CU(cuDevResourceGenerateDesc)(&description, groups, 1));
    EXPECT(CU(cuGreenCtxCreate)(&green, description, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuGreenCtxCreate)(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    OK(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
    EXPECT(active, 1); /* retained */
    OK(CU(cuCtxFromGreenCtx)(&context, green));
    OK(CU(cuCtxSetCurrent)(context));
    OK(CU(cuCtxGetCurrent)(&current));
    TRUE(current == context);
    CUdeviceptr address = allocate(100);
    OK(CU(cuGreenCtxStreamCreate)(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    OK(CU(cuStreamGetGreenCtx)(stream, &found));
    TRUE(found == green);
    OK(CU(cuMemsetD8Async)(address, 1, 100, stream));
    OK(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
    OK(CU(cuGreenCtxDestroy)(green));
    EXPECT(CU(cuGreenCtxDestroy)(green), CUDA_ERROR_INVALID_CONTEXT);
    OK(CU(cuCtxSetCurrent)(primary));
    EXPECT(CU(cuStreamSynchronize)(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(CU(cuMemFree_v2)(address)); /* outlived it */
}
CHILD_TEST(test_memory_of_a_green_context_is_the_primarys, "")

static void body_test_advice_is_remembered(void)
{
    start(0);
    CUdeviceptr address;
    int value, devices[3];
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    OK(CU(cuMemAllocManaged)(&address, MIB, CU_MEM_ATTACH_GLOBAL));
    OK(CU(cuMemRangeGetAttribute)(&value, 4, 2 /* preferred location */, address, MIB));
    EXPECT(value, CU_DEVICE_INVALID);
    OK(CU(cuMemAdvise_v2)(address, MIB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    OK(CU(cuMemRangeGetAttribute)(&value, 4, 2, address, MIB));
    EXPECT(value, CU_DEVICE_CPU);
    OK(CU(cuMemAdvise)(address, MIB, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
    OK(CU(cuMemRangeGetAttribute)(devices, sizeof devices, 3 /* accessed by */, address, MIB));
    EXPECT(devices[0], 0);
    EXPECT(devices[1], CU_DEVICE_INVALID);
    OK(CU(cuMemPrefetchAsync_v2)(address, MIB, device, 0, NULL));
    OK(CU(cuMemRangeGetAttribute)(&value, 4, 4 /* last prefetch */, address, 10));
    EXPECT(value, 0);
    EXPECT(CU(cuMemPrefetchAsync)(address, 2 * MIB, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemPrefetchAsync)(allocate(100), 100, 0, NULL), CUDA_ERROR_INVALID_VALUE); /* not managed */
    OK(CU(cuMemFree_v2)(address));
}
CHILD_TEST(test_advice_is_remembered, "")

static void body_test_values_are_written_on_streams(void)
{
    start(0);
    CUdeviceptr address = allocate(16);
    uint64_t values[2] = {0};
    OK(CU(cuMemsetD8_v2)(address, 0, 16));
    OK(CU(cuStreamWriteValue32_v2)(NULL, address, 0xabcd, 0));
    OK(CU(cuStreamWriteValue64_v2_ptsz)(NULL, address + 8, 0x1234567890abcdefull, 0));
    OK(CU(cuStreamWaitValue32_v2)(NULL, address, 0xabcd, 0));
    OK(CU(cuMemcpyDtoH_v2)(values, address, 16));
    EXPECT(values[0], 0xabcd);
    EXPECT(values[1], 0x1234567890abcdef);
    EXPECT(CU(cuStreamWriteValue32_v2)(NULL, 0x1000, 1, 0), CUDA_ERROR_INVALID_VALUE);
}
CHILD_TEST(test_values_are_written_on_streams, "")

static int destroyed;

static void destroy_object(void *data)
{
    destroyed += *(int *)data;
}

static void body_test_a_graph_keeps_the_programs_object(void)
{
    start(0);
    CUuserObject object;
    CUgraph graph;
    int weight = 1;
    OK(CU(cuGraphCreate)(&graph, 0));
    OK(CU(cuUserObjectCreate)(&object, &weight, destroy_object, 1, 1));
    OK(CU(cuGraphRetainUserObject)(graph, object, 1, 0));
    OK(CU(cuUserObjectRelease)(object, 1));
    EXPECT(destroyed, 0);
    OK(CU(cuGraphDestroy)(graph));
    EXPECT(destroyed, 1);
    EXPECT(CU(cuUserObjectRelease)(object, 1), CUDA_ERROR_INVALID_VALUE);
}
CHILD_TEST(test_a_graph_keeps_the_programs_object, "")

static void body_test_kernels_are_handles_that_do_nothing(void)
{
    start(0);
    CUmodule module;
    CUfunction function, again;
    const char *name;
    OK(CU(cuModuleLoadData)(&module, "any image"));
    OK(CU(cuModuleGetFunction)(&function, module, "kernel"));
    OK(CU(cuModuleGetFunction)(&again, module, "kernel"));
    TRUE(again == function);
    OK(CU(cuFuncGetName)(&name, function));
    EXPECT(strcmp(name, "kernel"), 0);
    OK(CU(cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    EXPECT(CU(cuLaunchKernel)(function, 0, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuModuleUnload)(module));
    EXPECT(CU(cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(CU(cuModuleUnload)(module), CUDA_ERROR_INVALID_HANDLE);
}
CHILD_TEST(test_kernels_are_handles_that_do_nothing, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_external_memory_is_mapped),
        cmocka_unit_test(test_peer_access_is_switched_on_once),
        cmocka_unit_test(test_memory_of_a_green_context_is_the_primarys),
        cmocka_unit_test(test_advice_is_remembered),
        cmocka_unit_test(test_values_are_written_on_streams),
        cmocka_unit_test(test_a_graph_keeps_the_programs_object),
        cmocka_unit_test(test_kernels_are_handles_that_do_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
