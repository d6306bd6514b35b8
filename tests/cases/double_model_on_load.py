"""A checkpoint is loaded to the device and then copied into the model's own parameters: for that moment the device
holds the model twice. Training itself needs less than that."""
import cuda

LAYERS, SIZE = 12, 20 * cuda.MIB


def read_checkpoint():
    return [cuda.allocate(SIZE) for _ in range(LAYERS)]


def build_model():
    return [cuda.allocate(SIZE) for _ in range(LAYERS)]


def step():
    activations = [cuda.allocate(10 * cuda.MIB) for _ in range(6)]
    for block in activations:
        cuda.release(block)


cuda.init()
model = build_model()
checkpoint = read_checkpoint()
while checkpoint:
    cuda.release(checkpoint.pop())
for _ in range(20):
    step()
