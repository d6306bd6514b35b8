"""Small programs, told in Python, that call the driver by its exported names, and how to read what they came to."""
import textwrap

import pytest
from conftest import SIMGPU

GRANULE = 2 << 20

PREFACE = """
import ctypes, sys
from ctypes import byref, c_char, c_int, c_size_t, c_uint, c_ubyte, c_ulonglong, c_void_p, POINTER, Structure
lib = ctypes.CDLL("libcuda.so.1")
MIB, GRANULE = 1 << 20, 2 << 20

def call(name, *arguments):
    code = getattr(lib, name)(*arguments)
    assert code == 0, f"{name} gave {code}"

def refused(name, *arguments):
    code = getattr(lib, name)(*arguments)
    assert code != 0, f"{name} went well"

def u64(value=0): return c_ulonglong(value)

class Location(Structure):
    _fields_ = [("type", c_int), ("id", c_int)]

class Props(Structure):
    _fields_ = [("type", c_int), ("handles", c_int), ("location", Location), ("meta", c_void_p), ("flags", c_ubyte * 8)]

class PoolProps(Structure):
    _fields_ = [("type", c_int), ("handles", c_int), ("location", Location), ("security", c_void_p), ("max", c_size_t),
                ("usage", ctypes.c_ushort), ("reserved", c_ubyte * 54)]

class Array3D(Structure):
    _fields_ = [("width", c_size_t), ("height", c_size_t), ("depth", c_size_t), ("format", c_int), ("channels", c_uint),
                ("flags", c_uint)]

class AllocNode(Structure):
    _fields_ = [("pool", PoolProps), ("access", c_void_p), ("count", c_size_t), ("bytes", c_size_t), ("address", c_ulonglong)]

def on_device(device=0): return Props(1, 0, Location(1, device))

def primary(device=0):
    context = c_void_p()
    call("cuDevicePrimaryCtxRetain", byref(context), device)
    call("cuCtxSetCurrent", context)
    return context

def alloc(size):
    address = u64()
    call("cuMemAlloc_v2", byref(address), c_size_t(size))
    return address

def create(size, props=None):
    handle = u64()
    call("cuMemCreate", byref(handle), c_size_t(size), byref(props or on_device()), u64())
    return handle

def reserve(size):
    address = u64()
    call("cuMemAddressReserve", byref(address), c_size_t(size), c_size_t(0), u64(), u64())
    return address

def map_at(address, size, handle):
    call("cuMemMap", address, c_size_t(size), c_size_t(0), handle, u64())
"""


@pytest.fixture(params=["direct", "got"])
def driver(request):
    """NVIDIA's driver calls its own functions directly; got is one that reaches them through the dynamic linker."""
    global search_path
    search_path = f"{SIMGPU / 'got'}:{SIMGPU}" if request.param == "got" else str(SIMGPU)
    return request.param


search_path = str(SIMGPU)


def tell(gmt, story, env=None, start=True):
    """Runs the story; with `start`, from where the first device's primary context is current."""
    source = PREFACE + ('call("cuInit", 0)\ncontext = primary()\n' if start else "") + textwrap.dedent(story)
    return gmt.python(source, env={"GPUMEMTRACE_QUIET": "1", "LD_LIBRARY_PATH": search_path,
                                      **(env or {})})


def sites_in(report, function):
    return [site for site in report["sites"] if any(frame["function"] == function for frame in site["frames"])]


def site_in(report, function):
    found = sites_in(report, function)
    assert len(found) == 1, f"{function}: {len(found)} sites"
    return found[0]


def figures(site):
    return site["allocs"], site["live_blocks"], site["live_bytes"]


def nature(site):
    return site["api"], site["family"], site["space"], site["device"]


def expect_clean(report, foreign=0, failed=0):
    counters = report["counters"]
    assert (counters["foreign_frees"], counters["failed_allocs"], counters["dropped_events"]) == (foreign, failed, 0)
