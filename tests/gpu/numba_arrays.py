"""Numba: arrays on the device, by their sizes."""
import time

import numpy
from figures import compare, step_times
from numba import cuda as numba_cuda

kept = [numba_cuda.device_array((1024, 1024), dtype=numpy.float32) for _ in range(16)]
compare("arrays", sum(array.nbytes for array in kept), slack=1 << 20)
times = []
for _ in range(200):
    start = time.perf_counter()
    numba_cuda.to_device(numpy.ones(1024, dtype=numpy.float32)).copy_to_host()
    times.append(time.perf_counter() - start)
step_times(times)
