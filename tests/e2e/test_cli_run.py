"""`gpumemtrace run`: the program is as it would be without it, and its recordings are complete whatever its end."""
import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest
from conftest import LIBRARY, SANITIZE, SIMGPU, TIMEOUT, TOOL


def run(gmt, *command, options=(), status=0, env=None, **more):
    return gmt.tool("run", *options, "--", *command, status=status, env=env, **more)


@pytest.mark.parametrize("status", [0, 1, 2, 77, 255])
def test_exit_status_is_passed_on(gmt, status):
    assert run(gmt, "sh", "-c", f"exit {status}", status=None).returncode == status


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGINT", "SIGABRT"])
def test_death_by_signal_is_passed_on(gmt, name):
    if SANITIZE and name == "SIGSEGV":
        pytest.skip("the sanitizer takes this signal for itself")
    done = run(gmt, "sh", "-c", f"kill -{name[3:]} $$", status=None, cwd=gmt.folder)
    assert done.returncode == -getattr(signal, name)
    assert list(gmt.folder.glob("core*")) == []


def test_program_that_cannot_be_started(gmt, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("no program")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o755)
    for program, status, why in [("no-such-program", 127, "No such file or directory"),
                                 (plain, 126, "Permission denied"), (fifo, 126, "Permission denied")]:
        done = run(gmt, program, status=None)
        assert done.returncode == status
        assert done.stderr == f"gpumemtrace: {program}: {why}\n"


def test_streams_arguments_and_options_of_the_program_are_its_own(gmt):
    done = run(gmt, "sh", "-c", 'cat; echo "$@" >&2', "sh", "--json", "-o", "a b", input="typed\n")
    assert done.stdout == "typed\n"
    assert done.stderr == "--json -o a b\n"


def test_environment_of_the_program(gmt):
    variables = ["LD_PRELOAD", "GPUMEMTRACE_OUTPUT", "GPUMEMTRACE_STACKS", "GPUMEMTRACE_DEPTH", "GPUMEMTRACE_QUIET",
                 "GPUMEMTRACE_SESSION", "GPUMEMTRACE_REPORT"]
    script = "for name in %s; do eval echo \\$$name; done" % " ".join(variables)
    done = run(gmt, "sh", "-c", script, cwd=gmt.folder,
               options=["-o", "x.%p", "--stacks=native", "--depth", "7", "-q", "--report=json"])
    values = dict(zip(variables, done.stdout.split("\n")))
    assert str(LIBRARY) in values["LD_PRELOAD"].split(":")
    assert values["GPUMEMTRACE_OUTPUT"] == f"{gmt.folder}/x.%p"
    assert values["GPUMEMTRACE_STACKS"] == "native"
    assert values["GPUMEMTRACE_DEPTH"] == "7"
    assert values["GPUMEMTRACE_QUIET"] == "1"
    assert values["GPUMEMTRACE_REPORT"] == "json"
    assert len(values["GPUMEMTRACE_SESSION"]) == 32
    again = run(gmt, "sh", "-c", "echo $GPUMEMTRACE_SESSION")
    assert again.stdout.strip() != values["GPUMEMTRACE_SESSION"]


@pytest.mark.skipif(bool(SANITIZE), reason="the sanitizer's runtime stays in front")
def test_library_comes_first_and_other_preloads_stay(gmt):
    for before, after in [("libm.so.6", f"{LIBRARY}:libm.so.6"), (f"libm.so.6 {LIBRARY}", f"libm.so.6 {LIBRARY}")]:
        done = run(gmt, "sh", "-c", 'echo "$LD_PRELOAD"', env={"LD_PRELOAD": before})
        assert done.stdout.strip() == after


def test_a_percent_sign_in_the_folder_is_no_pattern(gmt):
    folder = gmt.folder / "100%p"
    folder.mkdir()
    script = folder / "program.py"
    script.write_text("import cuda\ncuda.init()\ncuda.allocate(4096)\n")
    run(gmt, sys.executable, script, options=["-o", "mine"], cwd=folder)
    assert sorted(path.name for path in folder.iterdir()) == ["mine.gmt", "mine.json", "mine.txt", "program.py"]


def test_library_that_is_not_there_is_said(gmt):
    done = run(gmt, "true", status=None, env={"GPUMEMTRACE_LIBRARY": "/nowhere/libgpumemtrace.so"})
    assert done.returncode == 2
    assert done.stderr.startswith("gpumemtrace: /nowhere/libgpumemtrace.so: ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["with space", "with:colon"])
def test_library_whose_path_preload_cannot_hold_is_loaded(gmt, name):
    """By a link that is gone afterwards."""
    path, temporary = gmt.folder / name, gmt.folder / "temporary"
    path.write_bytes(LIBRARY.read_bytes())
    temporary.mkdir()
    run(gmt, sys.executable, "-c", ALLOCATES, options=["-o", gmt.folder / "one"],
        env={"GPUMEMTRACE_LIBRARY": path, "TMPDIR": temporary})
    assert (gmt.folder / "one.gmt").exists() and list(temporary.iterdir()) == []


@pytest.mark.parametrize("library", ["lib", "lib/x86_64-linux-gnu"])
def test_an_installed_tree_finds_its_parts(gmt, library):
    if os.uname().machine != "x86_64" and "x86_64" in library:
        pytest.skip("another machine's folder")
    root = gmt.folder / "usr"
    (root / "bin").mkdir(parents=True)
    (root / library / "gpumemtrace" / "simgpu").mkdir(parents=True)
    (root / "bin" / "gpumemtrace").write_bytes(TOOL.read_bytes())
    (root / "bin" / "gpumemtrace").chmod(0o755)
    (root / library / "libgpumemtrace.so").write_bytes(LIBRARY.read_bytes())
    simulated = root / library / "gpumemtrace" / "simgpu"
    (simulated / "libcuda.so.1").write_bytes((SIMGPU / "libcuda.so.1").read_bytes())
    done = subprocess.run([root / "bin" / "gpumemtrace", "run", "--simulate", "--", "sh", "-c",
                           "echo $LD_PRELOAD; echo $LD_LIBRARY_PATH"], capture_output=True, text=True,
                          env=gmt.environment(traced=False, LD_LIBRARY_PATH="/other"), check=True)
    preload, path = done.stdout.split("\n")[:2]
    assert preload.split(":")[-1] == str(root / library / "libgpumemtrace.so")
    assert path == f"{simulated}:/other"


ALLOCATES = "import cuda\ncuda.init()\ncuda.allocate(3 << 20)\n"


def test_simulated_gpu_needs_no_environment(gmt):
    script = gmt.folder / "program.py"
    script.write_text(ALLOCATES)
    run(gmt, sys.executable, script, options=["--simulate", "-o", gmt.folder / "sim"], env={"LD_LIBRARY_PATH": None})
    report = json.loads((gmt.folder / "sim.json").read_text())
    assert report["leaks"]["live_bytes"] == 3 << 20
    assert report["process"]["end"] == "exited"


@pytest.mark.parametrize("kinds, files", [("text,json", {"txt", "json"}), ("json", {"json"}), ("text", {"txt"}),
                                          ("none", set()), ("nonsense", {"txt", "json"})])
def test_reports_of_a_killed_program_are_those_asked_for(gmt, kinds, files):
    script = gmt.folder / "program.py"
    script.write_text(ALLOCATES + "import os\nos.kill(os.getpid(), 9)\n")
    done = run(gmt, sys.executable, script, options=["-o", gmt.folder / "k", f"--report={kinds}"], status=None)
    assert done.returncode == -signal.SIGKILL
    assert {path.name for path in gmt.folder.glob("k.*")} == {"k.gmt"} | {f"k.{suffix}" for suffix in files}
    assert ("gpumemtrace: peak 3.0 MiB on device 0, 3.0 MiB in 1 block still allocated when it was killed\n"
            in done.stderr)


def test_quiet_means_no_summary_of_a_killed_program_either(gmt):
    script = gmt.folder / "program.py"
    script.write_text(ALLOCATES + "import os\nos.kill(os.getpid(), 9)\n")
    done = run(gmt, sys.executable, script, options=["-o", gmt.folder / "k", "-q"], status=None)
    assert done.stderr == ""
    assert (gmt.folder / "k.txt").exists()


def test_killed_children_are_reported_and_other_sessions_left_alone(gmt):
    """A parent that exits well, a child of it that is killed, and an older recording of a killed run beside them."""
    script = gmt.folder / "program.py"
    script.write_text(ALLOCATES + "import os\nos.kill(os.getpid(), 9)\n")
    older = gmt.folder / "older"
    older.mkdir()
    env = gmt.environment(older / "gmt.%p")
    subprocess.run([sys.executable, script], env=env, capture_output=True)
    (recording,) = older.glob("*.gmt")
    parent = gmt.folder / "parent.py"
    parent.write_text(ALLOCATES + f"import subprocess, sys\nsubprocess.run([sys.executable, {str(script)!r}])\n")
    run(gmt, sys.executable, parent, options=["-o", older / "gmt.%p"])
    ends = sorted(json.loads(path.read_text())["process"]["end"] for path in older.glob("*.json"))
    assert ends == ["exited", "killed"]
    assert not recording.with_suffix(".json").exists()
    assert len(list(older.glob("*.gmt"))) == 3
    assert not list(older.glob("*.part*"))


def test_a_process_that_lives_on_is_left_alone(gmt):
    ready, release = gmt.folder / "ready", gmt.folder / "release"
    os.mkfifo(release)
    script = gmt.folder / "daemon.py"
    script.write_text(ALLOCATES + f"open({str(ready)!r}, 'w').close()\nopen({str(release)!r}).read()\n")
    parent = f"{sys.executable} {script} >/dev/null 2>&1 & while kill -0 $! && [ ! -e {ready} ]; do sleep 0.02; done"
    run(gmt, "sh", "-c", parent, options=["-o", gmt.folder / "d"])
    assert (gmt.folder / "d.gmt").exists() and not (gmt.folder / "d.json").exists()
    with open(release, "w"):
        pass
    deadline = time.monotonic() + TIMEOUT
    while not (gmt.folder / "d.json").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert (gmt.folder / "d.txt").exists()


COUNTS_SIGNALS = """
import os, signal, sys
seen = []
def handle(number, frame):
    seen.append(signal.Signals(number).name)
    os.write(1, (seen[-1] + "\\n").encode()) # print may be interrupted by the next one
    if number == signal.SIGTERM:
        sys.exit(len(seen))
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
    signal.signal(number, handle)
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_signals_sent_to_the_tool_reach_the_program_once(gmt):
    process = subprocess.Popen([TOOL, "run", "--", sys.executable, "-c", COUNTS_SIGNALS], stdout=subprocess.PIPE,
                               text=True, env=gmt.environment(traced=False))
    assert process.stdout.readline() == "ready\n"
    names = ["SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTERM"]
    for name in names:
        process.send_signal(getattr(signal, name))
        assert process.stdout.readline() == f"{name}\n"
    assert process.wait(TIMEOUT) == len(names)
    process.stdout.close()


def test_control_c_on_the_terminal_reaches_the_program_once(gmt):
    """The terminal signals the whole group: passing it on as well would make it two."""
    try:
        child, terminal = pty.fork()
    except OSError as error:
        pytest.skip(f"no terminal to be had: {error}")
    if child == 0:
        os.execve(TOOL, [str(TOOL), "run", "--", sys.executable, "-c", COUNTS_SIGNALS],
                  gmt.environment(traced=False))
    output = b""

    def read_until(word):
        nonlocal output
        while word not in output:
            output += os.read(terminal, 1000)

    read_until(b"ready")
    os.write(terminal, b"\x03")
    read_until(b"SIGINT")
    os.kill(child, signal.SIGTERM)
    read_until(b"SIGTERM")
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert os.WEXITSTATUS(status) == 2 and output.count(b"SIGINT") == 1


def test_signals_ignored_by_the_caller_stay_ignored(gmt):
    done = run(gmt, "sh", "-c", "kill -HUP $$; echo lives",
               preexec_fn=lambda: (signal.signal(signal.SIGHUP, signal.SIG_IGN),
                                   signal.signal(signal.SIGCHLD, signal.SIG_IGN)))
    assert done.stdout == "lives\n"


def simulated(gmt, source, *options, status=0, **more):
    script = gmt.folder / "program.py"
    script.write_text(source)
    done = run(gmt, sys.executable, script, options=["--simulate", "-o", gmt.folder / "r.%p", *options], status=None,
               env={"LD_LIBRARY_PATH": None}, cwd=gmt.folder, **more)
    assert done.returncode == status, done.stderr
    return done


def test_three_lines_at_the_end_say_what_to_look_at(gmt):
    lines = simulated(gmt, ALLOCATES).stderr.splitlines()
    assert lines[:2] == ["gpumemtrace: peak 3.0 MiB on device 0, 3.0 MiB in 1 block still allocated at exit",
                         "gpumemtrace: look first at program.py:3 in <module>: 3.0 MiB in 1 block still allocated"]
    command = lines[2].removeprefix("gpumemtrace: more: gpumemtrace ").split()
    assert len(lines) == 3 and command[0] == "report"
    assert "program.py:3" in gmt.tool(*command, cwd=gmt.folder).stdout


def test_what_a_line_held_at_the_peak_is_of_the_memory_that_is_spoken_of(gmt):
    """One line takes 3 MiB of the device, 5 MiB pinned, and gives both back."""
    source = ("import cuda\ncuda.init()\n"
              "kept = cuda.allocate(3 << 20), cuda.allocate_pinned(5 << 20)\n"
              "cuda.release(kept[0]), cuda.release_pinned(kept[1])\n")
    first, look, _ = simulated(gmt, source).stderr.splitlines()
    assert "peak 3.0 MiB on device 0" in first
    assert look == "gpumemtrace: look first at program.py:3 in <module>: 3.0 MiB at the peak"


ADDS_UP = """
import cuda
cuda.init()
for turn in range(20):
    kept = cuda.allocate(1 << 20)
    if turn == 10:
        model = cuda.allocate(128 << 20)
    for _ in range(turn * turn):
        cuda.release(cuda.allocate(1 << 20))
"""


def test_what_keeps_adding_up_is_looked_at_before_what_is_larger(gmt):
    """As the report does it, where that says '>'. The steps are not even, so growth is not told."""
    lines = simulated(gmt, ADDS_UP).stderr.splitlines()
    assert lines[0].endswith("148.0 MiB in 21 blocks still allocated at exit")
    assert lines[1] == "gpumemtrace: look first at program.py:5 in <module>: 20.0 MiB in 20 blocks still allocated"


def test_without_a_leak_the_peak_is_looked_at_and_after_a_refusal_the_verdict(gmt):
    """6 MiB that are freed; then 64 GiB of a device that has 8."""
    freed = "import cuda\ncuda.init()\ncuda.release(cuda.allocate(6 << 20))\n"
    first, look, _ = simulated(gmt, freed).stderr.splitlines()
    assert first.endswith("peak 6.0 MiB on device 0, nothing still allocated at exit")
    assert look == "gpumemtrace: look first at program.py:3 in <module>: 6.0 MiB at the peak"
    for path in gmt.folder.glob("r.*"):
        path.unlink()
    first, verdict, _ = simulated(gmt, freed + "try:\n    cuda.allocate(64 << 30)\nexcept Exception:\n"
                                               "    pass\n").stderr.splitlines()
    assert first.startswith("gpumemtrace: out of memory, peak 6.0 MiB")
    assert json.loads(next(gmt.folder.glob("r.*.json")).read_text())["ooms"][0]["verdict"] in verdict


def test_of_several_processes_the_highest_peak_is_spoken_of(gmt):
    child = "import cuda\ncuda.init()\ncuda.allocate(40 << 20)\n"
    source = ALLOCATES + f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}], check=True)\n"
    first, _, last = simulated(gmt, source).stderr.splitlines()
    assert first.startswith("gpumemtrace: of 2 processes the one with the highest peak: peak 40.0 MiB on device 0")
    report, merge = last.removeprefix("gpumemtrace: more: ").split("; all: ")
    assert report.startswith("gpumemtrace report r.") and merge == "gpumemtrace merge r.*.gmt"
    merged = subprocess.run(merge.replace("gpumemtrace", str(TOOL), 1), shell=True, cwd=gmt.folder, capture_output=True,
                            text=True, check=True)
    assert merged.stdout.startswith("2 processes")


@pytest.mark.parametrize("conditions, status", [
    (["peak>2M"], 1), (["peak>3M"], 0), (["leak>0"], 1), (["peak>1G", "leak>2M"], 1), (["growth>0", "peak>1G"], 0)])
def test_a_condition_decides_over_the_exit_status(gmt, conditions, status):
    done = simulated(gmt, ALLOCATES, "-q", "--fail-on", *conditions, status=status)
    if status == 0:
        assert done.stderr == ""
    else:
        assert done.stderr.startswith("gpumemtrace: ") and done.stderr.count("\n") == 1
        assert f"{conditions[-1]} failed: " in done.stderr


def test_conditions_compare_with_a_baseline(gmt):
    simulated(gmt, ALLOCATES, "-q")
    (baseline,) = gmt.folder.glob("r.*.json")
    more = ALLOCATES + "def more():\n    cuda.allocate(1 << 20)\nmore()\n"
    simulated(gmt, more, "-q", "--baseline", baseline, "--fail-on", "peak>+50%")
    done = simulated(gmt, more, "-q", "--baseline", baseline, "--fail-on", "peak>+5%", status=1)
    assert "device 0: 3.0 MiB → 4.0 MiB (+33.3%); most at program.py:5 in more: +1.0 MiB" in done.stderr


def test_conditions_that_cannot_be_decided_are_no_success(gmt):
    assert "--baseline" in simulated(gmt, ALLOCATES, "--fail-on", "peak>+5%", status=2).stderr
    missing = simulated(gmt, ALLOCATES, "--baseline", "/nowhere.json", "--fail-on", "peak>+5%", status=2)
    assert missing.stderr == "gpumemtrace: /nowhere.json: No such file or directory\n"
    assert not list(gmt.folder.glob("r.*"))
    assert "nothing to decide on" in simulated(gmt, "pass", "--fail-on", "leak>0", status=2).stderr


def test_a_failing_program_keeps_its_own_status(gmt):
    done = simulated(gmt, ALLOCATES + "raise SystemExit(7)\n", "--fail-on", "leak>0", status=7)
    assert "leak>0 failed" in done.stderr


def test_every_process_is_held_against_the_conditions(gmt):
    child = "import cuda\ncuda.init()\ncuda.allocate(40 << 20)\n"
    source = ALLOCATES + f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}], check=True)\n"
    done = simulated(gmt, source, "-q", "--fail-on", "peak>2M", status=1)
    assert done.stderr.count("peak>2M failed") == 1
    assert "so do 1 more of 2 processes" in done.stderr
    assert "40.0 MiB" in simulated(gmt, source, "-q", "--fail-on", "peak>20M", status=1).stderr


def test_follow_waits_for_what_the_program_leaves_behind(gmt):
    """The program ends while a grandchild of the tool still waits for a pipe that the test holds."""
    ready, release = gmt.folder / "ready", gmt.folder / "release"
    os.mkfifo(release)
    script = gmt.folder / "daemon.py"
    script.write_text(ALLOCATES + f"open({str(ready)!r}, 'w').close()\nopen({str(release)!r}).read()\n")
    shell = f"{sys.executable} {script} >/dev/null 2>&1 & while kill -0 $! && [ ! -e {ready} ]; do sleep 0.02; done; exit 5"
    process = subprocess.Popen([TOOL, "run", "--simulate", "--follow", "-o", gmt.folder / "d", "--", "sh", "-c", shell],
                               stderr=subprocess.PIPE, text=True, env=gmt.environment(traced=False))
    with open(release, "w"):
        assert process.poll() is None
    assert process.wait(TIMEOUT) == 5
    assert "peak 3.0 MiB on device 0, 3.0 MiB in 1 block still allocated at exit" in process.stderr.read()
    process.stderr.close()


@pytest.mark.parametrize("end", ["", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"], ids=["exited", "killed"])
def test_page_is_written_beside_the_recording_when_asked_for(gmt, end):
    done = simulated(gmt, ALLOCATES + end, "--html", status=-signal.SIGKILL if end else 0)
    assert "gpumemtrace: peak" in done.stderr
    (page,) = gmt.folder.glob("r.*.html")
    recording = page.with_suffix(".gmt")
    assert page.read_text() == gmt.tool("report", "--html", recording).stdout
    simulated(gmt, ALLOCATES, "-q")
    assert len(list(gmt.folder.glob("r.*.gmt"))) == 2 and list(gmt.folder.glob("r.*.html")) == [page]


def test_folders_that_the_output_names_are_made(gmt):
    script = gmt.folder / "program.py"
    script.write_text(ALLOCATES)
    run(gmt, sys.executable, script, options=["--simulate", "-o", "new/deep/%e.%p"], cwd=gmt.folder)
    assert len(list((gmt.folder / "new" / "deep").glob("*.gmt"))) == 1
