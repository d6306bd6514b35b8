"""One captured graph for each batch size, each with a memory node of its own, and none is ever destroyed."""
import time

import cuda

SHAPES = 60
graphs = {}


def capture(size):
    cuda.capture_begin(stream)
    cuda.allocate_async((1 + size) * 64 * cuda.KIB, stream)
    return cuda.capture_end(stream)


cuda.init()
stream = cuda.stream_create()
weights = cuda.allocate(64 * cuda.MIB)
for size in range(SHAPES):
    graphs[size] = capture(size)
    time.sleep(0.001)
