"""Bugs that people had, acted out again (tests/cases): the report must show each for what it is."""
import subprocess
import sys

import pytest
import stand_in
from conftest import CC, PRELOAD, PROGRAMS, ROOT

PYTHON_MODULE = {"PYTHONPATH": f"{PROGRAMS}:{ROOT / 'python'}"}
KIB, MIB = 1 << 10, 1 << 20


def play(gmt, name, env=None, **options):
    return gmt.run(sys.executable, ROOT / "tests" / "cases" / f"{name}.py",
                   env={"GPUMEMTRACE_QUIET": "1", **(env or {})}, **options)


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


def growing(report):
    return {row["site"] for row in report["growth"]}


def reason_of(report, site):
    """Why its line is listed among what is still allocated."""
    (reason,) = [line["reason"] for line in report["leaks"]["lines"] if line["site"] == site["id"]]
    return reason


def check_grows(report, site):
    """It, and no other site."""
    assert growing(report) == {site["id"]} and reason_of(report, site) == "grew"


def check_keeps_adding_up(report, site):
    """Of a program with threads: how evenly they take turns is the machine's affair, which may be too little for growth to
    be told. But the line is marked, and no other site is named."""
    assert growing(report) <= {site["id"]} and reason_of(report, site) in ("grew", "adds_up")


@pytest.fixture(scope="module")
def even_clock(tmp_path_factory):
    """Variables for a program without threads: its turns are equally long then. Never sanitized, since a sanitizer's runtime
    asks for the time before it can serve instrumented code."""
    library = tmp_path_factory.mktemp("clock") / "even_clock.so"
    subprocess.run([CC, "-O2", "-shared", "-fPIC", "-D_GNU_SOURCE", PROGRAMS / "even_clock.c", "-o", library], check=True)
    return {"LD_PRELOAD": f"{PRELOAD}:{library}"}


def test_checkpoint_and_model_on_the_device_at_once(gmt):
    """Without the checkpoint the peak would be that of a step: the model's 240 MiB and six activations of 10."""
    done = play(gmt, "double_model_on_load")
    (peak,) = done.report["peaks"]
    assert peak["bytes"] == 2 * 12 * 20 * MIB
    assert len(peak["falls"]) == 2
    for fall, target in zip(peak["falls"], [480 * 9 // 10 * MIB, 480 * 3 // 4 * MIB]):
        assert fall["target_bytes"] == target and fall["enough"] and fall["exact"]
        assert (fall["peak_bytes"], len(fall["lines"])) == ((240 + 60) * MIB, 1)
        assert "read_checkpoint" in done.report["sites"][fall["lines"][0]["site"]]["title"]
    assert "  25% lower           without double_model_on_load.py:9 in read_checkpoint" in done.text


def test_optimizer_that_makes_its_state_in_the_first_step(gmt):
    report = play(gmt, "optimizer_at_first_step").report
    (peak,) = report["peaks"]
    assert peak["bytes"] == 8 * 16 * (1 + 2 + 1) * MIB  # parameters, state, gradients
    assert [(line["bytes"], line["without"]["peak_bytes"]) for line in peak["lines"]] == \
        [(256 * MIB, 256 * MIB), (128 * MIB, 384 * MIB), (128 * MIB, 384 * MIB)]
    assert not report["growth"] and not report["growth_lines"]
    assert report["leaks"]["live_bytes"] == 8 * 16 * 3 * MIB
    assert {line["reason"] for line in report["leaks"]["lines"]} == {"many"}  # eight blocks each, and nothing worse


def test_exception_that_keeps_the_failed_steps_tensors(gmt):
    report = play(gmt, "exception_keeps_batch").report
    first, second = report["ooms"]
    unit = first["requested_bytes"] // 5
    assert (first["live_bytes"], second["requested_bytes"], second["live_bytes"]) == (6 * unit, 2 * unit, 9 * unit)
    assert second["cause"] == "full" and "exception" in second["advice"] and "exception" not in first["advice"]
    assert second["outcome"] == "granted" and second["freed_before_granted_bytes"] == 9 * unit
    assert max(row["bytes"] for row in second["sites"]) == 6 * unit
    assert report["leaks"]["live_bytes"] == 0


def test_batches_that_workers_pin_and_nobody_takes(gmt):
    report = play(gmt, "pinned_by_loader").report
    pinned = site_in(report, "pin", space="pinned", family="pinned", device=None)
    assert (pinned["live_blocks"], pinned["live_bytes"]) == (3 * 60, 3 * 60 * 512 * KIB)
    check_keeps_adding_up(report, pinned)
    assert all(row["exhausted_in_seconds"] is None for row in report["growth"])  # host memory
    assert site_in(report, "train")["live_bytes"] == 0


def test_graph_for_every_batch_size_that_is_never_destroyed(gmt, even_clock):
    report = play(gmt, "graph_per_shape", env=even_clock).report
    graphs = site_in(report, "capture", family="graph", space="graph")
    assert (graphs["live_blocks"], graphs["live_bytes"]) == (60, sum((1 + size) * 64 * KIB for size in range(60)))
    assert device_space(report)["peak_bytes"] == 64 * MIB  # what a graph allocates counts by itself
    check_grows(report, graphs)


def test_pool_that_keeps_all_while_another_library_asks_the_driver(gmt):
    report = play(gmt, "pool_keeps_all").report
    (oom,) = report["ooms"]
    unit = oom["requested_bytes"] // 5
    assert (oom["pool_unused_bytes"], oom["live_bytes"], oom["cause"]) == (7 * unit, 0, "cached")
    assert "cuMemPoolTrimTo" in oom["advice"] and "torch" not in oom["advice"]
    assert oom["outcome"] == "granted"
    assert report["leaks"]["live_bytes"] == 5 * unit


def test_physical_memory_whose_mapping_is_gone_and_whose_handle_is_forgotten(gmt, even_clock):
    report = play(gmt, "mappings_kept", env=even_clock).report
    physical = site_in(report, "physical", family="vmm")
    assert (physical["allocs"], physical["frees"], physical["live_bytes"]) == (50, 0, 50 * 2 * MIB)
    check_grows(report, physical)
    assert live_sites(report) == {physical["id"]}


def test_contexts_of_threads_that_are_destroyed_or_forgotten(gmt):
    report = play(gmt, "context_per_thread").report
    tidy, careless = site_in(report, "buffers_of_tidy"), site_in(report, "buffers_of_careless")
    assert (tidy["teardown_frees"], tidy["live_blocks"], tidy["frees"]) == (6, 0, 0)
    assert (careless["live_blocks"], careless["live_bytes"]) == (6, 18 * MIB)
    assert report["leaks"]["sites"] == [careless["id"]]
    assert device_space(report)["peak_bytes"] == (5 * 3 + 6) * MIB  # the last tidy request beside five careless ones


def test_rank_that_runs_out_because_of_another_on_its_device(gmt, tmp_path):
    done = play(gmt, "rank_runs_out", env={"RANK": "0", "SIMGPU_SHARED": str(tmp_path / "device")})
    holder, victim = sorted(done.reports, key=lambda report: report["process"]["rank"])
    assert not holder["ooms"]
    (oom,) = victim["ooms"]
    unit = oom["requested_bytes"] // 4
    assert (oom["live_bytes"], holder["leaks"]["live_bytes"]) == (unit, 7 * unit)
    assert oom["cause"] == "elsewhere" and oom["elsewhere_bytes"] >= 7 * unit


def test_workers_of_a_forking_server_have_reports_of_their_own(gmt):
    reports = play(gmt, "forked_workers").reports
    assert sorted(report["leaks"]["live_bytes"] for report in reports) == [40 * MIB, 40 * MIB, 40 * MIB, 80 * MIB]
    twice = max(reports, key=lambda report: report["leaks"]["live_bytes"])
    assert site_in(twice, "load_again")["live_bytes"] == site_in(twice, "load_model")["live_bytes"] == 40 * MIB


def test_workspace_of_each_requests_thread(gmt):
    report = play(gmt, "thread_per_request").report
    workspace, activations = site_in(report, "workspace"), site_in(report, "answer")
    assert (workspace["live_blocks"], workspace["live_bytes"]) == (80, 80 * 768 * KIB)
    assert (activations["allocs"], activations["live_blocks"]) == (80, 0)
    check_keeps_adding_up(report, workspace)


def test_array_of_each_frames_texture(gmt, even_clock):
    report = play(gmt, "texture_per_frame", env=even_clock).report
    array = site_in(report, "array", family="array", space="device")
    assert (array["live_blocks"], array["live_bytes"]) == (64, 64 * 256 * 128 * 4)
    check_grows(report, array)


def test_managed_memory_beyond_what_the_device_has(gmt):
    report = play(gmt, "managed_beyond_device").report
    table = site_in(report, "table", family="managed", space="managed")
    size = table["live_bytes"] // 6
    assert size % (2 * MIB) == 0 and device_space(report)["peak_bytes"] == 8 * MIB
    assert any(note.startswith("Managed memory of device 0 came to 12.00 GiB, more than the device has (8.00 GiB)")
               for note in report["notes"])


def test_phases_and_steps_that_a_training_loop_names(gmt, even_clock):
    report = play(gmt, "phases_of_training", env={**PYTHON_MODULE, **even_clock}).report
    phases = {phase["name"]: phase for phase in report["phases"]}
    assert {name: (phase["count"], phase["peak_bytes"] // MIB, phase["net_bytes"] // MIB)
            for name, phase in phases.items()} == {
        "training": (30, 60 + 29 + 110, 0), "forward": (30, 60 + 29 + 40, 30 * 40),
        "backward": (30, 60 + 29 + 40 + 60, 30 * (60 - 40)), "optimizer": (30, 60 + 29 + 110, 30 * -60),
        "validation": (30, 60 + 30, 30)}
    (peak,) = report["peaks"]
    assert peak["phases"] == ["training", "optimizer"]
    check_grows(report, site_in(report, "predict"))
    (line,) = report["growth_lines"]
    assert line["bytes_per_step"] == pytest.approx(MIB, rel=0.05)


def test_statistics_that_keep_the_segments_of_batches_of_varying_length(gmt):
    done = play(gmt, "fragmented_by_sizes", env={"SIMGPU_MEMORY": "480M", **stand_in.environment()})
    report = done.report
    (row,) = report["fragmentation"]
    (cache,) = row["frameworks"]
    assert [cache[key] // MIB for key in ("reserved_bytes", "allocated_bytes", "stranded_bytes", "releasable_bytes")] == \
        [200, 30, 170, 0]
    assert cache["largest_free_bytes"] == 9 * MIB  # behind the statistic: 20 - 8 - 3
    assert {oom["cause"] for oom in report["ooms"]} == {"fragmented"}
    assert {report["sites"][site]["title"] for site in cache["pinners"]} == {"fragmented_by_sizes.py:15 in statistic"}
    assert "allocations failed, for want of memory" in done.text


def test_devices_whose_peaks_are_not_at_one_time(gmt):
    report = play(gmt, "replicas_in_turn", env={"SIMGPU_DEVICES": "2"}).report
    assert [peak["bytes"] // MIB for peak in report["peaks"]] == [320, 220]
    whole = report["whole_peak"]
    assert (whole["bytes"] // MIB, whole["device"]) == (20 + 300 + 20, None)
    assert sum(row["bytes"] for row in whole["sites"]) == whole["bytes"]
