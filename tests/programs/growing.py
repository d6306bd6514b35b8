"""Half a second of work: one place keeps a block in every third turn, the others do what programs do."""
import time

import cuda

TURNS = 150


def load():
    return [cuda.allocate(4 * cuda.MIB) for _ in range(20)]


def remember(results):
    results.append(cuda.allocate(256 * cuda.KIB))


def plan(cache, length):
    if length not in cache:
        cache[length] = cuda.allocate(64 * cuda.KIB)


def gather(epoch):
    epoch.append(cuda.allocate(1 * cuda.MIB))


def turn(number, results, cache, epoch):
    scratch = cuda.allocate(2 * cuda.MIB)
    time.sleep(0.003)
    plan(cache, number * 7 % 24)
    gather(epoch)
    if number % 3 == 0:
        remember(results)
    cuda.release(scratch)


def main():
    weights, results, cache, epoch = load(), [], {}, []
    for number in range(TURNS):
        turn(number, results, cache, epoch)
        if len(epoch) == 25:
            while epoch:
                cuda.release(epoch.pop())
    return weights, results, cache


cuda.init()
kept = main()
