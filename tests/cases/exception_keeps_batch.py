"""A step runs out of memory and the batch is halved; but the handler's exception still holds the frames of the failed
step, and so its tensors, and the smaller batch fails, too. Once the exception is gone it fits."""
import cuda


class Tensor:
    def __init__(self, size):
        self.block = None
        self.block = cuda.allocate(size)

    def __del__(self):
        if self.block is not None:
            cuda.release(self.block)


def forward(unit):
    hidden = Tensor(6 * unit)
    logits = Tensor(5 * unit)
    return hidden, logits


def smaller(unit):
    hidden = Tensor(3 * unit)
    logits = Tensor(2 * unit)
    return hidden, logits


cuda.init()
UNIT = cuda.memory_info()[0] // 10 // (2 * cuda.MIB) * (2 * cuda.MIB)
try:
    forward(UNIT)
except cuda.CudaError:
    try:
        smaller(UNIT)
    except cuda.CudaError:
        pass
    else:
        raise SystemExit("there is more memory than it says")
smaller(UNIT)
