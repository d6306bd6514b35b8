"""Growth in a running program: the place that grows is named, and no other."""
import sys

import pytest
from conftest import ROOT

TURNS, KEPT = 150, 256 << 10


def test_only_the_place_that_keeps_a_block_in_every_third_turn_is_said_to_grow(gmt):
    run = gmt.run(sys.executable, ROOT / "tests" / "programs" / "growing.py", env={"GPUMEMTRACE_QUIET": "1"})
    report = run.report
    (growing,) = report["growth"]
    site = report["sites"][growing["site"]]
    functions = [frame["function"] for frame in site["frames"] if frame["kind"] == "python"]
    assert "remember" in functions and site["live_bytes"] == TURNS // 3 * KEPT
    lived = (site["last_time_ns"] - site["first_time_ns"]) / 1e9
    assert growing["bytes_per_second"] == pytest.approx((TURNS // 3 - 1) * KEPT / lived, rel=0.15)
    assert 0.5 < growing["confidence"] <= 1 and growing["bytes_per_step"] is None
    assert growing["exhausted_in_seconds"] is None or growing["exhausted_in_seconds"] > 0
    assert gmt.rendered(run.recording)["growth"] == report["growth"]


def test_line_that_fifty_handlers_reach_is_said_to_grow_as_one(gmt):
    run = gmt.run(sys.executable, ROOT / "tests" / "programs" / "growing_by_many_ways.py",
                  env={"GPUMEMTRACE_QUIET": "1"})
    report = run.report
    (line,) = report["growth_lines"]
    sites = [report["sites"][number] for number in line["sites"]]
    assert len(sites) == 50 and line["site"] in line["sites"]
    assert all(site["title"].endswith(" in remember") for site in sites)
    assert sum(site["live_bytes"] for site in sites) == 300 * KEPT
    lived = (max(site["last_time_ns"] for site in sites) - min(site["first_time_ns"] for site in sites)) / 1e9
    assert line["bytes_per_second"] == pytest.approx(299 * KEPT / lived, rel=0.2)
    assert {row["site"] for row in report["growth"]} <= set(line["sites"])
    assert "in remember, site" in run.text and "and 49 more of this line" in run.text
    assert gmt.rendered(run.recording)["growth_lines"] == report["growth_lines"]
