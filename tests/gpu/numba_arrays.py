"""Numba: arrays on the device, by their sizes."""
import sys
import time

import numpy
from figures import compare, held_by_others, step_times
from numba import cuda as numba_cuda

if not numba_cuda.is_available():
    sys.exit("Numba finds no GPU")


def step():
    return numba_cuda.to_device(numpy.ones(1024, dtype=numpy.float32)).copy_to_host()


step()
numba_cuda.current_context().deallocations.clear()
others = held_by_others(0)
kept = [numba_cuda.device_array((1024, 1024 + i), dtype=numpy.float32) for i in range(16)]
compare("arrays", sum(array.nbytes for array in kept), before=others)
times = []
for _ in range(200):
    start = time.perf_counter()
    step()
    times.append(time.perf_counter() - start)
del kept
numba_cuda.current_context().deallocations.clear()
compare("arrays given back", 0, before=others)
step_times(times)
