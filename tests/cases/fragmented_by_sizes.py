"""Batches of varying length, and a small statistic that is kept of each: when the batches are gone, the statistics hold
on to the segments they were put in. There is more free memory in the cache than the next request needs, and it does
not fit."""
import caching
import cuda

BATCHES = 10


def batch(size):
    return allocator.malloc(0, size, 0)


def statistic():
    return allocator.malloc(0, 3 * cuda.MIB, 0)


def longest_batch():
    return allocator.malloc(0, 40 * cuda.MIB, 0)


cuda.init()
allocator = caching.Allocator()
batches, statistics = [], []
for number in range(BATCHES):
    batches.append(batch(8 * cuda.MIB))
    statistics.append(statistic())
    batches.append(batch(8 * cuda.MIB))
while batches:
    allocator.free(batches.pop())
assert longest_batch() is None
