/*
 * A program of the CUDA runtime, linked with each of its libraries: calls that must work alike with all of
 * them. Says what differs, and ends with 1 then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/abi.h"

cudaError_t cudaGetDeviceCount(int *);
cudaError_t cudaGetDevice(int *);
cudaError_t cudaSetDevice(int);
cudaError_t cudaMemGetInfo(size_t *, size_t *);
cudaError_t cudaMalloc(void **, size_t);
cudaError_t cudaMallocPitch(void **, size_t *, size_t, size_t);
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *, struct cudaExtent);
cudaError_t cudaMallocManaged(void **, size_t, unsigned);
cudaError_t cudaFree(void *);
cudaError_t cudaMallocAsync(void **, size_t, cudaStream_t);
cudaError_t cudaMallocAsync_ptsz(void **, size_t, cudaStream_t);
cudaError_t cudaFreeAsync(void *, cudaStream_t);
cudaError_t cudaMallocHost(void **, size_t);
cudaError_t cudaHostAlloc(void **, size_t, unsigned);
cudaError_t cudaFreeHost(void *);
cudaError_t cudaHostRegister(void *, size_t, unsigned);
cudaError_t cudaHostUnregister(void *);
cudaError_t cudaMallocArray(cudaArray_t *, const struct cudaChannelFormatDesc *, size_t, size_t, unsigned);
cudaError_t cudaMalloc3DArray(cudaArray_t *, const struct cudaChannelFormatDesc *, struct cudaExtent,
                              unsigned);
cudaError_t cudaFreeArray(cudaArray_t);
cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *, const struct cudaChannelFormatDesc *,
                                     struct cudaExtent, unsigned, unsigned);
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t);
struct cudaChannelFormatDesc cudaCreateChannelDesc(int, int, int, int, cudaChannelFormatKind);
cudaError_t cudaMemcpy(void *, const void *, size_t, cudaMemcpyKind);
cudaError_t cudaMemcpyAsync(void *, const void *, size_t, cudaMemcpyKind, cudaStream_t);
cudaError_t cudaMemcpy2D(void *, size_t, const void *, size_t, size_t, size_t, cudaMemcpyKind);
cudaError_t cudaMemset(void *, int, size_t);
cudaError_t cudaStreamCreate(cudaStream_t *);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t);
const char *cudaGetErrorString(cudaError_t);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *, const void *);
cudaError_t cudaRuntimeGetVersion(int *);
cudaError_t cudaDriverGetVersion(int *);
cudaError_t cudaGetDriverEntryPointByVersion(const char *, void **, unsigned, unsigned long long,
                                             CUdriverProcAddressQueryResult *);

struct dim3 {
    unsigned x, y, z;
};
struct launch {
    struct dim3 grid, block;
};
cudaError_t cudaLaunchKernelExC(const struct launch *, const void *, void **);
cudaError_t cudaFuncGetAttributes(void *, const void *);
cudaError_t cudaFuncSetAttribute(const void *, int, int);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *, const void *, int, size_t);
cudaError_t cudaEventCreate(cudaEvent_t *);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t, cudaStream_t, unsigned);
cudaError_t cudaEventDestroy(cudaEvent_t);
cudaError_t cudaThreadExchangeStreamCaptureMode(CUstreamCaptureMode *);
cudaError_t cudaGraphCreate(cudaGraph_t *, unsigned);
cudaError_t cudaGraphGetNodes(cudaGraph_t, CUgraphNode *, size_t *);
cudaError_t cudaGraphDestroy(cudaGraph_t);
cudaError_t cudaUserObjectCreate(CUuserObject *, void *, CUhostFn, unsigned, unsigned);
cudaError_t cudaUserObjectRelease(CUuserObject, unsigned);
cudaError_t cudaGraphRetainUserObject(cudaGraph_t, CUuserObject, unsigned, unsigned);
/* Its parameters in CUDA 13; those of 12 are the first three of them. */
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, CUstreamCaptureStatus *, cuuint64_t *, cudaGraph_t *,
                                     const CUgraphNode **, const CUgraphEdgeData **, size_t *);

#define EXPECT(expression, value)                                                                            \
    do {                                                                                                     \
        long long got_ = (long long)(expression), wanted_ = (long long)(value);                              \
        if (got_ != wanted_) {                                                                               \
            printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #expression, got_, wanted_);         \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)
#define OK(expression) EXPECT(expression, cudaSuccess)
#define MIB            (1ull << 20)

static size_t free_bytes(void)
{
    size_t free, total;
    OK(cudaMemGetInfo(&free, &total));
    return free;
}

static void check_linear(void)
{
    void *address, *null = (void *)1;
    size_t pitch, before = free_bytes();
    char back[6] = "";
    OK(cudaMalloc(&address, 3 * MIB));
    EXPECT(before - free_bytes(), 4 * MIB);
    OK(cudaMemcpy(address, "hello", 6, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(back, address, 6, cudaMemcpyDeviceToHost));
    EXPECT(strcmp(back, "hello"), 0);
    OK(cudaMemset(address, 'x', 2));
    OK(cudaMemcpyAsync(back, address, 6, cudaMemcpyDefault, NULL));
    EXPECT(strcmp(back, "xxllo"), 0);
    EXPECT(cudaMemcpy(back, address, 6, (cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
    struct cudaPointerAttributes attributes;
    OK(cudaPointerGetAttributes(&attributes, address));
    EXPECT(attributes.type, cudaMemoryTypeDevice);
    OK(cudaFree(address));
    EXPECT(cudaFree(address), cudaErrorInvalidValue);
    EXPECT(cudaPeekAtLastError(), cudaErrorInvalidValue);
    EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
    OK(cudaGetLastError());
    OK(cudaFree(NULL));
    OK(cudaMalloc(&null, 0)); /* no error here, unlike the driver's */
    EXPECT(null != NULL, 0);
    EXPECT(cudaMalloc(&null, 1ull << 40), cudaErrorMemoryAllocation);
    OK(cudaMallocPitch(&address, &pitch, 100, 5));
    EXPECT(pitch % 512, 0);
    OK(cudaMemcpy2D(address, pitch, "abcdef", 3, 3, 2, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(back, (char *)address + pitch, 3, cudaMemcpyDeviceToHost));
    EXPECT(memcmp(back, "def", 3), 0);
    OK(cudaFree(address));
    struct cudaPitchedPtr volume;
    OK(cudaMalloc3D(&volume, (struct cudaExtent){100, 10, 4096}));
    EXPECT(before - free_bytes(), 512 * 10 * 4096);
    OK(cudaFree(volume.ptr));
    OK(cudaMallocManaged(&address, 100, 1));
    *(char *)address = 1;
    OK(cudaFree(address));
    EXPECT(free_bytes(), before);
}

static void check_others(void)
{
    void *address;
    size_t before = free_bytes();
    cudaStream_t stream;
    cudaArray_t array;
    cudaMipmappedArray_t mipmap;
    char *own = malloc(10000);
    OK(cudaStreamCreate(&stream));
    OK(cudaMallocAsync(&address, 10 * MIB, stream));
    OK(cudaFreeAsync(address, stream));
    OK(cudaMallocAsync_ptsz(&address, 10, NULL));
    OK(cudaFree(address));
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamDestroy(stream));
    EXPECT(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
    OK(cudaMallocHost(&address, 100));
    OK(cudaFreeHost(address));
    OK(cudaHostAlloc(&address, 100, cudaHostAllocMapped));
    OK(cudaFreeHost(address));
    OK(cudaHostRegister(own, 10000, 0));
    EXPECT(cudaHostRegister(own, 10000, 0), cudaErrorHostMemoryAlreadyRegistered);
    OK(cudaHostUnregister(own));
    struct cudaChannelFormatDesc element = cudaCreateChannelDesc(32, 32, 0, 0, cudaChannelFormatKindFloat);
    OK(cudaMallocArray(&array, &element, 1024, 1024, 0));
    EXPECT(before - free_bytes(), 8 * MIB);
    OK(cudaFreeArray(array));
    OK(cudaMalloc3DArray(&array, &element, (struct cudaExtent){512, 512, 4}, cudaArrayLayered));
    EXPECT(before - free_bytes(), 8 * MIB);
    OK(cudaFreeArray(array));
    OK(cudaMallocMipmappedArray(&mipmap, &element, (struct cudaExtent){2048, 2048, 0}, 2, 0));
    EXPECT(before - free_bytes(), 40 * MIB);
    OK(cudaFreeMipmappedArray(mipmap));
    OK(cudaDeviceSynchronize());
    EXPECT(free_bytes(), before);
    free(own);
}

static void check_reset(void)
{
    void *address;
    size_t before = free_bytes();
    OK(cudaMalloc(&address, 100 * MIB));
    OK(cudaDeviceReset());
    EXPECT(free_bytes(), before); /* begins again by itself */
    EXPECT(cudaFree(address), cudaErrorInvalidValue);
}

static void stub(void)
{
}

static void check_kernels(void)
{
    struct launch one = {{1, 1, 1}, {32, 1, 1}}, none = {{0, 1, 1}, {32, 1, 1}};
    size_t attributes[40] = {0};
    int blocks;
    OK(cudaLaunchKernelExC(&one, stub, NULL));
    EXPECT(cudaLaunchKernelExC(&none, stub, NULL), cudaErrorInvalidConfiguration);
    OK(cudaFuncGetAttributes(attributes, stub));
    EXPECT((int)attributes[3], 1024); /* maxThreadsPerBlock, behind three sizes */
    EXPECT(cudaFuncGetAttributes(attributes, NULL), cudaErrorInvalidDeviceFunction);
    OK(cudaFuncSetAttribute(stub, 8, 1000));
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, stub, 256, 0));
    EXPECT(blocks, 8); /* of 2048 threads */
    EXPECT(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
}

static void count_end(void *ends)
{
    ++*(int *)ends;
}

static void check_graphs(void)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    size_t count = 9;
    int ends = 0;
    cudaEvent_t event;
    cudaStream_t stream;
    cudaGraph_t graph;
    CUuserObject object;
    OK(cudaEventCreate(&event));
    OK(cudaEventRecordWithFlags(event, NULL, 0));
    OK(cudaEventDestroy(event));
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, NULL, NULL, NULL));
    EXPECT(status, CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cudaStreamDestroy(stream));
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    EXPECT(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cudaThreadExchangeStreamCaptureMode(&mode));
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphGetNodes(graph, NULL, &count));
    EXPECT(count, 0);
    OK(cudaUserObjectCreate(&object, &ends, count_end, 1, 1));
    OK(cudaGraphRetainUserObject(graph, object, 1, 0));
    OK(cudaUserObjectRelease(object, 1));
    EXPECT(ends, 0);
    OK(cudaGraphDestroy(graph));
    EXPECT(ends, 1);
}

int main(int argc, char **argv)
{
    int count, device, version;
    void *entry;
    CUdriverProcAddressQueryResult status;
    OK(cudaRuntimeGetVersion(&version));
    EXPECT(version / 1000, argc > 1 ? atoi(argv[1]) : 13);
    OK(cudaDriverGetVersion(&version));
    EXPECT(version, 13000);
    OK(cudaGetDeviceCount(&count));
    EXPECT(count, 2);
    EXPECT(cudaSetDevice(2), cudaErrorInvalidDevice);
    OK(cudaSetDevice(1));
    OK(cudaGetDevice(&device));
    EXPECT(device, 1);
    check_linear();
    check_others();
    check_kernels();
    check_graphs();
    check_reset();
    OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 12000, 0, &status));
    EXPECT(status, CU_GET_PROC_ADDRESS_SUCCESS);
    EXPECT(strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation"), 0);
    EXPECT(strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"), 0);
    puts("done");
    return 0;
}
