"""What the programs of tests/gpu print, for judge.py: a line of JSON for each figure that was counted twice, once by the
program or its framework and once by us at the same moment; and the time that a step took."""
import json
import statistics

import gpumemtrace


def compare(name, own, layer=gpumemtrace.DRIVER, slack=0, device=0):
    """`own` bytes in use, as the program knows it; ours may be up to `slack` bytes from it."""
    print(json.dumps({"figure": name, "own": own, "ours": gpumemtrace.usage(layer, device).live_bytes, "slack": slack}),
          flush=True)


def step_times(seconds):
    """Of the first steps, which load code and fill caches, nothing is told."""
    print(json.dumps({"step_seconds": statistics.median(seconds[len(seconds) // 4:])}), flush=True)
