"""A memory pool that was told to keep everything (a release threshold without end) is idle; another library asks the
driver for memory by cuMemAlloc, and is refused until the pool is trimmed."""
import ctypes

import cuda


def ask_the_pool(size):
    return cuda.allocate_async(size)


def ask_the_driver(size):
    return cuda.allocate(size)


cuda.init()
UNIT = cuda.memory_info()[0] // 10 // (32 * cuda.MIB) * (32 * cuda.MIB)
pool = cuda.default_pool(0)
cuda.set_of_pool(pool, cuda.RELEASE_THRESHOLD, ctypes.byref(ctypes.c_uint64((1 << 64) - 1)))
for block in [ask_the_pool(UNIT) for _ in range(7)]:
    cuda.release_async(block)
cuda.synchronize()
try:
    ask_the_driver(5 * UNIT)
except cuda.CudaError as error:
    assert error.code == cuda.OUT_OF_MEMORY
else:
    raise SystemExit("the pool kept nothing")
cuda.trim_pool(pool, 0)
ask_the_driver(5 * UNIT)
