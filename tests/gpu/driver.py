"""The driver called as it is: each kind of memory, and what the driver says is free."""
import time

import cuda
from cuda import MIB
from figures import compare, step_times

cuda.init()
alone = cuda.memory_info()[0]
blocks = [cuda.allocate(32 * MIB) for _ in range(16)]
compare("plain blocks", 512 * MIB)
compare("plain blocks by the driver's free memory", alone - cuda.memory_info()[0], slack=32 * MIB)
pitched, pitch = cuda.allocate_pitched(1000, 1000, 4)
compare("pitched", 512 * MIB + pitch * 1000)
pooled = cuda.allocate_async(10 * MIB)
compare("pool", 522 * MIB + pitch * 1000)
cuda.release(pitched)
cuda.release_async(pooled)
for block in blocks:
    cuda.release(block)
compare("nothing left", 0)

times = []
for _ in range(200):
    start = time.perf_counter()
    for block in [cuda.allocate_async(MIB) for _ in range(50)]:
        cuda.release_async(block)
    times.append(time.perf_counter() - start)
step_times(times)
