"""A small training loop: a two-layer network, stochastic gradient descent with momentum, one loss a step.

It allocates its buffers as a framework's C++ does, by the CUDA driver (here through ctypes), and gives them back
when a step is done. All but one: run it under gpumemtrace and read the report.
"""
import ctypes
import time

BATCH, INPUTS, HIDDEN, CLASSES = 256, 8192, 2048, 1024
STEPS = 60
FLOAT = 4

cuda = ctypes.CDLL("libcuda.so.1")


def checked(result, function, arguments):
    if result:
        raise RuntimeError(f"the CUDA driver answered {result} to {function.__name__}")
    return arguments


def driver_call(name, *parameters):
    """A driver function; parameters of direction 2 are returned, as ctypes does it."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, *[kind for _, kind in parameters])
    function = prototype((name, cuda), tuple((direction,) for direction, _ in parameters))
    function.errcheck = checked
    function.__name__ = name
    return function


PUT, GET = 1, 2
init = driver_call("cuInit", (PUT, ctypes.c_uint))
retain_context = driver_call("cuDevicePrimaryCtxRetain", (GET, ctypes.POINTER(ctypes.c_void_p)), (PUT, ctypes.c_int))
use_context = driver_call("cuCtxSetCurrent", (PUT, ctypes.c_void_p))
allocate = driver_call("cuMemAlloc_v2", (GET, ctypes.POINTER(ctypes.c_uint64)), (PUT, ctypes.c_size_t))
release = driver_call("cuMemFree_v2", (PUT, ctypes.c_uint64))
allocate_pinned = driver_call("cuMemHostAlloc", (GET, ctypes.POINTER(ctypes.c_void_p)), (PUT, ctypes.c_size_t),
                              (PUT, ctypes.c_uint))
release_pinned = driver_call("cuMemFreeHost", (PUT, ctypes.c_void_p))


class Linear:
    def __init__(self, inputs, outputs):
        self.inputs, self.outputs = inputs, outputs
        self.weight = allocate(inputs * outputs * FLOAT)
        self.bias = allocate(outputs * FLOAT)

    def forward(self):
        self.output = allocate(BATCH * self.outputs * FLOAT)
        return self.output

    def backward(self):
        gradient = allocate(self.inputs * self.outputs * FLOAT)
        release(self.output)
        return gradient

    def close(self):
        release(self.weight)
        release(self.bias)


class Momentum:
    def __init__(self, layers):
        self.velocity = [allocate(layer.inputs * layer.outputs * FLOAT) for layer in layers]

    def step(self, gradients):
        for gradient in gradients:
            release(gradient)

    def close(self):
        for buffer in self.velocity:
            release(buffer)


def train(layers, optimizer, staging):
    history = []  # for the plot at the end
    for step in range(STEPS):
        for layer in layers:
            layer.forward()
        loss = allocate(BATCH * CLASSES * FLOAT)
        history.append(loss)
        gradients = [layer.backward() for layer in reversed(layers)]
        optimizer.step(gradients)
        time.sleep(0.005)  # where the GPU would compute
        if step % 20 == 19:
            print(f"step {step + 1}/{STEPS}", flush=True)
    return history


def main():
    init(0)
    use_context(retain_context(0))
    staging = allocate_pinned(BATCH * INPUTS * FLOAT, 0)
    layers = [Linear(INPUTS, HIDDEN), Linear(HIDDEN, CLASSES)]
    optimizer = Momentum(layers)
    train(layers, optimizer, staging)
    optimizer.close()
    for layer in layers:
        layer.close()
    release_pinned(staging)


main()
