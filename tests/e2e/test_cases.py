"""Bugs that people had, acted out again (tests/cases): the report must show each for what it is."""
import sys

from conftest import ROOT

KIB, MIB = 1 << 10, 1 << 20


def play(gmt, name, **options):
    return gmt.run(sys.executable, ROOT / "tests" / "cases" / f"{name}.py", env={"GPUMEMTRACE_QUIET": "1"}, **options)


def site_in(report, function, **where):
    """The one site whose innermost Python frame is `function`."""
    found = []
    for site in report["sites"]:
        names = [frame["function"].split(".")[-1] for frame in site["frames"] if frame["kind"] == "python"]
        if names and names[0] == function and all(site[key] == value for key, value in where.items()):
            found.append(site)
    assert len(found) == 1, f"{function}: {len(found)} sites"
    return found[0]


def device_space(report):
    (space,) = [row for row in report["spaces"] if row["space"] == "device"]
    return space


def peak_shares(report):
    (peak,) = [row for row in report["peaks"] if row["space"] == "device"]
    return {row["site"]: (row["bytes"], row["blocks"]) for row in peak["sites"]}


def live_sites(report):
    return {site["id"] for site in report["sites"] if site["live_blocks"]}


def test_server_that_registers_a_workspace_at_each_reload(gmt):
    report = play(gmt, "server_reload").report
    workspace = site_in(report, "register_workspace")
    assert (workspace["allocs"], workspace["live_blocks"], workspace["live_bytes"]) == (40, 40, 40 * 3 * MIB)
    assert live_sites(report) == {workspace["id"]}
    assert report["leaks"]["sites"] == [workspace["id"]]
    (layers,) = [site for site in report["sites"] if site["id"] != workspace["id"]]
    assert (layers["allocs"], layers["frees"]) == (240, 240)
    assert peak_shares(report) == {workspace["id"]: (40 * 3 * MIB, 40), layers["id"]: (48 * MIB, 6)}
    assert device_space(report)["peak_bytes"] == (40 * 3 + 48) * MIB


def test_cache_that_grows_with_every_new_shape(gmt):
    report = play(gmt, "cache_per_shape").report
    plans, activations, weights = (site_in(report, name) for name in ("compile_plan", "answer", "<module>"))
    size = sum(16 * KIB + 256 * length for length in range(300))
    assert (plans["allocs"], plans["frees"], plans["live_bytes"]) == (300, 0, size)
    assert (activations["allocs"], activations["frees"], activations["live_bytes"]) == (600, 600, 0)
    assert report["leaks"]["live_bytes"] == size + 100 * MIB
    assert set(report["leaks"]["sites"]) == {plans["id"], weights["id"]}


def test_running_loss_that_keeps_every_steps_activations(gmt):
    """Ends in os._exit, so the recording is what there is to read."""
    report = gmt.rendered(play(gmt, "loss_with_history").recording)
    live = {}
    for site in report["sites"]:
        callers = [frame["function"] for frame in site["frames"] if frame["kind"] == "python"]
        live[callers[1], site["live_bytes"] // max(site["live_blocks"], 1)] = site["live_blocks"]
    assert live == {("epoch", 2 * MIB): 50, ("forward", 4 * MIB): 50, ("forward", MIB): 50, ("loss_of", 4 * KIB): 50}


def test_producer_keeps_what_its_reader_only_mapped(gmt):
    reports = play(gmt, "ipc_producer").reports
    producer, reader = sorted(reports, key=lambda report: len(report["process"]["argv"]))
    assert site_in(producer, "publish")["live_bytes"] == producer["leaks"]["live_bytes"] == 24 * MIB
    assert reader["leaks"]["live_bytes"] == 0
    assert device_space(reader)["peak_bytes"] == 5 * MIB
    mapped = site_in(reader, "read", family="ipc")
    assert (mapped["space"], mapped["allocated_bytes"], mapped["live_blocks"]) == ("foreign", 24 * MIB, 0)


def test_out_of_memory_while_a_cache_holds_an_idle_block(gmt):
    report = play(gmt, "oom_while_cached").report
    parameters, activations = site_in(report, "parameters"), site_in(report, "activations")
    longer = site_in(report, "longer_batch", allocs=1)
    unit = parameters["allocated_bytes"] // 4
    (oom,) = report["ooms"]
    assert report["counters"]["failed_allocs"] == 1
    assert (oom["requested_bytes"], oom["live_bytes"], oom["device"]) == (5 * unit, 7 * unit, 0)
    assert {(row["site"], row["bytes"], row["blocks"]) for row in oom["sites"]} == \
        {(parameters["id"], 4 * unit, 1), (activations["id"], 3 * unit, 1)}
    assert oom["free_bytes"] < oom["requested_bytes"] <= oom["total_bytes"]
    names = [frame["function"] for frame in oom["frames"] if frame["kind"] == "python"]
    assert names == ["longer_batch", "<module>"]
    assert longer["live_bytes"] == 5 * unit
    assert device_space(report)["peak_bytes"] == 9 * unit
