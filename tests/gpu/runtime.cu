/* CUDA C as users write it, on the runtime: each kind of memory, counted by the program and by us at the same
 * moment. Prints what figures.py prints. */
#include <cuda_runtime.h>
#include <gpumemtrace.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

static const size_t MIB = 1 << 20;

static void need(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}

#define NEED(call) need(call, #call)

static void compare(const char *name, size_t own)
{
    struct gpumemtrace_usage usage = {};
    gpumemtrace_get_usage(0, GPUMEMTRACE_DRIVER, 0, &usage);
    printf("{\"figure\": \"%s\", \"own\": %zu, \"ours\": %llu, \"slack\": 0}\n", name, own,
           (unsigned long long)usage.live_bytes);
}

static void graph_memory(cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *memory;
    NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    NEED(cudaMallocAsync(&memory, 4 * MIB, stream));
    NEED(cudaMemsetAsync(memory, 0, 4 * MIB, stream));
    NEED(cudaFreeAsync(memory, stream));
    NEED(cudaStreamEndCapture(stream, &graph));
    NEED(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 10; i++)
        NEED(cudaGraphLaunch(exec, stream));
    NEED(cudaStreamSynchronize(stream));
    NEED(cudaGraphExecDestroy(exec));
    NEED(cudaGraphDestroy(graph));
}

static void time_steps(cudaStream_t stream)
{
    auto start = std::chrono::steady_clock::now();
    const int steps = 2000;
    for (int i = 0; i < steps; i++) {
        void *memory;
        NEED(cudaMallocAsync(&memory, MIB, stream));
        NEED(cudaFreeAsync(memory, stream));
    }
    std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    printf("{\"step_seconds\": %.9f}\n", spent.count() / steps);
}

int main()
{
    cudaStream_t stream;
    std::vector<void *> plain(8);
    void *managed, *pooled, *pinned, *pitched;
    size_t pitch;
    NEED(cudaStreamCreate(&stream));
    for (void *&block : plain)
        NEED(cudaMalloc(&block, 16 * MIB));
    compare("cudaMalloc", 128 * MIB);
    NEED(cudaMallocPitch(&pitched, &pitch, 1000, 1000));
    compare("cudaMallocPitch", 128 * MIB + pitch * 1000);
    NEED(cudaMallocAsync(&pooled, 8 * MIB, stream));
    compare("cudaMallocAsync", 136 * MIB + pitch * 1000);
    NEED(cudaMallocManaged(&managed, 8 * MIB));
    NEED(cudaHostAlloc(&pinned, 8 * MIB, cudaHostAllocDefault));
    compare("managed and pinned memory is not the device's", 136 * MIB + pitch * 1000);
    graph_memory(stream);
    compare("a graph's memory is its own", 136 * MIB + pitch * 1000);
    NEED(cudaFreeAsync(pooled, stream));
    NEED(cudaFree(pitched));
    NEED(cudaFree(managed));
    NEED(cudaFreeHost(pinned));
    for (void *block : plain)
        NEED(cudaFree(block));
    compare("nothing left", 0);
    time_steps(stream);
    return 0;
}
