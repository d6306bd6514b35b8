"""A training loop that names its phases and steps. Memory is highest in the optimizer, whose scratch memory comes on
top of the gradients; validation keeps its predictions in every step."""
import time

import cuda
import gpumemtrace

STEPS = 30
predictions = []


def activations():
    return [cuda.allocate(10 * cuda.MIB) for _ in range(4)]


def gradients():
    return cuda.allocate(60 * cuda.MIB)


def scratch():
    return cuda.allocate(50 * cuda.MIB)


def predict():
    return cuda.allocate(1 * cuda.MIB)


cuda.init()
weights = cuda.allocate(60 * cuda.MIB)
for step in range(STEPS):
    with gpumemtrace.phase("training"):
        with gpumemtrace.phase("forward"):
            saved = activations()
        with gpumemtrace.phase("backward"):
            gradient = gradients()
            while saved:
                cuda.release(saved.pop())
        with gpumemtrace.phase("optimizer"):
            block = scratch()
            cuda.release(block)
            cuda.release(gradient)
    with gpumemtrace.phase("validation"):
        predictions.append(predict())
    gpumemtrace.step()
    time.sleep(0.002)
