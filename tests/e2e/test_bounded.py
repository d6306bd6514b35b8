"""A recording stays under GPUMEMTRACE_MAX_TRACE in runs of any length, and is exact all the same.

BOUNDED_CALLS and BOUNDED_SIZE make the run longer, as `make soak` does.
"""
import json
import os
import random
import sys

import pytest
from conftest import PROGRAMS, SANITIZE, SIMGPU
from test_killed import kill_at
from test_random_books import expect_agreement

CALLS = int(os.environ.get("BOUNDED_CALLS") or (1000000 if not SANITIZE else 200000))
SIZE = os.environ.get("BOUNDED_SIZE") or "2M"
KILLS = int(os.environ.get("BOUNDED_KILLS") or (10 if not SANITIZE else 3))
NOTE = "Older events were dropped from the recording to keep it under {}"
FIGURES = ["allocs", "frees", "allocated_bytes", "live_bytes", "live_blocks"]


def bytes_of(size):
    return int(size[:-1]) << {"K": 10, "M": 20, "G": 30}[size[-1]]


@pytest.fixture
def churn(compiled):
    return compiled("churn.c", SIMGPU / "libcuda.so.1", "-lpthread", "-rdynamic")


def expect_books(report, books, threads):
    """The program's own books, place by place, and of one thread its peak and who held it."""
    found = {}
    for site in report["sites"]:  # a place called from main and from a thread is two
        place = next(frame["function"] for frame in site["frames"] if frame["function"].startswith("place_"))
        sums = found.setdefault(place, dict.fromkeys(FIGURES, 0))
        for name in FIGURES:
            sums[name] += site[name]
    assert found == books["places"]
    (space,) = report["spaces"]
    for name in FIGURES:
        assert space[name] == sum(account[name] for account in books["places"].values())
    assert report["counters"]["dropped_events"] == report["counters"]["foreign_frees"] == 0
    if threads == 1:
        assert space["peak_bytes"] == books["peak_bytes"]
    assert sum(site["bytes_at_peak"] for site in report["sites"]) == space["peak_bytes"]
    assert report["process"]["complete"]


@pytest.mark.parametrize("threads", [1, 4])
def test_long_run_stays_under_the_bound_and_exact(gmt, churn, threads):
    done = gmt.run(churn, CALLS // threads, threads, timeout=7200,
                   env={"GPUMEMTRACE_MAX_TRACE": SIZE, "SIMGPU_MEMORY": "64G"})
    books = json.loads(done.out)
    size = done.recording.stat().st_size
    assert size <= bytes_of(SIZE)
    rendered = gmt.rendered(done.recording)
    for report in (done.report, rendered):
        expect_books(report, books, threads)
        (note,) = [note for note in report["notes"] if note.startswith("Older events")]
        assert note.startswith(NOTE.format(f"{bytes_of(SIZE) / (1 << 20):.1f} MiB"))
    for same in ("counters", "spaces", "leaks", "peaks", "growth", "ooms"):
        assert rendered[same] == done.report[same], same
    print(f"{CALLS} calls in {threads} threads: {size} bytes of recording; "
          f"{books['early_kib']} KiB of memory after a tenth, {books['end_kib']} KiB at the end")
    # A tenth of the calls, and all of them, take the same memory but for what the simulated GPU may keep.
    if not SANITIZE:
        assert books["end_kib"] <= books["early_kib"] * 1.02 + 4096


def test_python_run_stays_under_the_bound_and_exact(gmt):
    done = gmt.run(sys.executable, PROGRAMS / "random_books.py", 7, 120000 if not SANITIZE else 20000,
                   env={"SIMGPU_DEVICES": 2, "GPUMEMTRACE_MAX_TRACE": "2M"})
    books = json.loads(done.out)
    expect_agreement(done.report, books)
    expect_agreement(gmt.rendered(done.recording), books)
    if not SANITIZE:
        assert any(note.startswith(NOTE.format("2.0 MiB")) for note in done.report["notes"])
    assert done.recording.stat().st_size <= 2 << 20


def test_run_within_the_bound_says_nothing_of_it(gmt, churn):
    done = gmt.run(churn, 1000, env={"GPUMEMTRACE_MAX_TRACE": "2M"})
    assert not [note for note in done.report["notes"] if "GPUMEMTRACE_MAX_TRACE" in note]


@pytest.mark.parametrize("threads", [1, 3])
def test_nothing_acknowledged_is_missing_from_a_bounded_recording(gmt, compiled, threads):
    program = compiled("acknowledge.c", SIMGPU / "libcuda.so.1", "-lpthread")
    choose = random.Random(threads)
    for _ in range((KILLS + 1) // 2):
        kill_at(gmt, program, threads, choose.randrange(1, 400000), GPUMEMTRACE_MAX_TRACE="2M")


def test_what_is_alive_may_be_more_than_the_bound(gmt):
    """Then the recording ends, and the process's own books go on."""
    done = gmt.python("""
        import cuda
        cuda.init()
        for n in range(120000):
            cuda.allocate(512)
        """, env={"GPUMEMTRACE_MAX_TRACE": "2M", "SIMGPU_MEMORY": "64G"})
    assert done.report["leaks"]["live_blocks"] == 120000
    assert done.report["process"]["complete"]
    assert any("ends early" in note and "GPUMEMTRACE_MAX_TRACE" in note for note in done.report["notes"])
    rendered = gmt.rendered(done.recording)
    assert 0 < rendered["leaks"]["live_blocks"] < 120000
    # The driver's figures, asked for now and then, are events too.
    others = rendered["leaks"]["live_blocks"] + rendered["counters"]["dropped_events"] - 120000
    assert 0 <= others < 100
    assert not rendered["process"]["complete"]
    assert done.recording.stat().st_size <= 2 << 20
