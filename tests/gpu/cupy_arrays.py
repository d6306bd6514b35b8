"""CuPy: what its memory pool took from the driver."""
import time

import cupy
from figures import compare, step_times

pool = cupy.get_default_memory_pool()
kept = [cupy.ones((256, 1024, 1024 // 8), dtype=cupy.float32) for _ in range(4)]
compare("pool's memory", pool.total_bytes(), slack=64 << 20)
times = []
for _ in range(200):
    start = time.perf_counter()
    (kept[0] * 2 + kept[1]).sum().item()
    times.append(time.perf_counter() - start)
del kept
pool.free_all_blocks()
compare("emptied pool's memory", pool.total_bytes(), slack=64 << 20)
step_times(times)
