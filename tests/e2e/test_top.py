"""`gpumemtrace top`: what running processes hold, read from the recordings that they write."""
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys

import pytest
import recording_writer
from conftest import TIMEOUT, TOOL

MIB = 1 << 20

# Does one step for each line it is told, and says when it has done it.
STEPS = """
import sys
import cuda
cuda.init()
kept = []
def keep(size):
    kept.append(cuda.allocate(size))
def give_back():
    cuda.release(kept.pop())
for line in sys.stdin:
    word, *size = line.split()
    if word == "keep":
        keep(int(size[0]))
    elif word == "free":
        give_back()
    elif word == "churn":
        for _ in range(int(size[0])):
            cuda.release(cuda.allocate(4096))
    print("done", flush=True)
"""


class Steps:
    def __init__(self, gmt, **env):
        self.gmt = gmt
        self.folder = gmt.new_folder()
        script = self.folder / "steps.py"
        script.write_text(STEPS)
        self.process = subprocess.Popen(
            [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.folder,
            env=gmt.environment(self.folder / "gmt.%p", **env), stderr=subprocess.DEVNULL)

    def do(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    @property
    def recording(self):
        (path,) = self.folder.glob("*.gmt")
        return path

    def end(self):
        self.process.stdin.close()
        self.process.wait(TIMEOUT)
        self.process.stdout.close()


@pytest.fixture
def steps(gmt):
    running = Steps(gmt)
    yield running
    if running.process.poll() is None:
        running.end()


def look(gmt, *arguments):
    return json.loads(gmt.tool("top", "--once", "--json", "-d", "0.05", *arguments).stdout)


def space(document, number=0):
    (one,) = document["processes"][number]["spaces"]
    return one


def test_prometheus_is_told_of_all_processes_together(gmt, steps):
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    steps.do("keep", 3 * MIB)
    other = Steps(gmt)
    other.do("keep", 5 * MIB)
    other.do("free")
    text = gmt.tool("top", "--openmetrics", steps.recording, other.recording).stdout
    other.end()
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    for name, figures in (("gpumemtrace_live_bytes", [3 * MIB, 0]), ("gpumemtrace_peak_bytes", [3 * MIB, 5 * MIB]),
                          ("gpumemtrace_frees", [0, 1])):
        assert {sample.labels["pid"]: sample.value for sample in families[name].samples} == {
            str(process.process.pid): figure for process, figure in zip((steps, other), figures)}
    assert [sample.value for sample in families["gpumemtrace_running"].samples] == [1, 1]
    (place,) = families["gpumemtrace_site_live_bytes"].samples
    assert (place.labels["site"], place.value) == ("steps.py:7 in keep", 3 * MIB)
    if shutil.which("promtool"):
        assert subprocess.run(["promtool", "check", "metrics"], input=text.encode()).returncode == 0


def test_prometheus_never_gets_a_series_twice(gmt):
    """Every container's process has pid 1, and an exec'd program keeps its pid."""
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    paths = [recording_writer.example().write(gmt.folder / name)
             for name in ("one.gmt", "one-2.gmt", "other.gmt")]
    (gmt.folder / "folder").mkdir()
    paths += [recording_writer.example().write(gmt.folder / "folder" / "one.gmt")]
    text = gmt.tool("top", "--openmetrics", *paths).stdout
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    samples = families["gpumemtrace_out_of_memory"].samples
    assert [sample.labels["recording"] for sample in samples] == ["one", "one-2", "other", str(paths[3])]
    for family in families.values():
        labels = [tuple(sorted(sample.labels.items())) for sample in family.samples]
        assert len(set(labels)) == len(labels)
    assert all(sample.labels["host"] for sample in samples)
    assert {sample.value for sample in families["gpumemtrace_running"].samples} == {0}


@pytest.mark.parametrize("by", ["pid", "file"])
def test_a_running_process_is_shown_as_it_is(gmt, steps, by):
    steps.do("keep", 3 * MIB)
    steps.do("keep", 5 * MIB)
    steps.do("free")
    document = look(gmt, steps.process.pid if by == "pid" else steps.recording)
    (process,) = document["processes"]
    assert (process["pid"], process["end"]) == (steps.process.pid, "running")
    one = space(document)
    assert (one["live_bytes"], one["peak_bytes"], one["allocs"], one["frees"]) == (3 * MIB, 8 * MIB, 2, 1)
    (site,) = document["sites"]
    assert site["title"] == "steps.py:7 in keep" and site["live_bytes"] == 3 * MIB
    steps.do("keep", 7 * MIB)
    assert space(look(gmt, steps.recording))["live_bytes"] == 10 * MIB


def test_all_processes_of_the_machine_are_found(gmt, steps):
    steps.do("keep", MIB)
    other = Steps(gmt)
    other.do("keep", 2 * MIB)
    found = {process["pid"]: process for process in look(gmt)["processes"]}
    other.end()
    for one, live in ((steps, MIB), (other, 2 * MIB)):
        assert found[one.process.pid]["spaces"][0]["live_bytes"] == live


def test_the_process_is_not_stopped_signalled_or_attached_to(gmt, steps):
    """By the calls that top makes: none of those that could do that."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    steps.do("keep", MIB)
    calls = gmt.folder / "calls"
    subprocess.run(["strace", "-f", "-o", calls, "-e", "trace=openat,ptrace,kill,tkill,tgkill,pidfd_send_signal,"
                    "process_vm_readv,process_vm_writev", TOOL, "top", "--once", "--json", str(steps.process.pid)],
                   env=gmt.environment(traced=False), check=True, capture_output=True)
    made = [line.split(None, 1)[1] for line in calls.read_text().splitlines()]
    assert any(call.startswith("openat(") and ".gmt" in call for call in made)
    assert not [call for call in made if not call.startswith(("openat(", "+++"))
                and not re.match(r"kill\(\d+, 0\)", call)]
    steps.do("keep", MIB)


def stream(gmt, recording, *options):
    return subprocess.Popen([TOOL, "top", "--json", "-d", "0.02", *options, recording], stdout=subprocess.PIPE, text=True,
                            env=gmt.environment(traced=False))


def test_changes_are_rates_and_the_stream_ends_with_the_process(gmt, steps):
    steps.do("keep", MIB)
    top = stream(gmt, steps.recording)
    json.loads(top.stdout.readline())
    steps.do("keep", 64 * MIB)
    rates = []
    while not rates or rates[-1] <= 0:
        rates.append(space(json.loads(top.stdout.readline()))["bytes_per_second"])
    assert rates[-1] > 64 * MIB / TIMEOUT
    steps.end()
    *_, last = top.stdout
    assert top.wait(TIMEOUT) == 0
    assert json.loads(last)["processes"][0]["end"] == "exited"
    top.stdout.close()


def test_a_recording_that_is_kept_short_can_be_followed(gmt):
    """Its halves are overwritten again and again while it is being read; at the end all figures are the report's."""
    steps = Steps(gmt, GPUMEMTRACE_MAX_TRACE="2M")
    steps.do("keep", MIB)
    top = stream(gmt, steps.recording)
    json.loads(top.stdout.readline())
    for _ in range(60):
        steps.do("churn", 4000)
        steps.do("keep", 4096)
    steps.end()
    *_, last = top.stdout
    assert top.wait(TIMEOUT) == 0
    top.stdout.close()
    report = gmt.rendered(steps.recording)
    (expected,) = report["spaces"]
    one = space(json.loads(last))
    assert report["counters"]["events"] > 400000 and steps.recording.stat().st_size <= 2 * MIB
    for key in ("live_bytes", "peak_bytes", "allocs", "frees"):
        assert one[key] == expected[key]


def test_killed_and_finished_processes_are_told(gmt, steps):
    steps.do("keep", MIB)
    recording = steps.recording
    steps.process.send_signal(signal.SIGKILL)
    steps.process.wait(TIMEOUT)
    document = look(gmt, recording)
    assert document["processes"][0]["end"] == "killed" and space(document)["live_bytes"] == MIB
    text = gmt.tool("top", "--once", recording).stdout
    assert "(killed)" in text and f"{steps.process.pid}  steps.py " in text


@pytest.mark.parametrize("key, first", [("live", "big"), ("allocs", "often"), ("peak", "high")])
def test_sites_are_sorted_by_the_key(gmt, key, first):
    done = gmt.python("""
        import cuda
        cuda.init()
        def big():
            return cuda.allocate(9 << 20)
        def often():
            for _ in range(50):
                cuda.release(cuda.allocate(1 << 20))
        def high():
            return cuda.allocate(30 << 20)
        often()
        cuda.release(high())
        kept = big()
        """)
    sites = json.loads(gmt.tool("top", "--once", "--json", "--sort", key, done.recording).stdout)["sites"]
    assert sites[0]["title"].endswith(f"in {first}")
    assert len(json.loads(gmt.tool("top", "--once", "--json", "-n1", done.recording).stdout)["sites"]) == 1


def test_growing_sites_come_first_when_asked(gmt):
    made = recording_writer.Recording()
    made.process()
    hold, leak = (made.site(made.stack(made.python(name, "/src/serve.py", line))) for name, line in (("hold", 3), ("leak", 5)))
    made.alloc(hold, 0x7F0000000000, 64 * MIB)
    for turn in range(150):
        made.alloc(leak, 0x7F1000000000 + turn * MIB, 64 << 10, time=10 * 10**6)
    recording = made.write(gmt.folder / "serve.gmt")
    text = gmt.tool("top", "--once", "--sort", "growth", recording).stdout
    row = text.split("PLACE\n")[1].splitlines()[0]
    assert row.endswith("serve.py:5 in leak") and "6.2 MiB/s" in row  # 64 KiB in each hundredth of a second


def test_on_a_terminal_it_answers_to_keys(gmt, steps):
    steps.do("keep", 3 * MIB)
    try:
        child, terminal = pty.fork()
    except OSError as error:
        pytest.skip(f"no terminal to be had: {error}")
    if child == 0:
        os.execve(TOOL, [str(TOOL), "top", "-d", "0.1", str(steps.recording)],
                  gmt.environment(traced=False, TERM="xterm", COLUMNS="120", LINES="30"))
    output = b""

    def read_until(word):
        nonlocal output
        while word not in output:
            assert select.select([terminal], [], [], TIMEOUT)[0], output
            output += os.read(terminal, 10000)

    read_until(b"steps.py:7 in keep")
    assert b"3.0 MiB" in output and b"sorted by live" in output
    os.write(terminal, b"a")
    read_until(b"allocs;")
    steps.do("keep", 40 * MIB)
    read_until(b"43.0 MiB")
    os.write(terminal, b"q")
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize("form", ["--json", "--openmetrics"])
@pytest.mark.parametrize("kind", ["missing", "no recording", "damaged"])
def test_one_that_cannot_be_read_keeps_none_of_the_others_from_being_shown(gmt, form, kind):
    good = recording_writer.example().write(gmt.folder / "good.gmt")
    bad = gmt.folder / "bad.gmt"
    if kind == "no recording":
        bad.write_text("noise")
    elif kind == "damaged":
        bad.write_bytes(good.read_bytes()[:4096] + b"\xff" * 4096)
    alone = gmt.tool("top", "--once", form, bad, status=2)
    done = gmt.tool("top", "--once", form, bad, good, status=2)
    assert str(bad) in done.stderr and done.stderr == alone.stderr and alone.stdout == ""
    if form == "--json":
        shown = [process["path"] for process in json.loads(done.stdout)["processes"] if not process["problem"]]
        assert shown == [str(good)]
    else:
        assert 'gpumemtrace_out_of_memory{recording="good"' in done.stdout and done.stdout.endswith("# EOF\n")


@pytest.mark.parametrize("arguments, words", [
    (["/nowhere.gmt"], "No such file"), (["1"], "writes no recording"), (["--sort", "liev", "x"], "did you mean 'live'?"),
    (["-d", "0", "x"], "--interval"), (["-d", "x", "x"], "--interval"), ([__file__], "not a recording")])
def test_what_cannot_be_shown_is_said(gmt, arguments, words):
    done = gmt.tool("top", "--once", *arguments, status=2)
    assert words in done.stderr and done.stderr.count("\n") == 1 and done.stdout == ""
