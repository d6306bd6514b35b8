/* Contexts of the simulated GPU: each thread's stack, primary contexts, what their end takes along, devices.
 */
#include "simgpu/child.h"

#include <pthread.h>

static CUcontext current(void)
{
    CUcontext context;
    OK(CU(cuCtxGetCurrent)(&context));
    return context;
}

static void body_test_a_thread_has_a_stack_of_contexts(void)
{
    CUcontext first, second, popped;
    OK(CU(cuInit)(0));
    TRUE(!current());
    EXPECT(CU(cuCtxPopCurrent_v2)(&popped), CUDA_ERROR_INVALID_CONTEXT);
    OK(CU(cuCtxCreate_v2)(&first, 0, 0));
    TRUE(current() == first);
    OK(CU(cuCtxCreate_v3)(&second, NULL, 0, 0, 0));
    TRUE(current() == second);
    OK(CU(cuCtxPopCurrent_v2)(&popped));
    TRUE(popped == second && current() == first);
    OK(CU(cuCtxPushCurrent_v2)(second));
    TRUE(current() == second);
    OK(CU(cuCtxSetCurrent)(first)); /* replaces the top */
    TRUE(current() == first);
    OK(CU(cuCtxPopCurrent_v2)(NULL));
    TRUE(current() == first);
    OK(CU(cuCtxSetCurrent)(NULL)); /* pops it */
    TRUE(!current());
    EXPECT(CU(cuCtxPushCurrent_v2)((CUcontext)&first), CUDA_ERROR_INVALID_CONTEXT);
}
CHILD_TEST(test_a_thread_has_a_stack_of_contexts, "")

static void body_test_every_signature_of_create_makes_a_context(void)
{
    CUcontext contexts[4];
    CUctxCreateParams parameters = {0};
    OK(CU(cuInit)(0));
    OK(CU(cuCtxCreate)(&contexts[0], CU_CTX_SCHED_SPIN, 0));
    OK(CU(cuCtxCreate_v2)(&contexts[1], 0, 0));
    OK(CU(cuCtxCreate_v3)(&contexts[2], NULL, 0, 0, 0));
    OK(CU(cuCtxCreate_v4)(&contexts[3], &parameters, 0, 0));
    OK(CU(cuCtxCreate_v4)(&contexts[3], NULL, 0, 0));
    unsigned flags;
    CUdevice device;
    OK(CU(cuCtxSetCurrent)(contexts[0]));
    OK(CU(cuCtxGetFlags)(&flags));
    EXPECT(flags, CU_CTX_SCHED_SPIN);
    OK(CU(cuCtxGetDevice)(&device));
    EXPECT(device, 0);
    EXPECT(CU(cuCtxCreate_v2)(&contexts[0], 0, 1), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(CU(cuCtxCreate_v2)(&contexts[0], 0, -1), CUDA_ERROR_INVALID_DEVICE);
    EXPECT(CU(cuCtxCreate_v2)(NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuCtxCreate_v2)(&contexts[0], 0x1000, 0), CUDA_ERROR_INVALID_VALUE);
}
CHILD_TEST(test_every_signature_of_create_makes_a_context, "")

static void body_test_destroying_a_context_frees_what_is_its_own(void)
{
    CUcontext keeper = start(0), context;
    size_t before = free_bytes();
    CUdeviceptr plain, managed, pool, kept = allocate(MIB);
    void *pinned;
    char *registered = malloc(8192);
    CUstream stream;
    CUevent event;
    CUarray array;
    CUDA_ARRAY_DESCRIPTOR descriptor = {64, 64, CU_AD_FORMAT_FLOAT, 1};
    OK(CU(cuCtxCreate_v2)(&context, 0, 0));
    plain = allocate(10 * MIB);
    OK(CU(cuMemAllocManaged)(&managed, 100, CU_MEM_ATTACH_GLOBAL));
    OK(CU(cuMemHostAlloc)(&pinned, 100, 0));
    OK(CU(cuMemHostRegister_v2)(registered, 8192, 0));
    OK(CU(cuStreamCreate)(&stream, 0));
    OK(CU(cuEventCreate)(&event, 0));
    OK(CU(cuArrayCreate_v2)(&array, &descriptor));
    OK(CU(cuMemAllocAsync)(&pool, 100, stream));
    OK(CU(cuCtxDestroy_v2)(context));
    TRUE(current() == keeper);
    EXPECT(CU(cuCtxDestroy_v2)(context), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(CU(cuMemFree_v2)(plain), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemFree_v2)(managed), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemFreeHost)(pinned), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemHostUnregister)(registered), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    EXPECT(CU(cuStreamDestroy_v2)(stream), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(CU(cuEventDestroy_v2)(event), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(CU(cuArrayDestroy)(array), CUDA_ERROR_INVALID_HANDLE);
    OK(CU(cuMemFree_v2)(pool)); /* of no context */
    OK(CU(cuMemFree_v2)(kept));
    OK(CU(cuCtxSynchronize)());
    EXPECT(free_bytes(), before);
    free(registered);
}
CHILD_TEST(test_destroying_a_context_frees_what_is_its_own, "")

static CUcontext shared;
static pthread_barrier_t barrier;

static void *use_destroyed(void *unused)
{
    CUdeviceptr address;
    OK(CU(cuCtxSetCurrent)(shared));
    OK(CU(cuMemAlloc_v2)(&address, 1));
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); /* destroyed by now */
    TRUE(current() == shared);
    EXPECT(CU(cuMemAlloc_v2)(&address, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return unused;
}

static void body_test_another_thread_is_told_of_the_end(void)
{
    pthread_t thread;
    OK(CU(cuInit)(0));
    OK(CU(cuCtxCreate_v2)(&shared, 0, 0));
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, use_destroyed, NULL);
    pthread_barrier_wait(&barrier);
    OK(CU(cuCtxDestroy_v2)(shared));
    TRUE(!current());
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
}
CHILD_TEST(test_another_thread_is_told_of_the_end, "")

static int primary_is_active(void)
{
    unsigned flags;
    int active;
    OK(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
    return active;
}

static void body_test_the_primary_context_counts_its_users(void)
{
    CUcontext first, second;
    OK(CU(cuInit)(0));
    EXPECT(CU(cuDevicePrimaryCtxRelease_v2)(0), CUDA_ERROR_INVALID_CONTEXT);
    EXPECT(primary_is_active(), 0);
    OK(CU(cuDevicePrimaryCtxRetain)(&first, 0));
    OK(CU(cuDevicePrimaryCtxRetain)(&second, 0));
    TRUE(first == second);
    EXPECT(primary_is_active(), 1);
    OK(CU(cuCtxSetCurrent)(first));
    CUdeviceptr address = allocate(MIB);
    OK(CU(cuDevicePrimaryCtxRelease_v2)(0));
    OK(CU(cuMemFree_v2)(address));
    address = allocate(MIB);
    EXPECT(CU(cuCtxDestroy_v2)(first), CUDA_ERROR_INVALID_CONTEXT); /* not this way */
    OK(CU(cuDevicePrimaryCtxRelease_v2)(0));
    EXPECT(primary_is_active(), 0);
    TRUE(current() == first); /* stays on the stack */
    EXPECT(CU(cuMemFree_v2)(address), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(CU(cuDevicePrimaryCtxRetain)(&second, 0));
    TRUE(second == first);
    EXPECT(CU(cuMemFree_v2)(address), CUDA_ERROR_INVALID_VALUE); /* gone with the old one */
}
CHILD_TEST(test_the_primary_context_counts_its_users, "")

static void body_test_a_reset_ends_allocations_but_not_uses(void)
{
    CUcontext context = start(0);
    size_t before = free_bytes();
    CUdeviceptr address = allocate(30 * MIB);
    OK(CU(cuDevicePrimaryCtxReset_v2)(0));
    EXPECT(primary_is_active(), 0);
    EXPECT(CU(cuMemFree_v2)(address), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CUcontext again;
    OK(CU(cuDevicePrimaryCtxRetain)(&again, 0));
    TRUE(again == context);
    EXPECT(free_bytes(), before);
    OK(CU(cuDevicePrimaryCtxRelease_v2)(0));
    OK(CU(cuDevicePrimaryCtxRelease_v2)(0)); /* the use from before the reset */
    EXPECT(CU(cuDevicePrimaryCtxRelease_v2)(0), CUDA_ERROR_INVALID_CONTEXT);
}
CHILD_TEST(test_a_reset_ends_allocations_but_not_uses, "")

static void body_test_devices_are_described(void)
{
    int count, value;
    char name[64], bus[32];
    size_t bytes;
    CUdevice device;
    CUuuid one, two;
    OK(CU(cuInit)(0));
    OK(CU(cuDeviceGetCount)(&count));
    EXPECT(count, 3);
    OK(CU(cuDeviceGet)(&device, 2));
    EXPECT(device, 2);
    EXPECT(CU(cuDeviceGet)(&device, 3), CUDA_ERROR_INVALID_DEVICE);
    OK(CU(cuDeviceGetName)(name, sizeof name, 2));
    TRUE(strlen(name) > 0);
    OK(CU(cuDeviceTotalMem_v2)(&bytes, 1));
    EXPECT(bytes, 3 * GIB / 2);
    OK(CU(cuDeviceGetUuid_v2)(&one, 0));
    OK(CU(cuDeviceGetUuid)(&two, 1));
    TRUE(memcmp(&one, &two, sizeof one) != 0);
    OK(CU(cuDeviceGetPCIBusId)(bus, sizeof bus, 1));
    OK(CU(cuDeviceGetByPCIBusId)(&device, bus));
    EXPECT(device, 1);
    OK(CU(cuDeviceGetAttribute)(&value, 41 /* unified addressing */, 0));
    EXPECT(value, 1);
    EXPECT(CU(cuDeviceGetAttribute)(&value, 0, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuDeviceGetAttribute)(&value, 1, 7), CUDA_ERROR_INVALID_DEVICE);
}
CHILD_TEST(test_devices_are_described, "SIMGPU_DEVICES=3 SIMGPU_MEMORY=1.5G")

static void body_test_errors_have_names(void)
{
    const char *text = NULL;
    OK(CU(cuGetErrorName)(CUDA_ERROR_OUT_OF_MEMORY, &text));
    EXPECT(strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY"), 0);
    OK(CU(cuGetErrorString)(CUDA_ERROR_OUT_OF_MEMORY, &text));
    EXPECT(strcmp(text, "out of memory"), 0);
    EXPECT(CU(cuGetErrorName)((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    TRUE(!text);
}
CHILD_TEST(test_errors_have_names, "")

static void in_forked(void)
{
    pid_t child = fork();
    if (child == 0) {
        CUdeviceptr address;
        EXPECT(CU(cuMemAlloc_v2)(&address, 1), CUDA_ERROR_NOT_INITIALIZED);
        EXPECT(CU(cuInit)(0), CUDA_ERROR_NOT_INITIALIZED);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    EXPECT(status, 0);
}

static void body_test_a_forked_child_has_no_driver(void)
{
    start(0);
    CUdeviceptr address = allocate(100);
    in_forked();
    OK(CU(cuMemFree_v2)(address));
}
CHILD_TEST(test_a_forked_child_has_no_driver, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thread_has_a_stack_of_contexts),
        cmocka_unit_test(test_every_signature_of_create_makes_a_context),
        cmocka_unit_test(test_destroying_a_context_frees_what_is_its_own),
        cmocka_unit_test(test_another_thread_is_told_of_the_end),
        cmocka_unit_test(test_the_primary_context_counts_its_users),
        cmocka_unit_test(test_a_reset_ends_allocations_but_not_uses),
        cmocka_unit_test(test_devices_are_described),
        cmocka_unit_test(test_errors_have_names),
        cmocka_unit_test(test_a_forked_child_has_no_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
