"""Runs the processes that are measured, by turns, and keeps what they told."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from table import Figure, Table

INSIDE = pathlib.Path(__file__).with_name("inside.py")
TURNS = 3
DEPTH_SETTING = "256"  # GPUMEMTRACE_DEPTH: nothing measured here is cut


def take_turns(ways, turns=TURNS):
    """Calls each of the functions `turns` times, in turns; {name: [results]}."""
    results = {name: [] for name in ways}
    for _ in range(turns):
        for name, measure in ways.items():
            results[name].append(measure())
    return results


class Ended:
    """How a program went: when it ended, its seconds by the clock on the wall and of processor time, and the most KiB
    it had in memory."""

    def __init__(self, began_ns, usage):
        self.ns = time.monotonic_ns()
        self.wall = (self.ns - began_ns) / 1e9
        self.processor = usage.ru_utime + usage.ru_stime
        self.most_kib = usage.ru_maxrss


def wait_for(command, env, output=subprocess.DEVNULL):
    began_ns = time.monotonic_ns()
    process = subprocess.Popen(list(map(str, command)), env=env, stdin=subprocess.DEVNULL, stdout=output)
    _, status, usage = os.wait4(process.pid, 0)
    ended = Ended(began_ns, usage)
    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        sys.exit(f"{' '.join(process.args)} ended with status {process.returncode}")
    return ended


class Bench:
    def __init__(self, build):
        self.build = build
        self.table = Table()
        self.known = {}  # figures of one section that another compares with
        self.ended = None  # of the process that inside() called last
        self._folder = tempfile.TemporaryDirectory(prefix="gpumemtrace-bench-")
        self.scratch = pathlib.Path(self._folder.name)

    def environment(self, stacks=None, driver="simgpu", **more):
        """Of a process on the simulated GPU, or on another driver; `stacks` None: without the library."""
        env = dict(os.environ, LD_LIBRARY_PATH=str(self.build / driver), SIMGPU_MEMORY="64G",
                   GPUMEMTRACE_QUIET="1", GPUMEMTRACE_REPORT="none")
        if stacks:
            env.update(LD_PRELOAD=str(self.build / "libgpumemtrace.so"), GPUMEMTRACE_STACKS=stacks,
                       GPUMEMTRACE_DEPTH=DEPTH_SETTING, GPUMEMTRACE_OUTPUT=f"{self.scratch}/run")
        env.update(more)
        return env

    def inside(self, env, *arguments, interpreter=(sys.executable,), keep=False):
        """Calls inside.py in a process; returns what it printed. What it wrote as run* is taken away."""
        output = self.scratch / "output"
        with open(output, "wb") as to:
            self.ended = wait_for([*interpreter, INSIDE, self.build, *map(str, arguments)], env, to)
        if not keep:
            self.sweep()
        return output.read_text()

    def sweep(self):
        for path in self.scratch.glob("run*"):
            path.unlink()

    def events(self, stacks, native, python, threads=1, kind="cuda", interpreter=(sys.executable,), **more):
        """A way to make events, for take_turns()."""
        env = self.environment(stacks, **more)
        return lambda: self.inside(env, "events", kind, native, python, threads, interpreter=interpreter)


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def rate(turn):
    """Events a second of all threads together, from when the first began to when the last ended."""
    began, ended = min(one["began_ns"] for one in turn), max(one["ended_ns"] for one in turn)
    return sum(one["events"] for one in turn) / (ended - began) * 1e9


class Events:
    """Several turns of one way to make events."""

    def __init__(self, turns):
        threads = [json.loads(turn) for turn in turns]
        self.alloc = Figure(mean(one["alloc_ns"] for one in turn) for turn in threads)
        self.free = Figure(mean(one["free_ns"] for one in turn) for turn in threads)
        self.event = Figure(mean(one["alloc_ns"] + one["free_ns"] for one in turn) / 2 for turn in threads)
        self.latency = Figure(mean(one["latency_ns"] for one in turn) for turn in threads)
        self.per_second = Figure((rate(turn) for turn in threads), best=max)
        self.per_processor = Figure((sum(one["events"] for one in turn) / sum(one["ran_ns"] for one in turn) * 1e9
                                     for turn in threads), best=max)

    def added(self, bare, part="event"):
        return Figure.difference(getattr(self, part), getattr(bare, part))
