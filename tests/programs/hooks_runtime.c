/*
 * Every allocating function of the CUDA runtime, each called at a place of its own, once kept and once freed.
 * Says which of them the runtime refused. With NVIDIA's headers out of reach, the prototypes are those of the
 * hooks.
 */
#include <stdio.h>

#include "cuda/abi.h"

cudaError_t cudaMalloc(void **, size_t);
cudaError_t cudaFree(void *);
cudaError_t cudaMallocManaged(void **, size_t, unsigned);
cudaError_t cudaMallocPitch(void **, size_t *, size_t, size_t);
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *, struct cudaExtent);
cudaError_t cudaMallocHost(void **, size_t);
cudaError_t cudaHostAlloc(void **, size_t, unsigned);
cudaError_t cudaFreeHost(void *);
cudaError_t cudaHostRegister(void *, size_t, unsigned);
cudaError_t cudaHostUnregister(void *);
cudaError_t cudaMallocAsync(void **, size_t, cudaStream_t);
cudaError_t cudaMallocAsync_ptsz(void **, size_t, cudaStream_t);
cudaError_t cudaMallocFromPoolAsync(void **, size_t, cudaMemPool_t, cudaStream_t);
cudaError_t cudaFreeAsync(void *, cudaStream_t);
cudaError_t cudaFreeAsync_ptsz(void *, cudaStream_t);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *, int);
cudaError_t cudaMallocArray(cudaArray_t *, const struct cudaChannelFormatDesc *, size_t, size_t, unsigned);
cudaError_t cudaMalloc3DArray(cudaArray_t *, const struct cudaChannelFormatDesc *, struct cudaExtent,
                              unsigned);
cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *, const struct cudaChannelFormatDesc *,
                                     struct cudaExtent, unsigned, unsigned);
cudaError_t cudaFreeArray(cudaArray_t);
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t);
cudaError_t cudaGetLastError(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaGetDriverEntryPoint(const char *, void **, unsigned long long, int *);
/* From 12.5 on. */
__attribute__((weak)) cudaError_t cudaGetDriverEntryPointByVersion(const char *, void **, unsigned,
                                                                   unsigned long long, int *);

static const struct cudaChannelFormatDesc float4_texel = {32, 32, 32, 32, cudaChannelFormatKindFloat};
static unsigned char host[2][8192] __attribute__((aligned(4096)));
static size_t last_pitch;

/* `allocate` and `release` are expressions on `block` (a pointer) and `turn` (0 and 1). */
#define PLACE(name, type, allocate, release)                                                                 \
    __attribute__((noinline)) static void name(void)                                                         \
    {                                                                                                        \
        for (volatile int turn = 0; turn < 2; turn++) {                                                      \
            type block = 0;                                                                                  \
            int rc = (int)(allocate);                                                                        \
            (void)turn;                                                                                      \
            if (rc == 0 && turn == 1)                                                                        \
                rc = (int)(release);                                                                         \
            if (rc != 0)                                                                                     \
                printf("%s: %d\n", #name, rc);                                                               \
        }                                                                                                    \
        cudaGetLastError();                                                                                  \
    }

PLACE(plain, void *, cudaMalloc(&block, 1000), cudaFree(block))
PLACE(managed, void *, cudaMallocManaged(&block, 2000, 1), cudaFree(block))
PLACE(pitched, void *, cudaMallocPitch(&block, &last_pitch, 100, 7), cudaFree(block))
PLACE(pinned, void *, cudaMallocHost(&block, 3000), cudaFreeHost(block))
PLACE(host_alloc, void *, cudaHostAlloc(&block, 3500, 1), cudaFreeHost(block))
PLACE(registered, void *, cudaHostRegister(host[turn], 4096, 0), cudaHostUnregister(host[turn]))
PLACE(async, void *, cudaMallocAsync(&block, 4000, NULL), cudaFreeAsync(block, NULL))
PLACE(async_per_thread, void *, cudaMallocAsync_ptsz(&block, 4100, NULL), cudaFreeAsync_ptsz(block, NULL))
PLACE(array, cudaArray_t, cudaMallocArray(&block, &float4_texel, 64, 32, 0), cudaFreeArray(block))
PLACE(array_3d, cudaArray_t, cudaMalloc3DArray(&block, &float4_texel, ((struct cudaExtent){16, 8, 4}), 0),
      cudaFreeArray(block))
PLACE(mipmap, cudaMipmappedArray_t,
      cudaMallocMipmappedArray(&block, &float4_texel, ((struct cudaExtent){16, 8, 0}), 2, 0),
      cudaFreeMipmappedArray(block))

static struct cudaPitchedPtr volume;
PLACE(pitched_3d, void *, cudaMalloc3D(&volume, ((struct cudaExtent){100, 5, 3})), cudaFree(volume.ptr))

static cudaMemPool_t pool;
PLACE(from_pool, void *, cudaMallocFromPoolAsync(&block, 4200, pool, NULL), cudaFreeAsync(block, NULL))

__attribute__((noinline)) static void refused(void)
{
    void *block;
    printf("too much: %d\n", cudaMalloc(&block, (size_t)1 << 50));
    printf("last error: %d\n", cudaGetLastError());
    printf("last error: %d\n", cudaGetLastError());
    printf("nowhere: %d\n", cudaMalloc(NULL, 10));
    cudaGetLastError();
}

__attribute__((noinline)) static void by_entry_point(void)
{
    CUdeviceptr block;
    CUresult (*allocate)(CUdeviceptr *, size_t) = NULL;
    int status;
    if (cudaGetDriverEntryPoint("cuMemAlloc", (void **)&allocate, 0, &status) == cudaSuccess &&
        allocate(&block, 5000) != 0)
        printf("entry point refused\n");
}

__attribute__((noinline)) static void by_entry_point_of_a_version(void)
{
    CUdeviceptr block;
    CUresult (*allocate)(CUdeviceptr *, size_t) = NULL;
    int status;
    if (cudaGetDriverEntryPointByVersion != NULL &&
        cudaGetDriverEntryPointByVersion("cuMemAlloc", (void **)&allocate, 12000, 0, &status) ==
            cudaSuccess &&
        allocate(&block, 6000) != 0)
        printf("entry point of a version refused\n");
}

int main(int count, char **arguments)
{
    (void)arguments;
    cudaFree(NULL);
    plain();
    managed();
    pitched();
    pitched_3d();
    pinned();
    host_alloc();
    registered();
    async();
    async_per_thread();
    if (cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess)
        from_pool();
    array();
    array_3d();
    mipmap();
    refused();
    by_entry_point();
    by_entry_point_of_a_version();
    fprintf(stderr, "pitch %zu %zu\n", last_pitch, volume.pitch);
    if (count > 1)
        printf("reset: %d\n", cudaDeviceReset());
    return 0;
}
