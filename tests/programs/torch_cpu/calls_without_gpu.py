"""Everything in PyTorch's libraries that asks for the driver, as far as it goes without a GPU: a line with what each call
gave, be it a number or an error's words. Nothing in it depends on the run. Arguments: the parts.

Not called are nvtxRangePush and nvtxRangePop, which give a depth where there is a tool, and cuFileDriverOpen, which does
not come back without a driver."""
import ctypes
import glob
import operator
import os
import re
import sys

import torch

CHANGING = re.compile(r"0x[0-9a-f]+|/tmp/\S+|pid \d+")


def say(name, function, *arguments):
    try:
        outcome = repr(function(*arguments))
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}"
    print(f"{name}: {CHANGING.sub('…', outcome)}", flush=True)


# Some are of some versions only: that they are not there is told as well.
TORCH_NAMES = """cuda.is_available cuda.device_count cuda.is_initialized cuda.init cuda.current_device cuda.mem_get_info
    cuda.memory_allocated cuda.memory_reserved cuda.memory_stats cuda.memory_snapshot cuda.empty_cache cuda.synchronize
    cuda.Stream cuda.Event cuda.CUDAGraph cuda.MemPool cuda.get_allocator_backend cuda.get_arch_list cuda.memory_summary
    cuda.is_bf16_supported cuda.current_blas_handle cuda.utilization cuda.list_gpu_processes cuda.nccl.version cuda.ipc_collect
    cuda.reset_peak_memory_stats cuda.get_rng_state cuda.seed_all cuda.default_stream cuda.is_current_stream_capturing
    _C._cuda_getDriverVersion _C._cuda_getCompiledVersion _C._cuda_getDeviceCount
    backends.cudnn.version backends.cuda.is_built backends.cudnn.is_available backends.cusparselt.is_available"""


def profile():
    with torch.profiler.profile(activities=list(torch.profiler.supported_activities())) as found:
        torch.ones(8, 8) @ torch.ones(8, 8)
    return sorted(event.key for event in found.key_averages())


def of_pytorch():
    for name in TORCH_NAMES.split():
        say(name, lambda: operator.attrgetter(name)(torch)())
    say("tensor", lambda: torch.empty(1, device="cuda"))
    say("to", lambda: torch.ones(1).cuda())
    say("pinned", lambda: torch.ones(1).pin_memory())
    say("pinned at once", lambda: torch.empty(1, pin_memory=True))
    say("generator", lambda: torch.Generator(device="cuda"))
    say("runtime", lambda: torch.cuda.cudart().cudaMemGetInfo(0))
    say("error words", lambda: torch.cuda.cudart().cudaGetErrorString(torch.cuda.cudart().cudaError.success))
    say("nvtx", lambda: torch.cuda.nvtx.mark("a"))
    say("graph", lambda: torch.cuda.graph(torch.cuda.CUDAGraph()).__enter__())
    say("pluggable", lambda: torch.cuda.memory.CUDAPluggableAllocator("no-such-library.so", "a", "b"))
    say("nccl", lambda: torch.distributed.init_process_group("nccl", init_method="file:///dev/null", rank=0, world_size=1))
    say("profiler", profile)


def of_triton():
    import triton
    from triton.backends.nvidia import driver
    say("triton active", lambda: triton.runtime.driver.active.get_current_target())
    say("triton is_active", driver.CudaDriver.is_active)
    say("triton utils", lambda: driver.CudaUtils() and None)


def of_bindings():
    from cuda.bindings import driver, runtime
    for function in [lambda: driver.cuInit(0), driver.cuDriverGetVersion, driver.cuDeviceGetCount, lambda: driver.cuMemAlloc(16),
                     lambda: driver.cuMemFree(0), lambda: bool(driver.cuGetProcAddress(b"cuMemAlloc", 12000, 0)[1])]:
        say("cuda.bindings driver", function)
    for function in [runtime.cudaGetDeviceCount, runtime.cudaDriverGetVersion, lambda: runtime.cudaMalloc(16),
                     lambda: runtime.cudaFree(0), lambda: runtime.cudaMallocHost(16)]:
        say("cuda.bindings runtime", function)


def folder_of(package):
    return os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), package)


def library(pattern):
    """An NVIDIA library that PyTorch brought along; None where it did not."""
    found = sorted(glob.glob(os.path.join(folder_of("nvidia"), "**", pattern), recursive=True))
    return ctypes.CDLL(found[0]) if found else None


OUT, SIZE = object(), ctypes.c_size_t(64)

# Library, function, arguments: OUT stands for the address of a zeroed buffer, whose first word is told, too.
CALLS = [
    ("libcudart.so.*", "cudaDriverGetVersion", OUT), ("libcudart.so.*", "cudaRuntimeGetVersion", OUT),
    ("libcudart.so.*", "cudaGetDeviceCount", OUT), ("libcudart.so.*", "cudaSetDevice", 0), ("libcudart.so.*", "cudaFree", None),
    ("libcudart.so.*", "cudaMalloc", OUT, SIZE), ("libcudart.so.*", "cudaMallocHost", OUT, SIZE),
    ("libcudart.so.*", "cudaHostAlloc", OUT, SIZE, 0), ("libcudart.so.*", "cudaMallocManaged", OUT, SIZE, 1),
    ("libcudart.so.*", "cudaMallocAsync", OUT, SIZE, None), ("libcudart.so.*", "cudaFreeAsync", None, None),
    ("libcudart.so.*", "cudaGetDriverEntryPoint", b"cuMemAlloc", OUT, 0, OUT),
    ("libcudart.so.*", "cudaGetDriverEntryPointByVersion", b"cuMemAlloc", OUT, 12000, 0, OUT),
    ("libcudart.so.*", "cudaGetDriverEntryPoint_ptsz", b"cuMemAllocAsync", OUT, 0, OUT),
    ("libcudart.so.*", "cudaDeviceReset"), ("libcudart.so.*", "cudaGetLastError"), ("libcudart.so.*", "cudaPeekAtLastError"),
    ("libcublas.so.*", "cublasCreate_v2", OUT), ("libcublasLt.so.*", "cublasLtCreate", OUT),
    ("libcudnn.so.*", "cudnnCreate", OUT), ("libcufft.so.*", "cufftCreate", OUT), ("libcufft.so.*", "cufftPlan1d", OUT, 64, 41, 1),
    ("libcurand.so.*", "curandCreateGenerator", OUT, 100), ("libcusolver.so.*", "cusolverDnCreate", OUT),
    ("libcusolverMg.so.*", "cusolverMgCreate", OUT), ("libcusparse.so.*", "cusparseCreate", OUT),
    ("libcusparseLt.so.*", "cusparseLtInit", OUT), ("libnccl.so.*", "ncclGetVersion", OUT),
    ("libnccl.so.*", "ncclCommInitAll", OUT, 1, None), ("libnccl.so.*", "ncclMemAlloc", OUT, SIZE),
    ("libnvrtc.so.*", "nvrtcVersion", OUT, OUT), ("libnvshmem_host.so.*", "nvshmemx_init_status"),
    ("libnvtx3interop.so.*", "nvtxMarkA", b"name"),
]


def call(pattern, name, *arguments):
    found = library(pattern)
    if found is None:
        return "no such library"
    buffers = [ctypes.create_string_buffer(4096) for _ in arguments]
    passed = [buffer if value is OUT else value for buffer, value in zip(buffers, arguments)]
    result = getattr(found, name)(*passed)
    return result, [int.from_bytes(buffer.raw[:8], "little") < 1 << 32 and int.from_bytes(buffer.raw[:8], "little")
                    for buffer, value in zip(buffers, arguments) if value is OUT]


def compile_kernel():
    """NVRTC compiles without a driver: what it makes is told."""
    nvrtc = library("libnvrtc.so.*")
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    source = b"extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }"
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_90")
    results = [nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"twice.cu", 0, None, None),
               nvrtc.nvrtcCompileProgram(program, 1, options), nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))]
    text = ctypes.create_string_buffer(size.value)
    return results + [nvrtc.nvrtcGetPTX(program, text), size.value, text.value.decode()[-400:]]


def of_libraries():
    for pattern, name, *arguments in CALLS:
        say(f"{pattern} {name}", call, pattern, name, *arguments)
    say("nvrtc", compile_kernel)


def of_cupti():
    """Without a driver it may crash: so it does with us."""
    say("cuptiGetVersion", call, "libcupti.so.*", "cuptiGetVersion", OUT)
    say("cuptiActivityEnable", call, "libcupti.so.*", "cuptiActivityEnable", 1)


PARTS = {"pytorch": of_pytorch, "triton": of_triton, "bindings": of_bindings, "libraries": of_libraries,
         "cupti": of_cupti}
for part in sys.argv[1:]:
    say(part, PARTS[part])
