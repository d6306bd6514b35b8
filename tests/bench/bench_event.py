#!/usr/bin/env python3
"""The cost of one event: bench_event.py BUILD [NATIVE PYTHON]. Prints a table; see bench_event.c.

The three runs (without the library, with it, and with it again) take turns, and the best of five turns counts, so
that a busy machine disturbs all alike.
"""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile

TURNS = 5
DEPTHS = [(30, 0), (30, 20)]
EVENT_LIMIT_NS = 1000


class Result(ctypes.Structure):
    _fields_ = [("alloc_ns", ctypes.c_double), ("free_ns", ctypes.c_double), ("unwind_ns", ctypes.c_double),
                ("native_frames", ctypes.c_int)]


def inside(library, native, python):
    """In the measured process: prints the four figures."""
    bench = ctypes.CDLL(library).bench
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "programs"))
    import cuda
    cuda.init()

    def descend(frames):
        if frames > 1:
            return descend(frames - 1)
        result = Result()
        if bench(native, ctypes.byref(result)):
            sys.exit("no driver")
        return result

    # This function and the module make two frames.
    result = descend(python - 2)
    print(result.alloc_ns, result.free_ns, result.unwind_ns, result.native_frames)


def measured(build, native, python, stacks):
    """One run of the measured process; `stacks` None: without the library."""
    env = dict(os.environ, LD_LIBRARY_PATH=str(build / "simgpu"), GPUMEMTRACE_QUIET="1", GPUMEMTRACE_REPORT="none")
    with tempfile.TemporaryDirectory() as folder:
        if stacks:
            env.update(LD_PRELOAD=str(build / "libgpumemtrace.so"), GPUMEMTRACE_OUTPUT=f"{folder}/bench",
                       GPUMEMTRACE_STACKS=stacks)
        done = subprocess.run([sys.executable, __file__, "--inside", build / "bench" / "bench_event.so", str(native),
                               str(python)], env=env, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def best(results):
    return [min(column) for column in zip(*results)]


def main(build):
    print(f"{'stack':<34}{'driver':>9}{'with us':>9}{'added':>9}{'unw_backtrace':>15}    (ns an event; "
          f"best of {TURNS} medians)")
    slow = []
    for native, python in DEPTHS:
        ways = [None, "native"] if python == 0 else [None, "mixed", "python", "none"]
        runs = {way: [] for way in ways}
        for _ in range(TURNS):
            for way in ways:
                runs[way].append(measured(build, native, max(python, 3), way))
        bare = best(runs[None])
        for way in ways[1:]:
            alloc, free, unwind, frames = best(runs[way])
            name = f"{native} native, {python} Python, {way}"
            unwind = f"{unwind:.0f} ({frames:.0f} fr.)"
            print(f"{name + ': alloc':<34}{bare[0]:>9.0f}{alloc:>9.0f}{alloc - bare[0]:>9.0f}{unwind:>15}")
            print(f"{name + ': free':<34}{bare[1]:>9.0f}{free:>9.0f}{free - bare[1]:>9.0f}")
            slow += [name for cost in (alloc - bare[0], free - bare[1]) if cost > EVENT_LIMIT_NS]
    if slow:
        sys.exit(f"an event costs more than {EVENT_LIMIT_NS} ns: {', '.join(slow)}")


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        inside(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main(pathlib.Path(sys.argv[1]).resolve())
