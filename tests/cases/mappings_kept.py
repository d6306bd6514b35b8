"""An allocator of its own, by virtual memory management: every request gets physical memory that is mapped; on free
the mapping goes, but the handle of the physical memory is forgotten, and with it the memory."""
import time

import cuda

TURNS, SIZE = 50, 2 * cuda.MIB


def physical():
    return cuda.create_memory(SIZE)


def allocate():
    address, handle = cuda.reserve(SIZE), physical()
    cuda.map_memory(address, SIZE, 0, handle)
    return address


def free(address):
    cuda.unmap_memory(address, SIZE)
    cuda.unreserve(address, SIZE)


cuda.init()
for _ in range(TURNS):
    free(allocate())
    time.sleep(0.001)
