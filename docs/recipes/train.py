"""A training step of a transformer, as far as memory goes, for the recipes in docs/recipes.md.

It allocates what such a step allocates, by the CUDA driver: weights, activations, gradients and Adam's two moments.
Needs tests/programs and python of this project on PYTHONPATH.
"""
import argparse

import cuda
import gpumemtrace

LAYERS, HIDDEN, TOKENS = 6, 1024, 512

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8, help="sequences in a batch")
parser.add_argument("--half", action="store_true", help="FP16, with weights and moments in FP32 beside it")
parser.add_argument("--checkpoint", action="store_true", help="keep only a layer's input, and compute the rest again")
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--keep-losses", action="store_true", help="forget to call .item()")
options = parser.parse_args()

element = 2 if options.half else 4
parameters = 12 * HIDDEN * HIDDEN  # of a layer
inputs = options.batch * TOKENS * HIDDEN * element  # of a layer


def for_each_layer(make):
    return list(map(make, range(LAYERS)))


def weights(_):
    return cuda.allocate(parameters * element)


def master_weights(_):
    return cuda.allocate(parameters * 4)


def moments(_):
    return cuda.allocate(2 * parameters * 4)


def activations():
    """What backward needs of a layer besides its input."""
    return cuda.allocate(15 * inputs)


def forward(layers):
    kept = []
    for _ in layers:
        kept.append(cuda.allocate(inputs))
        inner = activations()
        if options.checkpoint:
            cuda.release(inner)
        else:
            kept.append(inner)
    return kept


def backward(layers, kept):
    gradients = []
    for _ in layers:
        inner = activations() if options.checkpoint else kept.pop()
        gradients.append(cuda.allocate(parameters * element))
        cuda.release(inner)
        cuda.release(kept.pop())
    return gradients


def train():
    layers = for_each_layer(weights)
    masters = for_each_layer(master_weights) if options.half else []
    adam = []
    losses = []
    for _ in range(options.steps):
        with gpumemtrace.phase("forward"):
            kept = forward(layers)
            loss = cuda.allocate(options.batch * TOKENS * 4)
        with gpumemtrace.phase("backward"):
            gradients = backward(layers, kept)
        with gpumemtrace.phase("optimizer"):
            adam = adam or for_each_layer(moments)
            for gradient in gradients:
                cuda.release(gradient)
        if options.keep_losses:
            losses.append(loss)
        else:
            cuda.release(loss)
        gpumemtrace.step()
    for block in layers + masters + adam:
        cuda.release(block)


cuda.init()
train()
