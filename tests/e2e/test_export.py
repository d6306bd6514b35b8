"""`gpumemtrace export`: each format is read back by a reader that is not ours, and has the report's figures in it."""
import collections
import csv
import gzip
import io
import json
import os
import pickle
import pickletools
import re
import shutil
import sqlite3
import subprocess

import pytest
import stand_in
from conftest import PROGRAMS, ROOT, TOOL, Gpumemtrace

MIB = 1 << 20
FORMATS = ["folded", "speedscope", "pprof", "perfetto", "torch", "csv", "sqlite", "openmetrics"]

SOURCE = """
import sys
sys.path[:0] = [{programs!r}, {python!r}]
import cuda, gpumemtrace
MIB = 1 << 20
cuda.init()

def keep(size):
    return cuda.allocate(size)

def pass_through(size):
    cuda.release(cuda.allocate(size))

with gpumemtrace.phase('load "x", \\\\ <b>\\n;'):
    kept = [keep(MIB) for _ in range(5)]
pinned = cuda.allocate_pinned(3 * MIB)
managed = cuda.allocate_managed(2 * MIB)
with gpumemtrace.phase("step"):
    for _ in range(10):
        pass_through(7 * MIB)
try:
    keep(1 << 40)
except cuda.CudaError:
    pass
cuda.release(kept.pop())
cuda.use(1)
other = keep(9 * MIB)
context = cuda.context_create(0, 1)
lost = keep(11 * MIB)
cuda.context_destroy(context)
"""

ODD_NAME = 'pro;g "r", <a>\\\n.py'


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Of a program whose file has all the signs in its name that some format must escape."""
    gmt = Gpumemtrace(tmp_path_factory.mktemp("export"))
    script = gmt.folder / ODD_NAME
    script.write_text(SOURCE.format(programs=str(PROGRAMS), python=str(ROOT / "python")))
    done = gmt.run("/usr/bin/python3", script, env={"SIMGPU_DEVICES": 2})
    return done.recording


@pytest.fixture(scope="module")
def torch_recording(tmp_path_factory):
    gmt = Gpumemtrace(tmp_path_factory.mktemp("torch"))
    source = """
        from caching import Allocator
        MIB = 1 << 20
        torch = Allocator()
        def weights():
            return torch.malloc(0, 3 * MIB, 0)
        def scratch():
            return torch.malloc(0, 700, 0)
        kept = [weights() for _ in range(10)]
        for _ in range(5):
            torch.free(scratch())
        torch.free(kept.pop(4))
        """
    return gmt.python(source, env=stand_in.environment(21)).recording


def export(gmt, recording, name, *options):
    path = gmt.folder / f"out.{name}"
    gmt.tool("export", "--format", name, "-o", path, *options, recording)
    return path.read_bytes()


@pytest.fixture
def report(gmt, recording):
    return gmt.rendered(recording)


def owned(report, layer="driver"):
    return [site for site in report["sites"] if site["layer"] == layer and site["space"] != "foreign"]


def space_name(site):
    names = {"device": "device", "managed": "managed, device", "pinned": "pinned host memory"}
    return names[site["space"]] + (f" {site['device']}" if site["device"] is not None else "")


def sums(sites, figure):
    total = collections.Counter()
    for site in sites:
        total[space_name(site)] += site[figure]
    return +total


@pytest.mark.parametrize("value, figure", [("peak", "bytes_at_peak"), ("live", "live_bytes"),
                                           ("allocated", "allocated_bytes"), ("allocs", "allocs")])
def test_folded_lines_are_frames_and_a_number(gmt, recording, report, value, figure):
    text = export(gmt, recording, "folded", "--value", value).decode()
    total = collections.Counter()
    for line in text.splitlines():
        stack, _, number = line.rpartition(" ")
        frames = stack.split(";")
        total[frames[0]] += int(number)
        assert any(re.fullmatch(r"(keep|pass_through|<module>) \(pro:g \"r\", <a>\\ \.py:\d+\)", frame)
                   for frame in frames[1:]), line
    assert total == sums(owned(report), figure)


# https://www.speedscope.app/file-format-schema.json, as far as sampled profiles go.
SPEEDSCOPE = {
    "type": "object", "required": ["$schema", "shared", "profiles"], "additionalProperties": False,
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "name": {"type": "string"}, "exporter": {"type": "string"}, "activeProfileIndex": {"type": "integer", "minimum": 0},
        "shared": {"type": "object", "required": ["frames"], "additionalProperties": False, "properties": {"frames": {
            "type": "array", "items": {"type": "object", "required": ["name"], "additionalProperties": False, "properties": {
                "name": {"type": "string"}, "file": {"type": "string"}, "line": {"type": "integer"},
                "col": {"type": "integer"}}}}}},
        "profiles": {"type": "array", "minItems": 1, "items": {
            "type": "object", "additionalProperties": False,
            "required": ["type", "name", "unit", "startValue", "endValue", "samples", "weights"],
            "properties": {
                "type": {"const": "sampled"}, "name": {"type": "string"},
                "unit": {"enum": ["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"]},
                "startValue": {"type": "number"}, "endValue": {"type": "number"},
                "samples": {"type": "array", "items": {"type": "array", "items": {"type": "integer", "minimum": 0}}},
                "weights": {"type": "array", "items": {"type": "number"}}}}}}}


def test_speedscope_has_a_profile_for_each_value(gmt, recording, report):
    jsonschema = pytest.importorskip("jsonschema")
    document = json.loads(export(gmt, recording, "speedscope", "--value", "live"))
    jsonschema.validate(document, SPEEDSCOPE)
    frames = document["shared"]["frames"]
    figures = ["bytes_at_peak", "live_bytes", "allocated_bytes", "allocs"]
    assert len(document["profiles"]) == 4 and document["activeProfileIndex"] == 1
    for profile, figure in zip(document["profiles"], figures):
        assert profile["unit"] == ("none" if figure == "allocs" else "bytes")
        assert len(profile["samples"]) == len(profile["weights"])
        total = collections.Counter()
        for stack, weight in zip(profile["samples"], profile["weights"]):
            assert all(number < len(frames) for number in stack)
            assert any(frames[number].get("file", "").endswith(ODD_NAME) for number in stack)
            total[frames[stack[0]]["name"]] += weight
        assert total == sums(owned(report), figure)
        assert profile["endValue"] == sum(profile["weights"])


def go():
    return shutil.which("go") or pytest.skip("go is not installed: its pprof reads the profile")


def pprof(path, *options):
    env = {**os.environ, "HOME": str(path.parent), "GOFLAGS": "-mod=mod", "PPROF_TMPDIR": str(path.parent)}
    return subprocess.run([go(), "tool", "pprof", *options, str(path)], capture_output=True, text=True, env=env,
                          check=True).stdout


@pytest.mark.parametrize("sample, figure", [("alloc_objects", "allocs"), ("alloc_space", "allocated_bytes"),
                                            ("inuse_space", "live_bytes"), ("peak_space", "bytes_at_peak")])
def test_pprof_reads_its_profile(gmt, recording, report, sample, figure):
    export(gmt, recording, "pprof")
    path = gmt.folder / "out.pprof"
    unit = "count" if sample == "alloc_objects" else "b"
    top = pprof(path, "-top", f"-sample_index={sample}", f"-unit={unit}", "-nodecount=1000", "-cum")
    total = sum(site[figure] for site in owned(report))
    assert re.search(rf"\b{total}(B|) total\n", top), top
    keep = sum(site[figure] for site in owned(report) if any(f["function"] == "keep" for f in site["frames"]))
    (row,) = re.findall(r"^.* keep$", top, re.M)
    assert int(row.split()[3].rstrip("B")) == keep
    assert re.search(r" <module>$", top, re.M)
    assert re.search(r"File: python3", top)


def test_pprof_finds_lines_and_labels(gmt, recording, report):
    export(gmt, recording, "pprof")
    path = gmt.folder / "out.pprof"
    tags = pprof(path, "-tags", "-unit=b")
    for name, total in sums(owned(report), "bytes_at_peak").items():
        assert re.search(rf"{total}\.?0*B.*: {re.escape(name)}$", tags, re.M), tags
    raw = pprof(path, "-raw")
    assert ODD_NAME.split("\n")[0] in raw


def test_pprof_is_gzip_of_a_message_and_always_the_same(gmt, recording):
    first = export(gmt, recording, "pprof")
    assert first[4:8] == bytes(4), "the time in gzip's header"
    assert gzip.decompress(first)[0] == 0x0A, "field 1, of a length: sample_type"


PHASES = set("BEXbneiICMsft")


def test_perfetto_trace_follows_the_format(gmt, recording, report):
    """By the Trace Event Format: which fields each kind of event must have, in the order of their times."""
    document = json.loads(export(gmt, recording, "perfetto"))
    open_phases, counters = {}, collections.defaultdict(list)
    for event in document["traceEvents"]:
        assert event["ph"] in PHASES and isinstance(event["name"], str)
        assert isinstance(event["ts"], (int, float)) and isinstance(event["pid"], int) and isinstance(event["tid"], int)
        if event["ph"] == "C":
            (value,) = event["args"].values()
            counters[event["name"]].append((event["ts"], value))
        elif event["ph"] == "b":
            open_phases[event["cat"], event["id"]] = event["name"]
        elif event["ph"] == "e":
            del open_phases[event["cat"], event["id"]]
        elif event["ph"] == "i":
            assert event["s"] in "gpt"
    assert open_phases == {}
    names = [event["name"] for event in document["traceEvents"] if event["ph"] == "b"]
    assert names == ['load "x", \\ <b>\n;', "step"]
    for points in counters.values():
        assert points == sorted(points, key=lambda point: point[0])
    for space in report["spaces"]:
        points = counters[space_name(space)]
        assert max(value for _, value in points) == space["peak_bytes"] and points[-1][1] == space["live_bytes"]
    (refused,) = [event for event in document["traceEvents"] if event["name"] == "out of memory"]
    assert refused["args"]["requested_bytes"] == 1 << 40
    shown = [name for name in counters if name.startswith("site ")]
    assert any(name.endswith("in pass_through") for name in shown)


def test_a_trace_of_many_events_is_bounded_and_keeps_its_extremes(gmt):
    """150,000 events, of which one short moment is the peak."""
    source = """
        import cuda
        cuda.init()
        def churn(count):
            for _ in range(count):
                cuda.release(cuda.allocate(4096))
        churn(37500)
        peak = [cuda.allocate(1 << 20) for _ in range(3)]
        for one in peak:
            cuda.release(one)
        churn(37500)
        """
    done = gmt.python(source)
    document = json.loads(export(gmt, done.recording, "perfetto"))
    values = [event["args"]["bytes"] for event in document["traceEvents"]
              if event["ph"] == "C" and event["name"] == "device 0"]
    assert len(values) <= 3 * 20001 and max(values) == 3 << 20 and values[-1] == 0


def test_csv_is_read_back_whole(gmt, recording, report):
    text = export(gmt, recording, "csv").decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(rows) == len(report["sites"])
    for row, site in zip(rows, report["sites"]):
        assert row["title"] == site["title"]
        for key in ("allocs", "frees", "allocated_bytes", "live_bytes", "live_blocks", "bytes_at_peak"):
            assert int(row[key]) == site[key]
        assert row["device"] == ("" if site["device"] is None else str(site["device"]))
        assert row["stack"].count(ODD_NAME) == sum((frame["file"] or "").endswith(ODD_NAME) for frame in site["frames"])
        assert None not in row and None not in row.values()


def database(gmt, recording):
    export(gmt, recording, "sqlite")
    connection = sqlite3.connect(gmt.folder / "out.sqlite")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return connection


def test_sqlite_tables_have_the_reports_figures(gmt, recording, report):
    connection = database(gmt, recording)
    for site, row in zip(report["sites"], connection.execute(
            "SELECT title, layer, space, device, allocs, live_bytes, bytes_at_peak FROM sites ORDER BY id")):
        assert row == tuple(site[key] for key in ("title", "layer", "space", "device", "allocs", "live_bytes",
                                                  "bytes_at_peak"))
    assert connection.execute("SELECT count(*) FROM sites").fetchone() == (len(report["sites"]),)
    frames = [[row[0] for row in connection.execute("SELECT function FROM frames WHERE site = ? ORDER BY depth", [number])]
              for number in range(len(report["sites"]))]
    assert frames == [[frame["function"] for frame in site["frames"]] for site in report["sites"]]
    assert connection.execute("SELECT count(*) FROM events").fetchone() == (report["counters"]["events"],)
    assert [row[0] for row in connection.execute("SELECT name FROM phases")] == [phase["name"] for phase in report["phases"]]


def test_events_in_sqlite_add_up_to_what_was_allocated(gmt, recording, report):
    rows = database(gmt, recording).execute(
        "SELECT site, count(*), sum(size) FROM events WHERE type = 'ALLOC' GROUP BY site").fetchall()
    assert {row[0]: row[1:] for row in rows} == {
        site["id"]: (site["allocs"], site["allocated_bytes"]) for site in report["sites"] if site["allocs"]}


def queries():
    """Those of the documentation."""
    text = (ROOT / "docs" / "export.md").read_text()
    return re.findall(r"```sql\n(.*?)```", text, re.S)


def test_the_documented_queries_give_answers(gmt, recording):
    connection = database(gmt, recording)
    assert len(queries()) >= 2
    for query in queries():
        assert connection.execute(query).fetchall(), query


def test_openmetrics_is_parsed(gmt, recording, report):
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    text = export(gmt, recording, "openmetrics").decode()
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    for space in report["spaces"]:
        labels = {"space": space["space"], "device": "" if space["device"] is None else str(space["device"])}
        for name, key in [("gpumemtrace_live_bytes", "live_bytes"), ("gpumemtrace_peak_bytes", "peak_bytes"),
                          ("gpumemtrace_allocated_bytes", "allocated_bytes"), ("gpumemtrace_allocations", "allocs")]:
            (sample,) = [sample for sample in families[name].samples if labels.items() <= sample.labels.items()]
            assert sample.name == name and sample.value == space[key]
    sites = families["gpumemtrace_site_live_bytes"].samples
    assert sum(sample.value for sample in sites) == sum(site["live_bytes"] for site in report["sites"])
    assert any(ODD_NAME in sample.labels["site"] for sample in sites)
    (refused,) = families["gpumemtrace_out_of_memory"].samples
    assert refused.value == 1
    older = pytest.importorskip("prometheus_client.parser")  # what node_exporter reads
    assert {family.name: (family.type, family.documentation, [sample[:3] for sample in family.samples])
            for family in older.text_string_to_metric_families(text)} == {
        name: (family.type, family.documentation, [sample[:3] for sample in family.samples])
        for name, family in families.items()}


# What the unpickler of PyTorch's memory page knows (torch/utils/viz/MemoryViz.js).
PAGE_OPCODES = {"APPENDS", "BINGET", "BININT", "BININT1", "BININT2", "EMPTY_DICT", "EMPTY_LIST", "FRAME", "LONG1",
                "LONG_BINGET", "MARK", "MEMOIZE", "PROTO", "SETITEMS", "SHORT_BINUNICODE", "STOP", "TUPLE2", "APPEND",
                "NEWFALSE", "BINPUT", "BINUNICODE", "EMPTY_TUPLE", "NEWTRUE", "NONE", "BINFLOAT", "TUPLE", "TUPLE1",
                "TUPLE3"}


def page(data):
    """The snapshot as the page sees it: only its opcodes, whole numbers that JavaScript holds exactly."""
    for opcode, argument, _ in pickletools.genops(data):
        assert opcode.name in PAGE_OPCODES
        assert not isinstance(argument, int) or abs(argument) < 1 << 53
    return pickle.loads(data)


def play_backwards(snapshot, device):
    """The page's "Allocator State History": from the end back, every block must be in a segment at every moment.
    Returns [(reserved, allocated)] from the beginning on."""
    segments = {s["address"]: s["total_size"] for s in snapshot["segments"] if s["device"] == device}
    blocks = {}
    for segment in snapshot["segments"]:
        if segment["device"] != device:
            continue
        at = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                blocks[at] = block["requested_size"]
            at += block["size"]
        assert at == segment["address"] + segment["total_size"], "blocks fill their segment"
    states = []
    for event in reversed(snapshot["device_traces"][device]):
        for address, size in blocks.items():
            assert any(start <= address and address + size <= start + room for start, room in segments.items())
        states.append((sum(segments.values()), sum(blocks.values())))
        if event["action"] == "alloc":
            assert blocks.pop(event["addr"]) == event["size"]
        elif event["action"] == "free_completed":
            assert event["addr"] not in blocks
            blocks[event["addr"]] = event["size"]
        elif event["action"] == "free_requested":
            assert event["addr"] in blocks
        elif event["action"] == "segment_alloc":
            assert segments.pop(event["addr"]) == event["size"]
        elif event["action"] == "segment_free":
            segments[event["addr"]] = event["size"]
        else:
            assert event["action"] == "oom" and event["device_free"] >= 0
        assert event["frames"] and all(set(frame) == {"filename", "line", "name"} for frame in event["frames"])
    assert segments == {} and blocks == {}
    return states[::-1]


def test_memory_viz_plays_any_program(gmt, recording, report):
    snapshot = page(export(gmt, recording, "torch"))
    for device in (0, 1):
        of_device = [s for s in report["spaces"] if s["device"] == device and s["space"] in ("device", "managed")]
        states = play_backwards(snapshot, device)
        assert states[-1] == (sum(s["live_bytes"] for s in of_device),) * 2
        assert max(reserved for reserved, _ in states) >= max(s["peak_bytes"] for s in of_device)
    names = {frame["name"] for event in snapshot["device_traces"][0] for frame in event["frames"]}
    assert {"keep", "pass_through"} <= names
    assert sum(event["action"] == "oom" for event in snapshot["device_traces"][0]) == 1


def test_memory_viz_shows_tensors_inside_the_drivers_segments(gmt, torch_recording):
    report = gmt.rendered(torch_recording)
    snapshot = page(export(gmt, torch_recording, "torch"))
    states = play_backwards(snapshot, 0)
    (device,) = [space for space in report["spaces"] if space["space"] == "device"]
    tensors = sum(site["live_bytes"] for site in report["sites"] if site["layer"] == "framework")
    assert states[-1] == (device["live_bytes"], tensors)
    assert sum(segment["allocated_size"] for segment in snapshot["segments"]) == tensors
    states = {block["state"] for segment in snapshot["segments"] for block in segment["blocks"]}
    assert states == {"active_allocated", "inactive"}


def test_the_frameworks_layer_is_there_on_request(gmt, torch_recording):
    report = gmt.rendered(torch_recording)
    for layer in ("driver", "framework"):
        text = export(gmt, torch_recording, "folded", "--layer", layer, "--value", "live").decode()
        total = sum(int(line.rpartition(" ")[2]) for line in text.splitlines())
        assert total == sum(site["live_bytes"] for site in report["sites"] if site["layer"] == layer) > 0


@pytest.mark.parametrize("name", FORMATS)
def test_equal_recordings_give_equal_files(gmt, recording, name):
    first = export(gmt, recording, name)
    assert first == export(gmt, recording, name)
    with open(gmt.folder / "piped", "wb") as pipe:
        subprocess.run([TOOL, "export", "-f", name, recording], stdout=pipe, check=True, env=gmt.environment(traced=False))
    assert (gmt.folder / "piped").read_bytes() == first
    assert sorted(path.name for path in gmt.folder.glob("out*")) == [f"out.{name}"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_recording_without_events_can_be_exported(gmt, name):
    done = gmt.python("import cuda\ncuda.init()\ntry:\n    cuda.allocate(1 << 50)\nexcept cuda.CudaError:\n    pass\n")
    export(gmt, done.recording, name)


@pytest.mark.parametrize("arguments, words", [
    ([], "--format"), (["-f", "speedscpoe", "x"], "did you mean 'speedscope'?"), (["-f", "csv"], "which recording"),
    (["-f", "csv", "--value", "x", "y"], "peak, live"), (["-f", "csv", "--layer", "x", "y"], "driver or framework")])
def test_wrong_usage_is_said(gmt, arguments, words):
    done = gmt.tool("export", *arguments, status=2)
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_a_full_disk_is_said_and_leaves_no_file(gmt, recording):
    done = gmt.tool("export", "-f", "csv", "-o", "/dev/full", recording, status=2)
    assert done.stderr == "gpumemtrace: /dev/full: No space left on device\n"
    done = gmt.tool("export", "-f", "csv", "-o", gmt.folder / "none" / "x", recording, status=2)
    assert "No such file or directory" in done.stderr
