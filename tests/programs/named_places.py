"""Allocates in every shape of Python code and prints, for each block, what traceback says of the same place.

Each block has a size of its own, which is how the reader finds its site: {size: [[function, file, line], ...]},
innermost first. The look at the stack happens inside the call's arguments, on the call's own line.
"""
import json
import sys
import threading
import traceback

import cuda

seen = {}
lock = threading.Lock()


def size():
    """A size of its own for the caller's line, after writing down the caller's stack."""
    stack, frame = [], sys._getframe(1)
    for entry, line in traceback.walk_stack(frame):
        code = entry.f_code
        stack.append([getattr(code, "co_qualname", code.co_name), code.co_filename, line])
    with lock:
        number = 5000 + len(seen)
        seen[number] = stack
    return number


def in_function():
    return cuda.allocate(size())


def deeper(levels):
    return deeper(levels - 1) if levels else cuda.allocate(size())


class Model:
    def method(self):
        return cuda.allocate(size())

    @classmethod
    def class_method(cls):
        return cuda.allocate(size())

    @property
    def lazily(self):
        return cuda.allocate(size())

    def __enter__(self):
        cuda.allocate(size())

    def __exit__(self, *what):
        cuda.allocate(size())


def nested():
    def inner():
        return cuda.allocate(size())
    return inner()


def generator():
    for _ in range(2):
        yield cuda.allocate(size())


async def coroutine():
    return cuda.allocate(size())


async def awaits():
    return await coroutine()


def await_by_hand():
    try:
        awaits().send(None)
    except StopIteration:
        pass


def in_except():
    try:
        raise ValueError
    except ValueError:
        return cuda.allocate(size())


def long_way():
    # Lines far apart, and an expression over several of them.
    values = [
        1,
        2,
    ]


































































































    return values and cuda.allocate(size())


def größe():
    return cuda.allocate(size())


def on_demand():
    exec(compile("def made():\n\n    return cuda.allocate(size())\n", "<made>", "exec"), globals())
    return made()  # noqa: F821


def sort_key(_):
    return cuda.allocate(size())


cuda.init()
cuda.allocate(size())
in_function(), in_function()
deeper(12)
Model().method()
Model.class_method()
Model().lazily
with Model():
    pass
nested()
list(generator())
await_by_hand()
[cuda.allocate(size()) for _ in range(2)]
(lambda: cuda.allocate(size()))()
in_except()
long_way()
größe()
on_demand()
sorted([1], key=sort_key)


def in_thread():
    cuda.use(0)
    deeper(3)


for thread in [threading.Thread(target=in_thread) for _ in range(3)]:
    thread.start()
    thread.join()

json.dump(seen, sys.stdout)
