"""Six threads capture stacks with the probe (argument 1) while code objects are made and thrown away under them.

Each thread runs functions that exist once, at addresses that were another's a moment ago, and compares every stack with
the names it was made of. Prints {"walks": n, "wrong": [...], "functions": n, "addresses": n, "hashes": n}.
"""
import ctypes
import gc
import json
import random
import sys
import threading
import time

probe = ctypes.CDLL(sys.argv[1])
probe.probe_hash.restype = ctypes.c_uint64
SECONDS = float(sys.argv[2])
wrong, walks, lock = [], [0], threading.Lock()


def walk(buffer):
    probe.probe_walk_late(buffer, len(buffer), random.randrange(2000))
    lines = [line.split("\t") for line in buffer.value.decode().splitlines()]
    return [(function, file, int(line)) for kind, function, file, line in
            (line for line in lines if line[0] == "python")]


def churn(seed, end):
    rng, buffer, count = random.Random(seed), ctypes.create_string_buffer(1 << 16), 0
    while time.monotonic() < end:
        count += 1
        name, file, line = f"made_{seed}_{count}", f"file_{seed}_{count}.py", rng.randrange(1, 500)
        scope = {"walk": walk}
        exec(compile("\n" * (line - 1) + f"def {name}(b, d):\n    return {name}(b, d - 1) if d else walk(b)", file, "exec"),
             scope)
        depth = rng.randrange(8)
        seen = scope[name](buffer, depth)[1:depth + 2]
        right = [(name, file, line + 1)] * (depth + 1)
        with lock:
            walks[0] += 1
            if seen != right:
                wrong.append({"seen": seen, "right": right})
        scope.clear()
        if count % 50 == 0:
            gc.collect()


def reuse():
    """One function after the other at few addresses: every one has a stack of its own."""
    addresses, hashes, functions = set(), set(), 5000
    for i in range(functions):
        scope = {"hash": probe.probe_hash}
        exec(compile(f"def made_{i}():\n    return hash()", "<made>", "exec"), scope)
        addresses.add(id(scope[f"made_{i}"].__code__))
        hashes.add(scope[f"made_{i}"]())
        scope.clear()
    return {"functions": functions, "addresses": len(addresses), "hashes": len(hashes)}


def main():
    sys.setswitchinterval(1e-4)
    probe.probe_start(3, 64)
    end = time.monotonic() + SECONDS
    threads = [threading.Thread(target=churn, args=(seed, end)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"walks": walks[0], "wrong": wrong[:3], **reuse()}))


main()
