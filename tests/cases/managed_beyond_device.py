"""Managed memory, more of it than the device has: no error, and no leak of the device's own memory; but everything
that is over is moved back and forth."""
import cuda


def table(size):
    return cuda.allocate_managed(size)


cuda.init()
total = cuda.memory_info()[1]
SIZE = total // 4 // (2 * cuda.MIB) * (2 * cuda.MIB)
tables = [table(SIZE) for _ in range(6)]
index = cuda.allocate(8 * cuda.MIB)
