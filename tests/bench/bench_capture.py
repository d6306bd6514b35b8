#!/usr/bin/env python3
"""The cost of taking a stack: bench_capture.py BUILD [PYTHON...]. Prints a table; see bench_capture.c.

Each row is the best of several turns in processes of their own, so that a busy machine disturbs all alike. Ends with
status 1 when a capture costs more than LIMIT times its parts.
"""
import ctypes
import pathlib
import subprocess
import sys
import threading

TURNS = 5
DEPTHS = (10, 30, 100)
THREADS = (1, 2)
LIMIT = 1.3
FOREIGN_FRAMES = 5  # ctypes' and libffi's, between the interpreter and a function it calls


class Result(ctypes.Structure):
    _fields_ = [("capture_ns", ctypes.c_double), ("unwind_ns", ctypes.c_double), ("walk_ns", ctypes.c_double),
                ("native_frames", ctypes.c_int), ("python_frames", ctypes.c_int)]


def inside(folder, depth, threads):
    """In the measured process: prints the figures of the thread that was slower."""
    bench, native = ctypes.CDLL(f"{folder}/bench_capture.so"), ctypes.CDLL(f"{folder}/bench_descend.so")
    bench.bench_start()
    results = []

    def descend(frames):
        if frames > 1:
            return descend(frames - 1)
        results.append(Result())
        native.bench_descend(max(depth - FOREIGN_FRAMES, 1), bench.bench_capture, ctypes.byref(results[-1]))

    # threading's own functions make three frames.
    made = [threading.Thread(target=descend, args=(depth - 3,)) for _ in range(threads)]
    for thread in made:
        thread.start()
    for thread in made:
        thread.join()
    worst = max(results, key=lambda result: result.capture_ns)
    print(sys.version.split()[0], worst.native_frames, worst.python_frames, worst.capture_ns, worst.unwind_ns,
          worst.walk_ns)


def main(build, interpreters):
    print(f"{'version':<9}{'threads':>8}{'native':>8}{'Python':>8}{'capture':>9}{'unw_backtrace':>15}"
          f"{'Python walk':>13}{'ratio':>7}    (frames; ns a call; best of {TURNS} medians)")
    over = []
    for interpreter in interpreters:
        for threads in THREADS:
            for depth in DEPTHS:
                turns = []
                for _ in range(TURNS):
                    done = subprocess.run([interpreter, __file__, "--inside", build / "bench",
                                           str(depth), str(threads)], capture_output=True, text=True, check=True)
                    turns.append(done.stdout.split())
                version, native, python = turns[0][:3]
                capture, unwind, walk = (min(float(turn[i]) for turn in turns) for i in (3, 4, 5))
                ratio = capture / (unwind + walk)
                print(f"{version:<9}{threads:>8}{native:>8}{python:>8}{capture:>9.0f}{unwind:>15.0f}{walk:>13.0f}"
                      f"{ratio:>7.2f}")
                if ratio > LIMIT:
                    over.append(f"{version}, {threads} threads, depth {depth}")
    if over:
        sys.exit(f"a capture costs more than {LIMIT} times its parts: {'; '.join(over)}")


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        inside(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] or [sys.executable])
