"""The classic of training loops: the running loss is a device buffer that keeps every step's activations with it."""
import cuda

STEPS = 50


class Tensor:
    def __init__(self, size, saved=()):
        self.block = cuda.allocate(size)
        self.saved = saved

    def __del__(self):
        cuda.release(self.block)


def forward(batch):
    hidden = Tensor(4 * cuda.MIB, (batch,))
    return Tensor(1 * cuda.MIB, (hidden,))


def loss_of(logits, total):
    return Tensor(4 * cuda.KIB, (logits, total))


def epoch():
    total = None
    for _ in range(STEPS):
        batch = Tensor(2 * cuda.MIB)
        logits = forward(batch)
        del batch
        total = loss_of(logits, total)
    return total


cuda.init()
kept = epoch()
import os  # noqa: E402
os._exit(0)
