"""The CUDA driver for small test programs, by ctypes: real or simulated, whatever the loader finds as libcuda.so.1.

A call that the driver refuses raises CudaError with its code. Functions return what the driver gives, so that no
Python frame of this file stands between a program's line and the driver.
"""
import ctypes
import pkgutil
from ctypes import POINTER, c_int, c_size_t, c_uint, c_uint64, c_void_p

# NVIDIA's own packages are called cuda.something, and frameworks import them: they are still found.
try:
    __path__ = pkgutil.extend_path([], __name__)
except FileNotFoundError:  # of the current folder, which is gone
    __path__ = []

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
OUT_OF_MEMORY = 2

library = ctypes.CDLL("libcuda.so.1")


class CudaError(RuntimeError):
    def __init__(self, name, code):
        super().__init__(f"{name} gave {code}")
        self.code = code


def _check(result, function, arguments):
    if result:
        raise CudaError(function.__name__, result)
    return arguments


def _function(name, *parameters):
    """`parameters`: a type to pass, (type, default), or [type] for one that the driver fills and the call returns."""
    kinds, directions = [], []
    for parameter in parameters:
        if isinstance(parameter, list):
            kinds.append(POINTER(parameter[0]))
            directions.append((2,))
        elif isinstance(parameter, tuple):
            kinds.append(parameter[0])
            directions.append((1, None, parameter[1]))
        else:
            kinds.append(parameter)
            directions.append((1,))
    function = ctypes.CFUNCTYPE(c_int, *kinds)((name, library), tuple(directions))
    function.errcheck = _check
    function.__name__ = name
    return function


init_driver = _function("cuInit", c_uint)
context_retain = _function("cuDevicePrimaryCtxRetain", [c_void_p], c_int)
context_reset = _function("cuDevicePrimaryCtxReset_v2", c_int)
context_create = _function("cuCtxCreate_v2", [c_void_p], c_uint, c_int)
context_destroy = _function("cuCtxDestroy_v2", c_void_p)
context_use = _function("cuCtxSetCurrent", c_void_p)
device_count = _function("cuDeviceGetCount", [c_int])
memory_info = _function("cuMemGetInfo_v2", [c_size_t], [c_size_t])

allocate = _function("cuMemAlloc_v2", [c_uint64], c_size_t)
allocate_pitched = _function("cuMemAllocPitch_v2", [c_uint64], [c_size_t], c_size_t, c_size_t, c_uint)
release = _function("cuMemFree_v2", c_uint64)
release_pinned = _function("cuMemFreeHost", c_void_p)
allocate_managed = _function("cuMemAllocManaged", [c_uint64], c_size_t, (c_uint, 1))
allocate_async = _function("cuMemAllocAsync", [c_uint64], c_size_t, (c_void_p, None))
release_async = _function("cuMemFreeAsync", c_uint64, (c_void_p, None))
allocate_pinned = _function("cuMemHostAlloc", [c_void_p], c_size_t, (c_uint, 0))
synchronize = _function("cuCtxSynchronize")

default_pool = _function("cuDeviceGetDefaultMemPool", [c_void_p], c_int)
set_of_pool = _function("cuMemPoolSetAttribute", c_void_p, c_int, c_void_p)
trim_pool = _function("cuMemPoolTrimTo", c_void_p, c_size_t)
RELEASE_THRESHOLD = 4

stream_create = _function("cuStreamCreate", [c_void_p], (c_uint, 1))
capture_begin = _function("cuStreamBeginCapture_v2", c_void_p, (c_int, 2))
capture_end = _function("cuStreamEndCapture", c_void_p, [c_void_p])


class AllocationProperties(ctypes.Structure):
    """Pinned memory of a device."""
    _fields_ = [("type", c_int), ("handles", c_int), ("location_type", c_int), ("location", c_int),
                ("metadata", c_void_p), ("flags", ctypes.c_ubyte * 8)]


on_device = ctypes.pointer(AllocationProperties(type=1, location_type=1, location=0))
reserve = _function("cuMemAddressReserve", [c_uint64], c_size_t, (c_size_t, 0), (c_uint64, 0), (c_uint64, 0))
unreserve = _function("cuMemAddressFree", c_uint64, c_size_t)
create_memory = _function("cuMemCreate", [c_uint64], c_size_t, (POINTER(AllocationProperties), on_device), (c_uint64, 0))
map_memory = _function("cuMemMap", c_uint64, c_size_t, (c_size_t, 0), (c_uint64, 0), (c_uint64, 0))
unmap_memory = _function("cuMemUnmap", c_uint64, c_size_t)


class ArrayDescriptor(ctypes.Structure):
    _fields_ = [("width", c_size_t), ("height", c_size_t), ("format", c_int), ("channels", c_uint)]


UNSIGNED_INT8 = 1
array_create = _function("cuArrayCreate_v2", [c_void_p], POINTER(ArrayDescriptor))
array_destroy = _function("cuArrayDestroy", c_void_p)


def init(device=0):
    """Starts the driver and makes the device's primary context the thread's."""
    init_driver(0)
    use(device)


def use(device):
    context_use(context_retain(device))
