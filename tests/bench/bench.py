#!/usr/bin/env python3
"""What everything costs: bench.py BUILD [SECTION...]. Prints one table, and what it must show.

What is compared takes turns, in processes of its own, and of each figure the best turn counts, so that a busy machine
disturbs all alike. BENCH_LONG=1 adds what takes minutes.
"""
import os
import pathlib
import sys
import time

import calls
import wholes
from running import Bench

SECTIONS = {section.__name__: section for section in (
    calls.events, calls.threads, calls.parts, calls.peers, wholes.start, wholes.end, wholes.memory, wholes.replay)}


def main(build, wanted):
    bench = Bench(build)
    unknown = [name for name in wanted if name not in SECTIONS]
    if unknown:
        sys.exit(f"no such section: {' '.join(unknown)}; there are {' '.join(SECTIONS)}")
    print("Of each figure the best turn, and how much worse the middle one was.")
    began = time.monotonic()
    for name, section in SECTIONS.items():
        if not wanted or name in wanted:
            section(bench)
    good = bench.table.finish()
    print(f"\n{time.monotonic() - began:.0f} s, on {os.cpu_count()} processors that {os.getloadavg()[0]:.1f} wanted")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:])
