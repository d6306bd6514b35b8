/*
 * The one table of every symbol that the library puts itself in front of. Everything that depends on
 * which symbols are hooked derives from it: look-ups by name (dlsym), by name and version
 * (cuGetProcAddress), the real pointers, the export map (src/preload/exports.map, held to this table
 * by a test) and the coverage table of the README.
 *
 * X(exported name, bare name, since, stream, library, family)
 *   exported name  as the library exports it, with _v2, _ptsz and the like
 *   bare name      what a program passes to cuGetProcAddress, and what a report calls the API
 *   since          the CUDA version from which cuGetProcAddress(bare name) means this variant: NNNN
 *                  of PFN_name_vNNNN in NVIDIA's cudaTypedefs.h. For the runtime, whose symbols are
 *                  asked for by name alone, the version that first had the symbol; 0 outside CUDA
 *   stream         LEGACY, or PER_THREAD for the _ptsz variant, whose stream 0 is the thread's own
 *   library        DRIVER (libcuda.so.1), RUNTIME (libcudart.so.*), FRAMEWORK (libc10.so, libnvToolsExt.so)
 *                  or SYSTEM (libc)
 *   family         what the API is about, as the accounting names it
 *
 * The order of rows means nothing, but the runtime's come after the driver's, and then the frameworks'.
 */
#ifndef HOOKS_SYMBOLS_H
#define HOOKS_SYMBOLS_H

#include <stdint.h>

/* The newest CUDA version whose names and signatures the table was checked against. */
#define SYMBOLS_CUDA_VERSION 13050

/* clang-format off */
#define DRIVER_SYMBOLS(X)                                                                                   \
    X(cuInit, "cuInit", 2000, LEGACY, DRIVER, loader)                                                       \
    X(cuGetProcAddress, "cuGetProcAddress", 11030, LEGACY, DRIVER, loader)                                  \
    X(cuGetProcAddress_v2, "cuGetProcAddress", 12000, LEGACY, DRIVER, loader)                               \
                                                                                                            \
    X(cuCtxCreate, "cuCtxCreate", 2000, LEGACY, DRIVER, context)                                            \
    X(cuCtxCreate_v2, "cuCtxCreate", 3020, LEGACY, DRIVER, context)                                         \
    X(cuCtxCreate_v3, "cuCtxCreate", 11040, LEGACY, DRIVER, context)                                        \
    X(cuCtxCreate_v4, "cuCtxCreate", 12050, LEGACY, DRIVER, context)                                        \
    X(cuCtxDestroy, "cuCtxDestroy", 2000, LEGACY, DRIVER, context)                                          \
    X(cuCtxDestroy_v2, "cuCtxDestroy", 4000, LEGACY, DRIVER, context)                                       \
    X(cuCtxAttach, "cuCtxAttach", 2000, LEGACY, DRIVER, context)                                            \
    X(cuCtxDetach, "cuCtxDetach", 2000, LEGACY, DRIVER, context)                                            \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, LEGACY, DRIVER, context)                  \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 7000, LEGACY, DRIVER, context)                \
    X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, LEGACY, DRIVER, context)            \
    X(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000, LEGACY, DRIVER, context)                    \
    X(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, LEGACY, DRIVER, context)                \
    X(cuCtxSetLimit, "cuCtxSetLimit", 3010, LEGACY, DRIVER, context)                                        \
    X(cuGreenCtxDestroy, "cuGreenCtxDestroy", 12040, LEGACY, DRIVER, context)                               \
    X(cuCtxFromGreenCtx, "cuCtxFromGreenCtx", 12040, LEGACY, DRIVER, context)                               \
                                                                                                            \
    X(cuModuleLoad, "cuModuleLoad", 2000, LEGACY, DRIVER, code)                                             \
    X(cuModuleLoadData, "cuModuleLoadData", 2000, LEGACY, DRIVER, code)                                     \
    X(cuModuleLoadDataEx, "cuModuleLoadDataEx", 2010, LEGACY, DRIVER, code)                                 \
    X(cuModuleLoadFatBinary, "cuModuleLoadFatBinary", 2000, LEGACY, DRIVER, code)                           \
    X(cuModuleUnload, "cuModuleUnload", 2000, LEGACY, DRIVER, code)                                         \
    X(cuModuleGetFunction, "cuModuleGetFunction", 2000, LEGACY, DRIVER, code)                               \
    X(cuLibraryLoadData, "cuLibraryLoadData", 12000, LEGACY, DRIVER, code)                                  \
    X(cuLibraryLoadFromFile, "cuLibraryLoadFromFile", 12000, LEGACY, DRIVER, code)                          \
    X(cuLibraryUnload, "cuLibraryUnload", 12000, LEGACY, DRIVER, code)                                      \
    X(cuLibraryGetModule, "cuLibraryGetModule", 12000, LEGACY, DRIVER, code)                                \
    X(cuKernelGetFunction, "cuKernelGetFunction", 12000, LEGACY, DRIVER, code)                              \
    X(cuFuncLoad, "cuFuncLoad", 12040, LEGACY, DRIVER, code)                                                \
                                                                                                            \
    X(cuMemAlloc, "cuMemAlloc", 2000, LEGACY, DRIVER, plain)                                                \
    X(cuMemAlloc_v2, "cuMemAlloc", 3020, LEGACY, DRIVER, plain)                                             \
    X(cuMemFree, "cuMemFree", 2000, LEGACY, DRIVER, plain)                                                  \
    X(cuMemFree_v2, "cuMemFree", 3020, LEGACY, DRIVER, plain)                                               \
    X(cuMemAllocPitch, "cuMemAllocPitch", 2000, LEGACY, DRIVER, pitched)                                    \
    X(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, LEGACY, DRIVER, pitched)                                 \
    X(cuMemAllocManaged, "cuMemAllocManaged", 6000, LEGACY, DRIVER, managed)                                \
                                                                                                            \
    X(cuMemAllocAsync, "cuMemAllocAsync", 11020, LEGACY, DRIVER, pool)                                      \
    X(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, PER_THREAD, DRIVER, pool)                             \
    X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, LEGACY, DRIVER, pool)                      \
    X(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, PER_THREAD, DRIVER, pool)             \
    X(cuMemFreeAsync, "cuMemFreeAsync", 11020, LEGACY, DRIVER, pool)                                        \
    X(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, PER_THREAD, DRIVER, pool)                               \
    X(cuMemPoolCreate, "cuMemPoolCreate", 11020, LEGACY, DRIVER, pool)                                      \
    X(cuMemPoolDestroy, "cuMemPoolDestroy", 11020, LEGACY, DRIVER, pool)                                    \
    X(cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020, LEGACY, DRIVER, pool)                                      \
                                                                                                            \
    X(cuMemAllocHost, "cuMemAllocHost", 2000, LEGACY, DRIVER, pinned)                                       \
    X(cuMemAllocHost_v2, "cuMemAllocHost", 3020, LEGACY, DRIVER, pinned)                                    \
    X(cuMemHostAlloc, "cuMemHostAlloc", 2020, LEGACY, DRIVER, pinned)                                       \
    X(cuMemFreeHost, "cuMemFreeHost", 2000, LEGACY, DRIVER, pinned)                                         \
    X(cuMemHostRegister, "cuMemHostRegister", 4000, LEGACY, DRIVER, registered)                             \
    X(cuMemHostRegister_v2, "cuMemHostRegister", 6050, LEGACY, DRIVER, registered)                          \
    X(cuMemHostUnregister, "cuMemHostUnregister", 4000, LEGACY, DRIVER, registered)                         \
                                                                                                            \
    X(cuMemCreate, "cuMemCreate", 10020, LEGACY, DRIVER, vmm)                                               \
    X(cuMemRelease, "cuMemRelease", 10020, LEGACY, DRIVER, vmm)                                             \
    X(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, LEGACY, DRIVER, vmm)               \
    X(cuMemMap, "cuMemMap", 10020, LEGACY, DRIVER, vmm)                                                     \
    X(cuMemUnmap, "cuMemUnmap", 10020, LEGACY, DRIVER, vmm)                                                 \
    X(cuMemMapArrayAsync, "cuMemMapArrayAsync", 11010, LEGACY, DRIVER, vmm)                                 \
    X(cuMemMapArrayAsync_ptsz, "cuMemMapArrayAsync", 11010, PER_THREAD, DRIVER, vmm)                        \
    X(cuMulticastCreate, "cuMulticastCreate", 12010, LEGACY, DRIVER, vmm)                                   \
    X(cuMulticastBindMem, "cuMulticastBindMem", 12010, LEGACY, DRIVER, vmm)                                 \
    X(cuMulticastBindMem_v2, "cuMulticastBindMem", 13010, LEGACY, DRIVER, vmm)                              \
    X(cuMulticastBindAddr, "cuMulticastBindAddr", 12010, LEGACY, DRIVER, vmm)                               \
    X(cuMulticastBindAddr_v2, "cuMulticastBindAddr", 13010, LEGACY, DRIVER, vmm)                            \
    X(cuMulticastUnbind, "cuMulticastUnbind", 12010, LEGACY, DRIVER, vmm)                                   \
                                                                                                            \
    X(cuArrayCreate, "cuArrayCreate", 2000, LEGACY, DRIVER, array)                                          \
    X(cuArrayCreate_v2, "cuArrayCreate", 3020, LEGACY, DRIVER, array)                                       \
    X(cuArray3DCreate, "cuArray3DCreate", 2000, LEGACY, DRIVER, array)                                      \
    X(cuArray3DCreate_v2, "cuArray3DCreate", 3020, LEGACY, DRIVER, array)                                   \
    X(cuArrayDestroy, "cuArrayDestroy", 2000, LEGACY, DRIVER, array)                                        \
    X(cuMipmappedArrayCreate, "cuMipmappedArrayCreate", 5000, LEGACY, DRIVER, array)                        \
    X(cuMipmappedArrayDestroy, "cuMipmappedArrayDestroy", 5000, LEGACY, DRIVER, array)                      \
                                                                                                            \
    X(cuGraphAddMemAllocNode, "cuGraphAddMemAllocNode", 11040, LEGACY, DRIVER, graph)                       \
    X(cuGraphAddMemFreeNode, "cuGraphAddMemFreeNode", 11040, LEGACY, DRIVER, graph)                         \
    X(cuGraphAddNode, "cuGraphAddNode", 12020, LEGACY, DRIVER, graph)                                       \
    X(cuGraphAddNode_v2, "cuGraphAddNode", 12030, LEGACY, DRIVER, graph)                                    \
    X(cuGraphAddNode_v3, "cuGraphAddNode", 13040, LEGACY, DRIVER, graph)                                    \
    X(cuGraphDestroy, "cuGraphDestroy", 10000, LEGACY, DRIVER, graph)                                       \
    X(cuGraphInstantiate, "cuGraphInstantiate", 10000, LEGACY, DRIVER, graph)                               \
    X(cuGraphInstantiate_v2, "cuGraphInstantiate", 11000, LEGACY, DRIVER, graph)                            \
    X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040, LEGACY, DRIVER, graph)             \
    X(cuGraphInstantiateWithParams, "cuGraphInstantiateWithParams", 12000, LEGACY, DRIVER, graph)           \
    X(cuGraphInstantiateWithParams_ptsz, "cuGraphInstantiateWithParams", 12000, PER_THREAD, DRIVER, graph)  \
    X(cuGraphLaunch, "cuGraphLaunch", 10000, LEGACY, DRIVER, graph)                                         \
    X(cuGraphLaunch_ptsz, "cuGraphLaunch", 10000, PER_THREAD, DRIVER, graph)                                \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", 10000, LEGACY, DRIVER, graph)                               \
    X(cuStreamEndCapture, "cuStreamEndCapture", 10000, LEGACY, DRIVER, graph)                               \
    X(cuStreamEndCapture_ptsz, "cuStreamEndCapture", 10000, PER_THREAD, DRIVER, graph)                      \
                                                                                                            \
    X(cuIpcOpenMemHandle, "cuIpcOpenMemHandle", 4010, LEGACY, DRIVER, ipc)                                  \
    X(cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle", 11000, LEGACY, DRIVER, ipc)                              \
    X(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", 4010, LEGACY, DRIVER, ipc)                                \
    X(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle", 10020, LEGACY, DRIVER, ipc)         \
    X(cuMemPoolImportPointer, "cuMemPoolImportPointer", 11020, LEGACY, DRIVER, ipc)                         \
                                                                                                            \
    X(cuExternalMemoryGetMappedBuffer, "cuExternalMemoryGetMappedBuffer", 10000, LEGACY, DRIVER, external)  \
    X(cuExternalMemoryGetMappedMipmappedArray, "cuExternalMemoryGetMappedMipmappedArray",                   \
      10000, LEGACY, DRIVER, external)

#define RUNTIME_SYMBOLS(X)                                                                                  \
    X(cudaGetDriverEntryPoint, "cudaGetDriverEntryPoint", 11030, LEGACY, RUNTIME, loader)                   \
    X(cudaGetDriverEntryPoint_ptsz, "cudaGetDriverEntryPoint", 11030, PER_THREAD, RUNTIME, loader)          \
    X(cudaGetDriverEntryPointByVersion, "cudaGetDriverEntryPointByVersion", 12050, LEGACY, RUNTIME, loader) \
    X(cudaGetDriverEntryPointByVersion_ptsz, "cudaGetDriverEntryPointByVersion",                            \
      12050, PER_THREAD, RUNTIME, loader)                                                                   \
                                                                                                            \
    X(cudaMalloc, "cudaMalloc", 2000, LEGACY, RUNTIME, plain)                                               \
    X(cudaFree, "cudaFree", 2000, LEGACY, RUNTIME, plain)                                                   \
    X(cudaMallocPitch, "cudaMallocPitch", 2000, LEGACY, RUNTIME, pitched)                                   \
    X(cudaMalloc3D, "cudaMalloc3D", 2000, LEGACY, RUNTIME, pitched)                                         \
    X(cudaMallocManaged, "cudaMallocManaged", 6000, LEGACY, RUNTIME, managed)                               \
    X(cudaMallocAsync, "cudaMallocAsync", 11020, LEGACY, RUNTIME, pool)                                     \
    X(cudaMallocAsync_ptsz, "cudaMallocAsync", 11020, PER_THREAD, RUNTIME, pool)                            \
    X(cudaMallocFromPoolAsync, "cudaMallocFromPoolAsync", 11020, LEGACY, RUNTIME, pool)                     \
    X(cudaMallocFromPoolAsync_ptsz, "cudaMallocFromPoolAsync", 11020, PER_THREAD, RUNTIME, pool)            \
    X(cudaFreeAsync, "cudaFreeAsync", 11020, LEGACY, RUNTIME, pool)                                         \
    X(cudaFreeAsync_ptsz, "cudaFreeAsync", 11020, PER_THREAD, RUNTIME, pool)                                \
    X(cudaMallocHost, "cudaMallocHost", 2000, LEGACY, RUNTIME, pinned)                                      \
    X(cudaHostAlloc, "cudaHostAlloc", 2020, LEGACY, RUNTIME, pinned)                                        \
    X(cudaFreeHost, "cudaFreeHost", 2000, LEGACY, RUNTIME, pinned)                                          \
    X(cudaHostRegister, "cudaHostRegister", 4000, LEGACY, RUNTIME, registered)                              \
    X(cudaHostUnregister, "cudaHostUnregister", 4000, LEGACY, RUNTIME, registered)                          \
    X(cudaMallocArray, "cudaMallocArray", 2000, LEGACY, RUNTIME, array)                                     \
    X(cudaMalloc3DArray, "cudaMalloc3DArray", 2000, LEGACY, RUNTIME, array)                                 \
    X(cudaMallocMipmappedArray, "cudaMallocMipmappedArray", 5000, LEGACY, RUNTIME, array)                   \
    X(cudaFreeArray, "cudaFreeArray", 2000, LEGACY, RUNTIME, array)                                         \
    X(cudaFreeMipmappedArray, "cudaFreeMipmappedArray", 5000, LEGACY, RUNTIME, array)                       \
    X(cudaGraphAddMemAllocNode, "cudaGraphAddMemAllocNode", 11040, LEGACY, RUNTIME, graph)                  \
    X(cudaGraphAddNode, "cudaGraphAddNode", 12020, LEGACY, RUNTIME, graph)                                  \
    X(cudaGraphAddNode_v2, "cudaGraphAddNode", 12030, LEGACY, RUNTIME, graph)                               \
    X(cudaGraphLaunch, "cudaGraphLaunch", 10000, LEGACY, RUNTIME, graph)                                    \
    X(cudaGraphLaunch_ptsz, "cudaGraphLaunch", 10000, PER_THREAD, RUNTIME, graph)                           \
    X(cudaIpcOpenMemHandle, "cudaIpcOpenMemHandle", 4010, LEGACY, RUNTIME, ipc)                             \
    X(cudaIpcCloseMemHandle, "cudaIpcCloseMemHandle", 4010, LEGACY, RUNTIME, ipc)                           \
    X(cudaMemPoolImportPointer, "cudaMemPoolImportPointer", 11020, LEGACY, RUNTIME, ipc)                    \
    X(cudaExternalMemoryGetMappedBuffer, "cudaExternalMemoryGetMappedBuffer",                               \
      10000, LEGACY, RUNTIME, external)                                                                     \
    X(cudaExternalMemoryGetMappedMipmappedArray, "cudaExternalMemoryGetMappedMipmappedArray",               \
      10000, LEGACY, RUNTIME, external)

/* Of PyTorch's libc10, under their C++ names (c10/core/Allocator.h): each block that its caching allocator
 * hands out or takes back, and each time it gives up. A row for each spelling of the arguments' types. */
#define FRAMEWORK_SYMBOLS(X)                                                                                \
    X(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE, "c10::reportMemoryUsageToProfiler",            \
      0, LEGACY, FRAMEWORK, torch)                                                                          \
    X(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE, "c10::reportMemoryUsageToProfiler",            \
      0, LEGACY, FRAMEWORK, torch)                                                                          \
    X(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE, "c10::reportOutOfMemoryToProfiler",              \
      0, LEGACY, FRAMEWORK, torch)                                                                          \
    X(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE, "c10::reportOutOfMemoryToProfiler",              \
      0, LEGACY, FRAMEWORK, torch)                                                                          \
    X(_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE, "c10::reportOutOfMemoryToProfiler",              \
      0, LEGACY, FRAMEWORK, torch)

/* Of libnvToolsExt.so.1, the library that NVTX was before it came as headers (hooks/nvtools.c). */
#define NVTX_SYMBOLS(X)                                                                                     \
    X(nvtxRangePushA, "nvtxRangePushA", 0, LEGACY, FRAMEWORK, nvtx)                                         \
    X(nvtxRangePushW, "nvtxRangePushW", 0, LEGACY, FRAMEWORK, nvtx)                                         \
    X(nvtxRangePushEx, "nvtxRangePushEx", 0, LEGACY, FRAMEWORK, nvtx)                                       \
    X(nvtxRangePop, "nvtxRangePop", 0, LEGACY, FRAMEWORK, nvtx)                                             \
    X(nvtxRangeStartA, "nvtxRangeStartA", 0, LEGACY, FRAMEWORK, nvtx)                                       \
    X(nvtxRangeStartW, "nvtxRangeStartW", 0, LEGACY, FRAMEWORK, nvtx)                                       \
    X(nvtxRangeStartEx, "nvtxRangeStartEx", 0, LEGACY, FRAMEWORK, nvtx)                                     \
    X(nvtxRangeEnd, "nvtxRangeEnd", 0, LEGACY, FRAMEWORK, nvtx)                                             \
    X(nvtxDomainRangePushEx, "nvtxDomainRangePushEx", 0, LEGACY, FRAMEWORK, nvtx)                           \
    X(nvtxDomainRangePop, "nvtxDomainRangePop", 0, LEGACY, FRAMEWORK, nvtx)                                 \
    X(nvtxDomainRangeStartEx, "nvtxDomainRangeStartEx", 0, LEGACY, FRAMEWORK, nvtx)                         \
    X(nvtxDomainRangeEnd, "nvtxDomainRangeEnd", 0, LEGACY, FRAMEWORK, nvtx)

/* Hooked in libc: how a program comes by the driver's functions, and the ways out of a process. */
#define SYSTEM_SYMBOLS(X)                                                                                   \
    X(dlsym, "dlsym", 0, LEGACY, SYSTEM, loader)                                                            \
    X(dlclose, "dlclose", 0, LEGACY, SYSTEM, loader)                                                        \
    X(_exit, "_exit", 0, LEGACY, SYSTEM, process)                                                           \
    X(_Exit, "_Exit", 0, LEGACY, SYSTEM, process)                                                           \
    X(execv, "execv", 0, LEGACY, SYSTEM, process)                                                           \
    X(execve, "execve", 0, LEGACY, SYSTEM, process)                                                         \
    X(execvp, "execvp", 0, LEGACY, SYSTEM, process)                                                         \
    X(execvpe, "execvpe", 0, LEGACY, SYSTEM, process)                                                       \
    X(fexecve, "fexecve", 0, LEGACY, SYSTEM, process)                                                       \
    X(execveat, "execveat", 0, LEGACY, SYSTEM, process)                                                     \
    X(execl, "execl", 0, LEGACY, SYSTEM, process)                                                           \
    X(execle, "execle", 0, LEGACY, SYSTEM, process)                                                         \
    X(execlp, "execlp", 0, LEGACY, SYSTEM, process)
/* clang-format on */

/* What has a real pointer of its own. Of these dlsym and cuGetProcAddress give out the driver's and the
 * runtime's. */
#define HOOKED_SYMBOLS(X) DRIVER_SYMBOLS(X) RUNTIME_SYMBOLS(X) FRAMEWORK_SYMBOLS(X) NVTX_SYMBOLS(X)

#define AS_HOOK(name, ...) HOOK_##name,
enum hook_id { HOOKED_SYMBOLS(AS_HOOK) HOOK_COUNT };
#undef AS_HOOK

enum hook_stream { HOOK_LEGACY, HOOK_PER_THREAD };
enum hook_library { HOOK_DRIVER, HOOK_RUNTIME, HOOK_FRAMEWORK };

struct hook_symbol {
    const char *name, *bare;
    uint8_t name_length, bare_length;
    uint8_t stream;  /* enum hook_stream */
    uint8_t library; /* enum hook_library */
    int since;
    void *hook; /* our function */
};

extern const struct hook_symbol hook_symbols[HOOK_COUNT];

/* The row of an exported name; HOOK_COUNT when it is not hooked. Costs next to nothing for names that cannot
 * be. */
enum hook_id symbol_find(const char *name);

/* The driver's variant that cuGetProcAddress means by a bare name at a CUDA version; HOOK_COUNT when none is
 * hooked. */
enum hook_id symbol_variant(const char *bare, int version, enum hook_stream stream);

/* Whether `name` is the bare or exported name of some driver row. */
int symbol_is_driver_name(const char *name);

#endif
