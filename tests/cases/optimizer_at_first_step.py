"""Memory jumps in the first step, when the optimizer makes its state, and then stays: no leak, and no growth; but it
is what the peak is made of."""
import time

import cuda

LAYERS, SIZE, STEPS = 8, 16 * cuda.MIB, 40


def build():
    return [cuda.allocate(SIZE) for _ in range(LAYERS)]


def make_state():
    return [cuda.allocate(2 * SIZE) for _ in range(LAYERS)]  # two moments for each parameter


def backward():
    return [cuda.allocate(SIZE) for _ in range(LAYERS)]


cuda.init()
parameters, state = build(), None
for step in range(STEPS):
    gradients = backward()
    state = state or make_state()
    while gradients:
        cuda.release(gradients.pop())
    time.sleep(0.001)
