"""A video filter makes an array for each frame's texture. The texture goes, its array stays."""
import time

import cuda

FRAMES, WIDTH, HEIGHT = 64, 256, 128


def array():
    return cuda.array_create(cuda.ArrayDescriptor(WIDTH, HEIGHT, cuda.UNSIGNED_INT8, 4))


cuda.init()
frames = []
for number in range(FRAMES):
    frames.append(array())
    time.sleep(0.001)
