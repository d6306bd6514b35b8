"""Fragmentation: the report against a caching allocator that keeps figures of its own, on random programs; and small
programs of which the answer is plain."""
import json
import os

import pytest
import stand_in
from conftest import TIMEOUT

SEEDS = int(os.environ.get("FRAGMENTATION_SEEDS") or 300)  # `make soak` plays 1000
BATCH = 20
STEPS = 300
MIB = 1 << 20

KEYS = {"reserved_bytes": "reserved", "allocated_bytes": "allocated", "releasable_bytes": "releasable",
        "stranded_bytes": "stranded", "largest_free_bytes": "largest_free", "segment_count": "segments"}


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
