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
