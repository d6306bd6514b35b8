/* Memory between processes by handles, and the simulated driver under threads. */
#include "simgpu/child.h"

#include <pthread.h>

static void exchange(int to, int from, void *out, void *in, size_t bytes)
{
    if (out)
        EXPECT(write(to, out, bytes), bytes);
    if (in)
        EXPECT(read(from, in, bytes), bytes);
}

static void import_side(int to, int from)
{
    CUipcMemHandle handles[2];
    CUdeviceptr small, again, large;
    char text[16], byte = 'd';
    start(0);
    size_t before = free_bytes();
    exchange(to, from, NULL, handles, sizeof handles);
    EXPECT(CU(cuIpcOpenMemHandle_v2)(&small, handles[0], 0), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuIpcOpenMemHandle_v2)(&small, handles[0], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(CU(cuIpcOpenMemHandle)(&again, handles[0], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    EXPECT(again, small);
    OK(CU(cuIpcOpenMemHandle_v2)(&large, handles[1], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    EXPECT(free_bytes(), before); /* the memory is the exporter's */
    OK(CU(cuMemcpyDtoH_v2)(text, small, 6));
    EXPECT(strcmp(text, "hello"), 0);
    OK(CU(cuMemcpyHtoD_v2)(large + 9 * MIB, "world", 6));
    EXPECT(CU(cuMemcpyHtoD_v2)(large + 10 * MIB, "world", 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuMemFree_v2)(small), CUDA_ERROR_INVALID_VALUE); /* closed, not freed */
    OK(CU(cuIpcCloseMemHandle)(small));
    OK(CU(cuMemcpyDtoH_v2)(text, small, 6)); /* opened twice */
    OK(CU(cuIpcCloseMemHandle)(small));
    EXPECT(CU(cuMemcpyDtoH_v2)(text, small, 6), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuIpcCloseMemHandle)(small), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuIpcCloseMemHandle)(large));
    memset(&handles[0], 7, sizeof handles[0]);
    EXPECT(CU(cuIpcOpenMemHandle_v2)(&small, handles[0], 1), CUDA_ERROR_INVALID_HANDLE);
    exchange(to, from, &byte, NULL, 1);
}

static void body_test_another_process_opens_memory(void)
{
    int there[2], back[2];
    TRUE(!pipe(there) && !pipe(back));
    pid_t child = fork();
    if (child == 0) {
        import_side(back[1], there[0]);
        _exit(0);
    }
    start(0);
    CUipcMemHandle handles[2], other;
    CUdeviceptr beside = allocate(100), small = allocate(1000), large = allocate(10 * MIB), opened;
    char text[16];
    int status;
    OK(CU(cuMemcpyHtoD_v2)(small, "hello", 6));
    OK(CU(cuIpcGetMemHandle)(&handles[0], small));
    OK(CU(cuIpcGetMemHandle)(&handles[1], large));
    EXPECT(CU(cuIpcOpenMemHandle_v2)(&opened, handles[0], 1), CUDA_ERROR_INVALID_CONTEXT); /* one's own */
    EXPECT(CU(cuIpcGetMemHandle)(&other, beside + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuIpcGetMemHandle)(NULL, beside), CUDA_ERROR_INVALID_VALUE);
    exchange(there[1], -1, handles, NULL, sizeof handles);
    waitpid(child, &status, 0);
    EXPECT(status, 0);
    OK(CU(cuMemcpyDtoH_v2)(text, large + 9 * MIB, 6));
    EXPECT(strcmp(text, "world"), 0);
    OK(CU(cuMemFree_v2)(small));
    EXPECT(allocate(1000), small);
    OK(CU(cuIpcGetMemHandle)(&other, small));
    TRUE(memcmp(&other, &handles[0], sizeof other) != 0); /* another block, another handle */
}
CHILD_TEST(test_another_process_opens_memory, "")

enum { THREADS = 8, ROUNDS = 3000, HELD = 16 };

static void *allocate_and_free(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    CUdeviceptr held[HELD] = {0};
    CUcontext context;
    OK(CU(cuDevicePrimaryCtxRetain)(&context, 0));
    OK(CU(cuCtxSetCurrent)(context));
    for (int round = 0; round < ROUNDS; round++) {
        int at = rand_r(&seed) % HELD;
        unsigned mark = (unsigned)rand_r(&seed), back = 0;
        if (held[at]) {
            OK(at % 2 ? CU(cuMemFreeAsync)(held[at], CU_STREAM_PER_THREAD) : CU(cuMemFree_v2)(held[at]));
            held[at] = 0;
            continue;
        }
        size_t bytes = 4 + (size_t)rand_r(&seed) % (4 * MIB);
        OK(at % 2 ? CU(cuMemAllocAsync)(&held[at], bytes, CU_STREAM_PER_THREAD)
                  : CU(cuMemAlloc_v2)(&held[at], bytes));
        OK(CU(cuMemcpyHtoD_v2)(held[at], &mark, 4)); /* nobody else writes there */
        OK(CU(cuMemcpyDtoH_v2)(&back, held[at], 4));
        EXPECT(back, mark);
    }
    for (int at = 0; at < HELD; at++)
        if (held[at])
            OK(CU(cuMemFree_v2)(held[at]));
    return NULL;
}

static void body_test_threads_share_the_driver(void)
{
    pthread_t threads[THREADS];
    start(0);
    size_t before = free_bytes();
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, allocate_and_free, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    OK(CU(cuCtxSynchronize)());
    EXPECT(free_bytes(), before);
}
CHILD_TEST(test_threads_share_the_driver, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_process_opens_memory),
        cmocka_unit_test(test_threads_share_the_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
