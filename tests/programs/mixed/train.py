"""A loop that loses memory in an extension (argument 1), for the tests of names and for README.md."""
import ctypes
import sys

import cuda

fused = ctypes.CDLL(sys.argv[1])


class Model:
    def forward(self, tokens):
        return fused.fused_attention(16, tokens)


def train(steps):
    model = Model()
    for _ in range(steps):
        model.forward(512)


cuda.init()
train(20)
