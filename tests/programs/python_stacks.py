"""Calls the capture probe (argument 1) from every shape of Python code and compares each stack with traceback's.

The shapes (python_shapes.py) are nested into each other at random, by a seed. With libunwind, the native halves are
compared with what it says. Prints {"compared": n, "wrong": [...]}. Each comparison happens on one line, so that both look
at the same place.
"""
import ctypes
import json
import random
import sys
import threading
import traceback

from python_shapes import SHAPES, attached, detached

local = threading.local()
wrong, compared = [], 0


def walk(late=0):
    """The stack as the probe sees it, outermost first, without this function: [(function, file, line)]."""
    if not hasattr(local, "buffer"):
        local.buffer = ctypes.create_string_buffer(1 << 18)
    library = random.choice((detached, attached))
    count = library.probe_walk_late(local.buffer, len(local.buffer), late)
    lines = [line.split("\t") for line in local.buffer.value.decode("utf-8", "surrogateescape").splitlines()]
    frames = [(function, file, int(line)) for kind, function, file, line in
              (line for line in lines if line[0] == "python")]
    assert len(frames) == count
    return frames[:0:-1]


def expected():
    """The same by traceback."""
    frames = [(getattr(frame.f_code, "co_qualname", frame.f_code.co_name), frame.f_code.co_filename, line or 0)
              for frame, line in traceback.walk_stack(sys._getframe(1))]
    summary = [(entry.filename, entry.lineno or 0) for entry in traceback.extract_stack(sys._getframe(1))]
    assert summary == [(file, line) for _, file, line in frames[::-1]]
    return frames[::-1]


def check(late=0):
    global compared
    seen, right = walk(late), expected()
    compared += 1
    if seen != right:
        wrong.append({"seen": seen, "right": right})


def nest(shapes):
    if not shapes:
        return check()
    shapes[0](lambda: nest(shapes[1:]))


def nest_deeply(levels):
    return nest_deeply(levels - 1) if levels else check()


def main():
    random.seed(7)
    detached.probe_start(3, 1024)
    native = bool(detached.probe_compare())
    for shape in SHAPES:
        nest([shape])
    for levels in (0, 1, 2, 50, 300, 900):
        thread_size = threading.stack_size(64 << 20)
        sys.setrecursionlimit(5000)
        made = threading.Thread(target=nest_deeply, args=(levels,))
        made.start()
        made.join()
        threading.stack_size(thread_size)
    while compared < 1500:
        nest(random.choices(SHAPES, k=random.randint(2, 4)))
    print(json.dumps({"compared": compared, "native": native, "wrong": wrong[:5], "wrong_count": len(wrong)}))


main()
