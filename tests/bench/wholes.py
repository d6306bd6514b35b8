"""Sections about whole processes: how they start and end, what they keep in memory and on disk, and how fast it is
read back."""
import json
import os
import sys

from running import TURNS, Bench, take_turns, wait_for
from table import Figure

SHAPE = (30, 20)  # native and Python frames
START_TURNS = 30
SITES = 10000
BLOCKS = 200000
MILLION = 1000000
REPLAYED = {"sites": 1000, "living": 10000}


def start(bench: Bench):
    command = [sys.executable, "-c", "pass"]
    ways = {name: lambda env=env: wait_for(command, env)
            for name, env in (("without", bench.environment()), ("with", bench.environment("mixed")))}
    results = take_turns(ways, START_TURNS)
    wall = {name: Figure(1000 * turn.wall for turn in turns) for name, turns in results.items()}
    processor = {name: Figure(1000 * turn.processor for turn in turns) for name, turns in results.items()}
    bench.table.section("A process without CUDA, python -c pass, ms", "without", "with", "added")
    for name, figures in (("by the clock on the wall", wall), ("processor time", processor)):
        bench.table.row(name, figures["without"], figures["with"],
                        Figure.difference(figures["with"], figures["without"]))
    bench.table.must("start-up without CUDA", processor["with"].value - processor["without"].value, 1, "ms")


def end(bench: Bench):
    def leave(env):
        began_ns, processor = json.loads(bench.inside(env, "leave", *SHAPE, SITES))
        return (bench.ended.ns - began_ns) / 1e6, 1000 * bench.ended.processor - processor / 1e6

    reports = {"GPUMEMTRACE_REPORT": "text,json"}
    ways = {"without": lambda: leave(bench.environment()),
            "recording": lambda: leave(bench.environment("mixed")),
            "and reports": lambda: leave(bench.environment("mixed", **reports))}
    results = take_turns(ways, 2 * TURNS - 1)
    wall, processor = ({name: Figure(turn[i] for turn in turns) for name, turns in results.items()} for i in (0, 1))
    bench.table.section(f"The exit of a process with {SITES:,} sites, ms", *ways)
    bench.table.row("by the clock on the wall", *wall.values())
    bench.table.row("processor time", *processor.values())
    bench.table.must(f"exit report with {SITES:,} sites", processor["and reports"].value - processor["without"].value,
                     150, "ms")


def memory(bench: Bench):
    bench.table.section("Memory and disk, bytes", "30 native", "30 + 20")
    for what, count, limit in (("blocks", BLOCKS, 128), ("sites", SITES, 1024)):
        cells = []
        for stacks, python in (("native", 0), ("mixed", SHAPE[1])):
            ways = {way: lambda env=bench.environment(way): float(
                bench.inside(env, "memory", what, SHAPE[0], python, count)) for way in (None, stacks)}
            results = {way: Figure(turns) for way, turns in take_turns(ways).items()}
            cells.append(Figure.difference(results[stacks], results[None]))
        bench.table.row(f"memory, one of {count:,} {what}" + ", a block each" * (what == "sites"), *cells)
        bench.table.must(f"memory of one of {count:,} {what}", max(cell.value for cell in cells), limit, "bytes")
    cells = [bytes_an_event(bench, stacks, python) for stacks, python in (("native", 0), ("mixed", SHAPE[1]))]
    bench.table.row("recording, an event", *cells)
    bench.table.must("recording of an event", max(cells), 16, "bytes")


def make_recording(bench, stacks, python, events):
    """Of random sizes, places and lifetimes."""
    env = bench.environment(stacks, GPUMEMTRACE_MAX_TRACE="64G")
    bench.inside(env, "record", SHAPE[0], python, REPLAYED["sites"], REPLAYED["living"], events, keep=True)
    return bench.scratch / "run.gmt"


def bytes_an_event(bench, stacks, python):
    path = make_recording(bench, stacks, python, MILLION)
    with open(bench.scratch / "run.json", "wb") as output:
        wait_for([bench.build / "gpumemtrace", "report", "--json", path], dict(os.environ), output)
    counters = json.loads((bench.scratch / "run.json").read_bytes())["counters"]
    size = path.stat().st_size
    bench.sweep()
    return size / counters["events"]


def replay(bench: Bench):
    sizes = [MILLION, 10 * MILLION] + [100 * MILLION] * bool(os.environ.get("BENCH_LONG"))
    bench.table.section(f"Reading recordings back: {REPLAYED['sites']:,} sites, {REPLAYED['living']:,} living blocks",
                        "text, s", "JSON, s", "processor, s", "ns an event", "MiB on disk", "MiB in memory")
    tool, env, found = bench.build / "gpumemtrace", dict(os.environ, DEBUGINFOD_URLS=""), {}
    for events in sizes:
        path = make_recording(bench, "mixed", SHAPE[1], events)
        ways = {"text": lambda path=path: wait_for([tool, "report", path], env),
                "json": lambda path=path: wait_for([tool, "report", "--json", path], env)}
        results = take_turns(ways)
        processor = Figure(turn.processor for turn in results["text"])
        most = Figure(turn.most_kib / 1024 for turn in results["text"])
        found[events] = processor, most
        bench.table.row(f"{events // MILLION} million events", *(Figure(turn.wall for turn in results[way])
                                                                 for way in ways),
                        processor, processor.value * 1e9 / events, path.stat().st_size / 2**20, most)
        bench.sweep()
    first, last = found[sizes[0]], found[sizes[-1]]
    bench.table.must("replay and report of 10 million events", found[10 * MILLION][0].value, 1.5, "s")
    bench.table.must(f"… of {sizes[-1] // MILLION} million, for each of {sizes[0] // MILLION} million",
                     last[0].value / first[0].value, sizes[-1] / sizes[0], "x")
    bench.table.must("… its memory, against the shortest's", last[1].value / first[1].value, 1.1, "x")
