"""What the command-line tool says of itself, and of what it cannot use: one line, and exit status 2."""
import json
import os
import random
import re
import subprocess

import pytest
from conftest import ROOT, TOOL

COMMANDS = ["run", "report", "diff", "merge", "export", "top", "doctor", "completion"]


def expect_unusable(done, *words):
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"gpumemtrace: [^\n]+\n", done.stderr), done.stderr
    for word in words:
        assert str(word) in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(gmt, command):
    assert f"\n  {command} " in gmt.tool("--help").stdout
    help_text = gmt.tool(command, "--help").stdout
    assert help_text.startswith(f"Usage: gpumemtrace {command} ")
    assert re.search(rf"^  .*gpumemtrace {command}\b", help_text.split("\nExample:\n")[1], re.M)
    assert gmt.tool(command, "-h").stdout == help_text
    assert max(map(len, help_text.splitlines())) <= 110


def test_version_is_the_one_of_the_sources(gmt):
    (version,) = re.findall(r'VERSION "(.*)"', (ROOT / "src/base/version.h").read_text())
    assert gmt.tool("--version").stdout == f"gpumemtrace {version}\n"


@pytest.mark.parametrize("arguments, words", [
    ([], []),
    (["reprot"], ["'reprot'", "did you mean 'report'?"]),
    (["nothing-like-it"], ["'nothing-like-it'"]),
    (["report", "--sysrot=/", "x"], ["'--sysrot=/'", "did you mean '--sysroot'?"]),
    (["completion", "fihs"], ["did you mean 'fish'?"]),
    (["completion"], ["bash, zsh or fish"]),
    (["merge"], ["which recordings"]),
    (["run"], ["program"]),
    (["run", "--no-such", "--", "true"], ["'--no-such'"]),
    (["run", "-Z", "true"], ["'-Z'"]),
    (["run", "-o"], ["'-o'"]),
    (["report"], ["recording"]),
    (["report", "a", "b"], []),
    (["report", "--output"], ["'--output'"]),
    (["diff", "one"], ["two", "not 1"]),
    (["diff", "--top", "many", "a", "b"], ["'many'"]),
    (["diff", "--top", "-1", "a", "b"], ["'-1'"]),
])
def test_wrong_usage_is_said_in_one_line(gmt, arguments, words):
    expect_unusable(gmt.tool(*arguments, status=None), "--help", *words)


@pytest.fixture
def unreadable(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "noise").write_bytes(random.Random(1).randbytes(10000))
    (tmp_path / "short.gmt").write_bytes(b"GPUMTRC\0" + bytes(100))
    (tmp_path / "newer.gmt").write_bytes(b"GPUMTRC\0\xff\xff\0\0" + bytes(8192))
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


@pytest.mark.parametrize("name", ["missing", "empty", "noise", "short.gmt", "newer.gmt", "folder", "fifo",
                                  "esc\x1b[2Jape"])
def test_input_that_cannot_be_read_is_named(gmt, unreadable, name):
    path = unreadable / name
    shown = str(path).replace("\x1b", "\\x1B")
    for command in (["report", path], ["diff", path, path]):
        done = gmt.tool(*command, status=None)
        expect_unusable(done, shown)
        assert "\x1b" not in done.stderr


def test_a_missing_file_is_answered_with_the_newest_recording(gmt, tmp_path):
    for number, name in enumerate(["gmt.1.gmt", "gmt.3.gmt", "gmt.2.gmt"]):
        (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (1000 + number, 1000 + number))
    for path, folder in ((tmp_path / "gmt.gmt", "/"), ("gmt.gmt", tmp_path)):
        done = gmt.tool("report", path, status=None, cwd=folder)
        expect_unusable(done, "No such file or directory; the newest recording there is 'gmt.2.gmt'")


def test_a_report_given_for_a_recording_is_told_where_that_is(gmt, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps(report()) + " " * 5000)
    expect_unusable(gmt.tool("report", tmp_path / "run.json", status=None), "has its name with .gmt")


def report(**changes):
    whole = {"schema": "gpumemtrace.report/1", "spaces": [], "sites": [],
             "leaks": {"sites": []}, "growth": [], "ooms": [],
             "process": {"exe": "/bin/x", "end": "exited", "complete": True, "duration_ns": 1}}
    return {**whole, **changes}


FIGURES = {key: 1 for key in ["live_bytes", "live_blocks", "allocs", "frees", "allocated_bytes"]}
SITE = {"layer": "driver", "space": "device", "device": 0, "family": "plain", "api": "cuMemAlloc", "frames": [],
        "bytes_at_peak": 1, "blocks_at_peak": 1, **FIGURES}
SPACE = {"space": "device", "device": 0, "peak_bytes": 1, **FIGURES}
VALUES = [None, True, 1.5, -1, "text", [], {}, [1], 1 << 62]


def is_wanted(value, good):
    """Whether `value` has the type that `good` shows. Texts and devices may be null where nothing is known."""
    if isinstance(good, bool):
        return isinstance(value, bool)
    if isinstance(good, int):
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return type(value) is type(good)


OPTIONAL = {"exe", "device", "function", "file", "module", "line", "offset", "complete"}


def test_every_value_of_a_report_has_its_type_checked(gmt, tmp_path):
    good = tmp_path / "good.json"
    frame = {"kind": "native", "function": "f", "file": "f.c", "line": 1, "module": "/m.so", "offset": 1}
    whole = report(sites=[{**SITE, "frames": [frame]}], spaces=[SPACE])
    good.write_text(json.dumps(whole))
    gmt.tool("diff", good, good)
    bad = tmp_path / "bad.json"
    checked = 0
    for where in (lambda r: r, lambda r: r["process"], lambda r: r["spaces"][0], lambda r: r["sites"][0],
                  lambda r: r["sites"][0]["frames"][0]):
        for key, usual in where(whole).items():
            for value in VALUES:
                if is_wanted(value, usual) or key in OPTIONAL:
                    continue
                if key == "schema" or (isinstance(usual, list) and value == [1]):
                    continue
                damaged = json.loads(json.dumps(whole))
                where(damaged)[key] = value
                bad.write_text(json.dumps(damaged))
                expect_unusable(gmt.tool("diff", good, bad, status=None), bad)
                checked += 1
    assert checked > 100


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"schema": "gpumemtrace.report/2"}', "[" * 100000,
                                  '{"schema": "gpumemtrace.report/1", "sites": [[]]}', '{"schema": "\\u0000"}',
                                  json.dumps(report(sites=[1])), json.dumps(report(spaces=[[]])),
                                  json.dumps(report(sites=[{**SITE, "frames": [3]}]))])
def test_json_that_is_no_report_is_refused(gmt, tmp_path, text):
    path = tmp_path / "some.json"
    path.write_text(text)
    expect_unusable(gmt.tool("diff", path, path, status=None), path)


def test_output_that_cannot_be_written_is_said(gmt, tmp_path):
    with open("/dev/full", "w") as full:
        import subprocess
        from conftest import TOOL
        done = subprocess.run([TOOL, "--help"], stdout=full, stderr=subprocess.PIPE, text=True,
                              env=gmt.environment(traced=False))
    assert done.returncode == 2
    assert done.stderr == "gpumemtrace: standard output: No space left on device\n"


def test_no_function_of_ours_stands_in_for_one_of_a_library(gmt):
    """The tool's own names go before those of the libraries that it is linked with, inside these too."""
    def names(path, *options):
        done = subprocess.run(["nm", *options, "--defined-only", path], capture_output=True, text=True, check=True)
        return {line.split()[2].split("@")[0] for line in done.stdout.splitlines() if line.split()[1] in "TDBR"}
    linked = subprocess.run(["ldd", TOOL], capture_output=True, text=True, check=True).stdout
    libraries = re.findall(r"=> (/\S*(?:libdw|libelf|libjansson)\S*)", linked)
    assert len(libraries) == 3
    for library in libraries:
        assert names(TOOL) & names(library, "-D") <= {"_init", "_fini"}
