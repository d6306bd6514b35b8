"""JAX. Argument: `platform`, the allocator that asks the driver for each array; `pool`, the one that it has by default,
without taking most of the device at the start."""
import os
import sys
import time

KIND = sys.argv[1]
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
if KIND == "platform":
    os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = "platform"

import jax
import numpy
from figures import compare, held_by_others, step_times

if jax.default_backend() != "gpu":
    sys.exit("JAX finds no GPU")


def bytes_of(arrays):
    """What JAX has of the driver's memory for them."""
    if KIND == "platform":
        return sum(array.nbytes for array in arrays)
    return jax.devices()[0].memory_stats()["pool_bytes"]


def arrays(widths):
    return [jax.device_put(numpy.ones((1024, width), dtype=numpy.float32)).block_until_ready() for width in widths]


kept = arrays([1024, 1024])
step = jax.jit(lambda a, b: a @ b)
step(*kept).block_until_ready()
others = held_by_others(bytes_of(kept))
kept += arrays(4096 + 8 * i for i in range(16))
compare("arrays", bytes_of(kept), before=others)
times = []
for _ in range(200):
    start = time.perf_counter()
    step(kept[0], kept[1]).block_until_ready()
    times.append(time.perf_counter() - start)
step_times(times)
