"""Two ranks are put on one device by mistake (CUDA_VISIBLE_DEVICES was set for one of them only): rank 0 holds most of
it, and rank 1, which holds next to nothing, is the one that runs out."""
import os
import subprocess
import sys

import cuda


def parameters(size):
    return cuda.allocate(size)


def buckets(size):
    return cuda.allocate(size)


cuda.init()
if os.environ["RANK"] == "0":
    unit = cuda.memory_info()[0] // 10 // (2 * cuda.MIB) * (2 * cuda.MIB)
    kept = parameters(7 * unit)
    subprocess.run([sys.executable, os.path.abspath(__file__), str(unit)], env=dict(os.environ, RANK="1"), check=True)
else:
    unit = int(sys.argv[1])
    kept = parameters(unit)
    try:
        buckets(4 * unit)
    except cuda.CudaError as error:
        assert error.code == cuda.OUT_OF_MEMORY
    else:
        raise SystemExit("the device is not shared")
