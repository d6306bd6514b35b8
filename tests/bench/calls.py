"""Sections about single calls: an event, its parts, and what other tracers add to malloc. All times of calls are
processor time."""
import json
import os

from running import Bench, Events, take_turns
from table import Figure

DEPTHS = (10, 30, 60, 100)
THREADS = (1, 2, 8)
HEAPTRACK = ("/usr/lib/heaptrack/libheaptrack_preload.so", "/usr/lib64/heaptrack/libheaptrack_preload.so")


def python_frames(depth):
    """Of a mixed stack, beside `depth` native ones."""
    return depth * 2 // 3


def shapes():
    """(name, GPUMEMTRACE_STACKS, native frames, Python frames)"""
    yield "no stack", "none", 30, 20
    for depth in DEPTHS:
        yield f"{depth} native", "native", depth, 0
    for depth in DEPTHS:
        yield f"{depth} Python", "python", 0, depth
    for depth in DEPTHS:
        yield f"{depth} native, {python_frames(depth)} Python", "mixed", depth, python_frames(depth)


MIXED = f"30 native, {python_frames(30)} Python"


def events(bench: Bench):
    for threads in THREADS:
        ways = {name: bench.events(stacks, native, python, threads) for name, stacks, native, python in shapes()}
        ways["bare"] = bench.events(None, 30, 20, threads)
        results = {name: Events(turns) for name, turns in take_turns(ways).items()}
        bench.known[threads] = results
        bare = results.pop("bare")
        bench.table.section(f"What the library adds to a call in {threads} thread{'s' * (threads > 1)}, ns"
                            f" (the driver itself: {bare.alloc} and {bare.free})",
                            "allocation", "free", "event", "events/s", "per processor")
        for name, result in results.items():
            bench.table.row(name, result.added(bare, "alloc"), result.added(bare, "free"), result.added(bare),
                            result.per_second, result.per_processor)
        results["bare"] = bare
    judge_events(bench)


def judge_events(bench):
    alone = bench.known[THREADS[0]]
    bench.table.must("a repeated stack, 30 native frames: an event", alone["30 native"].added(alone["bare"]).value, 250,
                     "ns")


def threads(bench: Bench):
    """What threads do at once, before all other programs where that is allowed, on a driver that takes no lock."""
    kind = "alone" if os.geteuid() == 0 else "cuda"
    names = {None: "the driver alone", "native": "30 native", "mixed": MIXED}
    ways = {(stacks, count): bench.events(stacks, 30, 20 if stacks == "mixed" else 0, count, kind, driver="bench/driver")
            for stacks in names for count in THREADS}
    ways.update({("simgpu", count): bench.events(None, 30, 0, count, kind) for count in THREADS})
    results = {way: Events(turns) for way, turns in take_turns(ways).items()}
    bench.table.section("What threads do at once, events a second by the clock on the wall",
                        *(f"{count} thread{'s' * (count > 1)}" for count in THREADS),
                        *(f"{count} / {THREADS[0]}" for count in THREADS[1:]),
                        *(f"ns, {count} thread{'s' * (count > 1)}" for count in THREADS))
    for stacks, name in {**names, "simgpu": "the simulated GPU alone"}.items():
        rates = [results[stacks, count].per_second for count in THREADS]
        bench.table.row(name, *rates, *(rate.value / rates[0].value for rate in rates[1:]),
                        *(results[stacks, count].latency for count in THREADS))
    most, one = results["mixed", THREADS[-1]], results["mixed", 1]
    bench.table.must(f"{MIXED}, {THREADS[-1]} threads against 1: events a second",
                     most.per_second.value / one.per_second.value, 1.8, "x", at_least=True)
    bench.table.must(f"{MIXED}, {THREADS[-1]} threads: what an allocation waits for, median",
                     max(results["mixed", count].latency.value for count in THREADS[1:]) - one.latency.value, 1000, "ns")


PARTS = {"take": "the whole stack, as captured", "unwind": "unw_backtrace", "backtrace": "backtrace() of libc",
         "frame pointers": "frame pointers", "python": "bare Python walk", "look-up": "stack look-up",
         "ledger": "ledger", "record": "record"}


def parts(bench: Bench):
    sizes = [(depth, python) for depth in DEPTHS for python in (0, python_frames(depth))]
    ways = {size: lambda size=size: bench.inside(dict(os.environ), "parts", *size, bench.scratch / "run.gmt")
            for size in sizes}
    results = {size: [json.loads(turn) for turn in turns] for size, turns in take_turns(ways).items()}
    ns = {part: {size: Figure(turn["ns"][part] for turn in results[size]) for size in sizes} for part in PARTS}
    bench.table.section("The parts of an event by themselves, and other ways to take its stack, ns",
                        *(f"{native} + {python}" for native, python in sizes))
    for part, title in PARTS.items():
        bench.table.row(title, *ns[part].values())
    bench.table.row("captured / (unwind + Python)", *(
        ns["take"][size].value / (ns["unwind"][size].value + ns["python"][size].value) for size in sizes))
    ways = {size: lambda size=size: bench.inside(dict(os.environ), "parts", *size, bench.scratch / "run.gmt", 2)
            for size in sizes}
    both = {size: [json.loads(turn)["ns"] for turn in turns] for size, turns in take_turns(ways).items()}
    bench.table.row("… by 2 threads at once", *(
        Figure(turn["take"] / (turn["unwind"] + turn["python"]) for turn in both[size]) for size in sizes))
    for what, title in (("native", "native frames"), ("python", "Python frames"), ("pointers", "by frame pointers")):
        bench.table.row(title, *(str(results[size][0][what]) for size in sizes))
    if 1 in bench.known:
        size, alone = (30, python_frames(30)), bench.known[1]
        bench.table.must(f"{MIXED}: an allocation (1.2 x (unw_backtrace + Python walk) + 100)",
                         alone[MIXED].added(alone["bare"], "alloc").value,
                         1.2 * (ns["unwind"][size].value + ns["python"][size].value) + 100, "ns")


def peers(bench: Bench):
    """What others add to malloc, beside what we add to the driver's calls on the same shapes of stack."""
    for depth in DEPTHS:
        for python in (0, python_frames(depth)):
            ratios = compare_peers(bench, depth, python)
            for name, limit in (("heaptrack", 0.5), ("memray --native", 0.25)):
                if name in ratios and (depth, python) == (30, python_frames(30)):
                    bench.table.must(f"{MIXED}: an event, against {name}'s", ratios[name], limit, "x")


def compare_peers(bench, native, python):
    size, env = (native, python), {}
    heaptrack = next((path for path in HEAPTRACK if os.path.exists(path)), None)
    memray = bench.build / "bench" / "peers" / "bin" / "python"
    ways = {"driver": bench.events(None, *size),
            "gpumemtrace": bench.events("mixed" if python else "native", *size),
            "malloc": bench.events(None, *size, kind="malloc")}
    if heaptrack:
        env = {"LD_PRELOAD": heaptrack, "DUMP_HEAPTRACK_OUTPUT": str(bench.scratch / "run.heaptrack")}
        ways["heaptrack"] = bench.events(None, *size, kind="malloc", **env)
    for name, options in (("memray", []), ("memray --native", ["--native"])):
        if memray.exists():
            run = [memray, "-m", "memray", "run", "-q", "-f", *options, "-o", str(bench.scratch / "run.memray")]
            ways[name] = bench.events(None, *size, kind="malloc", interpreter=list(map(str, run)))
    results = {name: Events(turns) for name, turns in take_turns(ways).items()}
    ours = results["gpumemtrace"].added(results["driver"])
    bench.table.section(f"What tracers add to a call from {native} native and {python} Python frames, ns",
                        "allocation", "free", "event", "ours / theirs")
    ratios = {}
    for name in ("gpumemtrace", "heaptrack", "memray", "memray --native"):
        if name not in results:
            bench.table.skip(name, "not installed (make bench-peers brings it)")
            continue
        result, bare = results[name], results["driver" if name == "gpumemtrace" else "malloc"]
        ratios[name] = ours.value / result.added(bare).value
        bench.table.row(name, result.added(bare, "alloc"), result.added(bare, "free"), result.added(bare),
                        ratios[name])
    return ratios
