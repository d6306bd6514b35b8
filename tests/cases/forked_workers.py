"""A pre-forking server: the parent only starts workers; each worker loads its own model, and one of them loads a second
one on top of it."""
import os

import cuda


def load_model():
    return cuda.allocate(40 * cuda.MIB)


def load_again():
    return cuda.allocate(40 * cuda.MIB)


def serve(number):
    cuda.init()
    load_model()
    if number == 2:
        load_again()


for number in range(4):
    child = os.fork()
    if child == 0:
        serve(number)
        raise SystemExit
    assert os.waitpid(child, 0)[1] == 0
