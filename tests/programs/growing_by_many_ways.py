"""A server with fifty handlers, all of which put results into one cache by one line, each seldom; another line puts
back what it took; some of the plans are made once for each handler."""
import time

import cuda

HANDLERS, ROUNDS, KEPT = 50, 6, 256 * cuda.KIB
results, plans = [], {}


def remember(size):
    results.append(cuda.allocate(size))


def scratch(size):
    return cuda.allocate(size)


def plan(number):
    if number not in plans:
        plans[number] = cuda.allocate(64 * cuda.KIB)


# A function of its own for each, so that every stack is another.
LINES = ["def handle_{0}(): plan({0} % 8); block = scratch(2 << 20); remember(KEPT); cuda.release(block)"]
source = "\n".join(LINES[0].format(number) for number in range(HANDLERS))
exec(compile(source, __file__.replace(".py", "_handlers.py"), "exec"), globals())
handlers = [globals()[f"handle_{number}"] for number in range(HANDLERS)]

cuda.init()
weights = cuda.allocate(64 * cuda.MIB)
for turn in range(ROUNDS * HANDLERS):
    handlers[turn * 7 % HANDLERS]()
    time.sleep(0.001)
