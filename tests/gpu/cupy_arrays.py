"""CuPy: what its memory pool took from the driver. Argument: `async` for the driver's own pool."""
import sys
import time

import cupy
from figures import compare, held_by_others, step_times

ASYNC = sys.argv[1:] == ["async"]
if ASYNC:
    cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
pool = cupy.get_default_memory_pool()


def step():
    return (kept[0] * 2 + kept[1]).sum().item()


kept = [cupy.ones((256, 1024), dtype=cupy.float32) for _ in range(2)]
step()  # compiles its kernels, for which the driver is asked for memory, too
others = held_by_others(sum(array.nbytes for array in kept) if ASYNC else pool.total_bytes())
kept += [cupy.ones((256 + i, 1024, 1024 // 8), dtype=cupy.float32) for i in range(4)]
compare("pool's memory", sum(array.nbytes for array in kept) if ASYNC else pool.total_bytes(), before=others)
times = []
for _ in range(200):
    start = time.perf_counter()
    step()
    times.append(time.perf_counter() - start)
del kept
pool.free_all_blocks()
compare("emptied pool's memory", 0 if ASYNC else pool.total_bytes(), before=others)
step_times(times)
