"""The stand-in for PyTorch's caching allocator (torch/caching_allocator.cc), by ctypes and RTLD_LOCAL, as `import torch`
loads the real one. CACHING_ALLOCATOR names the folder with its libraries."""
import ctypes
import os
from ctypes import c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p

FOLDER = os.environ["CACHING_ALLOCATOR"]
CPU, CUDA = 0, 1


class Reported(ctypes.Structure):
    _fields_ = [("address", c_uint64), ("bytes", c_int64), ("allocated", c_uint64), ("reserved", c_uint64),
                ("type", c_int32), ("index", c_int32)]


class Figures(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in ["reserved", "allocated", "releasable", "stranded", "largest_free", "segments"]]

    def dictionary(self):
        return {name: getattr(self, name) for name, _ in self._fields_}


class Allocator:
    def __init__(self, folder=FOLDER):
        self.cuda = ctypes.CDLL(os.path.join(folder, "libc10_cuda.so"))
        self.c10 = ctypes.CDLL(os.path.join(folder, "libc10.so"))
        self.malloc = self._function("allocator_malloc", c_void_p, c_int, c_size_t, c_int)
        self.free = self._function("allocator_free", None, c_void_p)
        self.empty_cache = self._function("allocator_empty_cache", None, c_int)
        self.expandable = self._function("allocator_expandable", None, c_int)
        self.c10.c10_report.argtypes = [c_void_p, c_int64, c_int, c_int]

    def _function(self, name, result, *arguments):
        function = getattr(self.cuda, name)
        function.restype, function.argtypes = result, list(arguments)
        return function

    def figures(self, device=0, which="figures"):
        found = Figures()
        getattr(self.cuda, "allocator_" + which)(device, ctypes.byref(found))
        return found.dictionary()

    def refusals(self):
        count = self.cuda.allocator_refusals(None, None, c_size_t(0))
        figures, devices = (Figures * count)(), (c_int * count)()
        self.cuda.allocator_refusals(figures, devices, c_size_t(count))
        return [(device, one.dictionary()) for device, one in zip(devices, figures)]

    def report(self, address, size, kind=CUDA, index=0):
        self.c10.c10_report(address, size, kind, index)

    def reported(self):
        self.c10.c10_reported.restype = c_size_t
        count = self.c10.c10_reported(None, c_size_t(0))
        found = (Reported * count)()
        self.c10.c10_reported(found, c_size_t(count))
        return [{name: getattr(one, name) for name, _ in Reported._fields_} for one in found]
