"""A random workload keeps its own books; the report written at exit and the one rendered from the recording both
agree with them in every figure: counts, bytes, live, peak, and who held how much at each space's peak.

BOOKS_SEEDS makes it longer."""
import json
import os
import sys

import pytest
from conftest import PROGRAMS

SEEDS = int(os.environ.get("BOOKS_SEEDS") or 20)
STEPS = 2000
FIGURES = ["allocs", "frees", "allocated_bytes", "live_bytes", "live_blocks"]


def place_of(site):
    """The outermost function of the workload that names a place: the frame that run() called."""
    names = [frame["function"] for frame in site["frames"] if frame["kind"] == "python"]
    return names[names.index("run") - 1]


def expect_agreement(report, books):
    found = {}
    for site in report["sites"]:
        if site["allocs"]:
            key = (place_of(site), site["family"], site["space"], site["device"])
            assert key not in found, f"two sites for {key}"
            found[key] = site
    wanted = {tuple(key): account for key, account in books["sites"]}
    assert found.keys() == wanted.keys()
    for key, account in wanted.items():
        assert {name: found[key][name] for name in FIGURES} == {name: account[name] for name in FIGURES}, key

    spaces = {(row["space"], row["device"]): row for row in report["spaces"] if row["allocs"]}
    peaks = {(row["space"], row["device"]): row for row in report["peaks"]}
    assert spaces.keys() == {tuple(key) for key, _ in books["spaces"]}
    for key, account in books["spaces"]:
        key = tuple(key)
        for name in [*FIGURES, "peak_bytes"]:
            assert spaces[key][name] == account[name], (key, name)
        assert peaks[key]["bytes"] == account["peak_bytes"]
        at_peak = {found[tuple(site)]["id"]: tuple(held) for site, held in account["at_peak"]}
        assert {row["site"]: (row["bytes"], row["blocks"]) for row in peaks[key]["sites"]} == at_peak, key
        for site in found.values():
            if (site["space"], site["device"]) == key:
                assert (site["bytes_at_peak"], site["blocks_at_peak"]) == at_peak.get(site["id"], (0, 0))

    totals = {name: sum(account[name] for _, account in books["sites"]) for name in FIGURES}
    counters = report["counters"]
    assert (counters["allocs"], counters["frees"]) == (totals["allocs"], totals["frees"])
    assert counters["failed_allocs"] == books["failed"]
    assert counters["foreign_frees"] == counters["teardown_frees"] == counters["dropped_events"] == 0
    assert (report["leaks"]["live_bytes"], report["leaks"]["live_blocks"]) == \
        (totals["live_bytes"], totals["live_blocks"])
    leaking = [found_site for found_site in found.values() if found_site["live_bytes"]]
    assert sorted(report["leaks"]["sites"]) == sorted(site["id"] for site in leaking)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_reports_agree_with_the_workloads_own_books(gmt, seed):
    done = gmt.run(sys.executable, PROGRAMS / "random_books.py", seed, STEPS, env={"SIMGPU_DEVICES": 2})
    books = json.loads(done.out)
    expect_agreement(done.report, books)
    expect_agreement(gmt.rendered(done.recording), books)
