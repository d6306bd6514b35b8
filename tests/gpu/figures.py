"""What the programs of tests/gpu print, for judge.py: a line of JSON for each figure that was counted twice, by the
program or its framework and by us; and the time that a step took."""
import json
import os
import statistics

import gpumemtrace


def compare(name, own, layer=gpumemtrace.DRIVER, slack=0, device=0, before=0):
    """`own` bytes in use now, as the program knows it; ours, without the `before` bytes that others held earlier, may be
    up to `slack` bytes from it."""
    ours = gpumemtrace.usage(layer, device).live_bytes - before
    print(json.dumps({"figure": name, "own": own, "ours": ours, "slack": slack}), flush=True)


def compare_in_report(name, own, *way):
    """The same with a figure of the report that this process leaves. `way`: keys, and for a list what its row must hold."""
    print(json.dumps({"figure": name, "own": own, "way": way, "pid": os.getpid(), "slack": 0}), flush=True)


def held_by_others(own, layer=gpumemtrace.DRIVER, device=0):
    """What is recorded beyond the `own` bytes that a framework knows of: its libraries', for compare()."""
    return gpumemtrace.usage(layer, device).live_bytes - own if gpumemtrace.active() else 0


def step_times(seconds):
    """Of the first steps, which load code and fill caches, nothing is told."""
    print(json.dumps({"step_seconds": statistics.median(seconds[len(seconds) // 4:])}), flush=True)
