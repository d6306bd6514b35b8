"""A caching allocator keeps an idle block; a request that would fit without it fails, the cache is emptied, and the
second try succeeds."""
import cuda

cuda.init()
UNIT = cuda.memory_info()[0] // 10 // (2 * cuda.MIB) * (2 * cuda.MIB)


def parameters():
    return cuda.allocate(4 * UNIT)


def activations():
    return cuda.allocate(3 * UNIT)


def longer_batch():
    return cuda.allocate(5 * UNIT)


kept = parameters()
cached = activations()
try:
    longer_batch()
except cuda.CudaError as error:
    assert error.code == cuda.OUT_OF_MEMORY
    cuda.release(cached)
    longer_batch()
else:
    raise SystemExit("the device has more memory than it says")
