"""Fragmentation: the report against a caching allocator that keeps figures of its own, on random programs; and small
programs of which the answer is plain."""
import json
import os

import pytest
import stand_in
from conftest import TIMEOUT

SEEDS = int(os.environ.get("FRAGMENTATION_SEEDS") or 240)  # `make soak` plays 1000
BATCH = 20
STEPS = 300
MIB = 1 << 20

KEYS = {"reserved_bytes": "reserved", "allocated_bytes": "allocated", "releasable_bytes": "releasable",
        "stranded_bytes": "stranded", "largest_free_bytes": "largest_free", "segment_count": "segments"}


NOTHING = dict.fromkeys(KEYS.values(), 0)


def expect_figures(layout, wanted):
    assert {theirs: layout[ours] for ours, theirs in KEYS.items()} == wanted
    free = wanted["reserved"] - wanted["allocated"]
    assert layout["free_bytes"] == free
    assert layout["external_fragmentation"] == pytest.approx(1 - wanted["largest_free"] / free if free else 0, abs=1e-6)
    segments = layout["segments"]
    assert len(segments) == min(wanted["segments"], len(segments))
    if len(segments) == wanted["segments"]:
        assert sum(segment["bytes"] for segment in segments) == wanted["reserved"]
        assert sum(segment["stranded_bytes"] for segment in segments) == wanted["stranded"]
    assert sum(pinner["stranded_bytes"] for pinner in layout["pinned"]) == wanted["stranded"] or len(layout["pinned"]) >= 8
    assert [pinner["site"] for pinner in layout["pinned"]] == layout["pinners"]


def framework(layouts):
    return layouts[0] if layouts else {**dict.fromkeys([*KEYS, "free_bytes", "external_fragmentation"], 0), "segments": [],
                                       "pinned": [], "pinners": []}


def expect_agreement(report, oracle):
    assert sorted(row["device"] for row in report["fragmentation"]) == [0, 1]
    for row in report["fragmentation"]:
        frameworks = row["frameworks"]
        assert [one["name"] for one in frameworks] in ([], ["pytorch"])
        expect_figures(framework(frameworks), oracle["now"][row["device"]])
        peaks = [one["at_peak"] for one in frameworks if one["at_peak"]]
        expect_figures(framework(peaks), oracle["peak"][row["device"]])
    assert len(report["ooms"]) == min(len(oracle["refusals"]), 64)
    for oom, (device, wanted) in zip(report["ooms"], oracle["refusals"]):
        assert oom["device"] == device
        expect_figures(framework(oom["frameworks"]), wanted)


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_figures_are_the_allocators_own(gmt, compiled, first):
    program = compiled(stand_in.SOURCES / "random_program.cc", "-std=c++17", "-ldl")
    count = min(BATCH, SEEDS - first)
    done = gmt.run(program, stand_in.libraries(), first, count, STEPS, env={"GPUMEMTRACE_QUIET": "1"},
                   timeout=TIMEOUT * 3)
    oracles = {oracle["pid"]: oracle for oracle in map(json.loads, done.out.splitlines())}
    reports = done.reports
    assert len(oracles) == len(reports) == count
    for report in reports:
        expect_agreement(report, oracles[report["process"]["pid"]])
    recording = done.recordings[first // BATCH % count]
    expect_agreement(gmt.rendered(recording), oracles[int(recording.name.split(".")[1])])


POOLS = """
import ctypes, json, sys, time
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p
import cuda
MIB = 1 << 20
THRESHOLD, RESERVED, USED = 4, 5, 7
lib = cuda.library
from_pool = cuda._function("cuMemAllocFromPoolAsync", [c_uint64], c_size_t, c_void_p, (c_void_p, None))
current_pool = cuda._function("cuDeviceGetMemPool", [c_void_p], c_int)
destroy = cuda._function("cuMemPoolDestroy", c_void_p)
trim = cuda._function("cuMemPoolTrimTo", c_void_p, c_size_t)
wait = cuda._function("cuCtxSynchronize")

class Props(ctypes.Structure):
    _fields_ = [("type", c_int), ("handles", c_int), ("kind", c_int), ("device", c_int), ("rest", ctypes.c_char * 80)]

def create(device=0):
    pool = c_void_p()
    assert lib.cuMemPoolCreate(byref(pool), byref(Props(1, 0, 1, device))) == 0
    return pool.value

def keep(pool, bytes):
    assert lib.cuMemPoolSetAttribute(c_void_p(pool), THRESHOLD, byref(c_uint64(bytes))) == 0

def state(pool):
    found = c_uint64()
    figures = {}
    for name, attribute in {"reserved_bytes": RESERVED, "used_bytes": USED, "release_threshold_bytes": THRESHOLD}.items():
        assert lib.cuMemPoolGetAttribute(c_void_p(pool), attribute, byref(found)) == 0
        figures[name] = found.value
    return figures

def tell(*pools):
    time.sleep(0.005)  # longer than a pool is left alone
    cuda.release(cuda.allocate(1))
    print(json.dumps([state(pool) for pool in pools]))

cuda.init()
"""


def pools_of(report, device=0):
    (row,) = [row for row in report["fragmentation"] if row["device"] == device]
    return row["pools"]


def play_pools(gmt, source, **options):
    return gmt.python(POOLS + source, env={"GPUMEMTRACE_QUIET": "1", **options.pop("env", {})}, **options)


def expect_pools(done, device=0):
    for report in (done.report, gmt_rendered(done)):
        for pool, wanted in zip(pools_of(report, device), json.loads(done.out), strict=True):
            assert {name: pool[name] for name in wanted} == wanted
            unused = wanted["reserved_bytes"] - wanted["used_bytes"]
            assert pool["trimmable_bytes"] == unused
            assert pool["kept_bytes"] == min(unused, wanted["release_threshold_bytes"])


def gmt_rendered(done):
    from conftest import Gpumemtrace
    return Gpumemtrace(done.folder).rendered(done.recording)


def test_pools_are_told_as_the_driver_tells_them(gmt):
    done = play_pools(gmt, """
pool, default = create(), current_pool(0)
keep(default, 20 * MIB)
own = [from_pool(8 * MIB, pool) for _ in range(5)]
shared = [cuda.allocate_async(6 * MIB) for _ in range(10)]
for address in own[1:] + shared[:7]:
    cuda.release_async(address)
wait()
tell(pool, default)
""")
    expect_pools(done)
    own, default = pools_of(done.report)
    assert own["reserved_bytes"] < own["peak_reserved_bytes"] == 40 * MIB
    assert default["kept_bytes"] > 0
    assert "cuMemPoolTrimTo() would give back" in done.text


def test_a_trim_and_the_end_of_a_pool_are_seen_at_once(gmt):
    done = play_pools(gmt, """
trimmed, ended = create(), create()
for pool in (trimmed, ended):
    keep(pool, 1 << 40)
    one, other = from_pool(8 * MIB, pool), from_pool(8 * MIB, pool)
    cuda.release_async(one)
trim(trimmed, 0)
kept = state(trimmed)
destroy(ended)
print(json.dumps([kept]))
""")
    trimmed, ended = pools_of(done.report)
    assert {name: trimmed[name] for name in json.loads(done.out)[0]} == json.loads(done.out)[0]
    assert trimmed["trimmable_bytes"] == 0 and trimmed["peak_reserved_bytes"] == 16 * MIB
    assert (ended["reserved_bytes"], ended["used_bytes"]) == (8 * MIB, 8 * MIB)


def test_a_refusal_is_told_with_what_pools_hold_unused(gmt):
    done = play_pools(gmt, """
pool = create()
keep(pool, 1 << 40)
for address in [from_pool(100 * MIB, pool) for _ in range(8)]:
    cuda.release_async(address)
try:
    cuda.allocate(600 * MIB)
except cuda.CudaError:
    print(json.dumps(state(pool)))
""", env={"SIMGPU_MEMORY": "1200M", "SIMGPU_CONTEXT": "16M"})
    state = json.loads(done.out)
    (oom,) = done.report["ooms"]
    assert oom["pool_unused_bytes"] == state["reserved_bytes"] - state["used_bytes"] == 800 * MIB


def test_threads_that_use_and_destroy_pools_are_not_disturbed(gmt):
    done = play_pools(gmt, """
import threading
context = cuda.context_retain(0)
def work():
    cuda.context_use(context)
    for _ in range(300):
        pool = create()
        cuda.release_async(from_pool(MIB, pool))
        cuda.release_async(cuda.allocate_async(MIB))
        destroy(pool)
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
tell(current_pool(0))
""")
    assert json.loads(done.out)[0]["used_bytes"] == 0
    assert sum(site["allocs"] for site in done.report["sites"]) == 3601
    assert all(pool["used_bytes"] == 0 for pool in pools_of(done.report))


def test_a_chunk_that_was_mapped_before_the_next_was_refused_is_in_the_peak(gmt):
    done = gmt.python("""
import json, os
from caching import Allocator
MIB = 1 << 20
torch = Allocator()
torch.expandable(1)
torch.malloc(0, 30 * MIB, 0)
assert torch.malloc(0, 100 * MIB, 0) is None
print(json.dumps([torch.figures(0), torch.figures(0, "peak"), torch.refusals()]), flush=True)
os._exit(0)
""", env=stand_in.environment(SIMGPU_MEMORY="100M", SIMGPU_CONTEXT="16M"))
    now, peak, refusals = json.loads(done.out)
    assert (now["reserved"], peak["reserved"], [one["reserved"] for _, one in refusals]) == \
        (40 * MIB, 80 * MIB, [80 * MIB, 80 * MIB, 40 * MIB])
    expect_agreement({**done.report, "fragmentation": [*done.report["fragmentation"], {"device": 1, "frameworks": []}]},
                     {"now": [now, NOTHING], "peak": [peak, NOTHING], "refusals": refusals})
