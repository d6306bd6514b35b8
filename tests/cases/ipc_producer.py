"""Two processes share a buffer by CUDA IPC. The reader maps it and closes it; the producer forgets to free it."""
import ctypes
import os
import subprocess
import sys

import cuda

SIZE = 24 * cuda.MIB


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


def publish():
    return cuda.allocate(SIZE)


def read(handle):
    mapped = ctypes.c_uint64()
    assert cuda.library.cuIpcOpenMemHandle_v2(ctypes.byref(mapped), handle, ctypes.c_uint(1)) == 0
    staging = cuda.allocate(5 * cuda.MIB)
    assert cuda.library.cuIpcCloseMemHandle(mapped) == 0
    cuda.release(staging)


cuda.init()
if len(sys.argv) == 1:
    handle = Handle()
    assert cuda.library.cuIpcGetMemHandle(ctypes.byref(handle), ctypes.c_uint64(publish())) == 0
    subprocess.run([sys.executable, os.path.abspath(__file__), bytes(handle).hex()], check=True)
else:
    read(Handle.from_buffer_copy(bytes.fromhex(sys.argv[1])))
