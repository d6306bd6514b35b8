"""JAX with the allocator that asks the driver for each array."""
import os
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_ALLOCATOR", "platform")

import jax
import jax.numpy
from figures import compare, step_times

kept = [jax.numpy.ones((1024, 1024), dtype=jax.numpy.float32).block_until_ready() for _ in range(16)]
compare("arrays", sum(array.nbytes for array in kept), slack=256 << 20)
times = []
for _ in range(200):
    start = time.perf_counter()
    (kept[0] @ kept[1]).block_until_ready()
    times.append(time.perf_counter() - start)
step_times(times)
