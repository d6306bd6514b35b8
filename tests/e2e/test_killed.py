"""SIGKILL at a random moment: the recording reads, and no event that the program acknowledged is missing."""
import json
import os
import random
import signal
import subprocess
import sys

import pytest
from conftest import SANITIZE, SIMGPU, TIMEOUT

KILLS = int(os.environ.get("KILLS") or (50 if not SANITIZE else 8))


def kill_at(gmt, program, threads, bytes_read, **variables):
    """Starts the program, kills it once it acknowledged so many events, and compares."""
    folder = gmt.new_folder()
    process = subprocess.Popen([program, str(threads)], stdout=subprocess.PIPE,
                               env=gmt.environment(folder / "gmt.%p", GPUMEMTRACE_QUIET=1, **variables))
    acknowledged = b""
    while len(acknowledged) < bytes_read:
        more = process.stdout.read1(65536)
        assert more, f"it ended by itself with {process.wait()}"
        acknowledged += more
    process.kill()
    acknowledged += process.stdout.read()
    process.stdout.close()
    assert process.wait(TIMEOUT) == -signal.SIGKILL
    (recording,) = folder.glob("gmt.*.gmt")
    assert recording.name == f"gmt.{process.pid}.gmt"
    report = gmt.rendered(recording)
    counters = report["counters"]
    allocs, frees = acknowledged.count(b"a"), acknowledged.count(b"f")
    # What was on its way: at most one call in each thread. A free is recorded before the driver's call.
    assert allocs <= counters["allocs"] <= allocs + threads
    assert frees <= counters["frees"] <= frees + threads
    assert counters["dropped_events"] == counters["foreign_frees"] == 0
    assert report["process"]["end"] == "killed"
    live = report["leaks"]["live_blocks"]
    assert live == counters["allocs"] - counters["frees"]


@pytest.mark.parametrize("threads", [1, 4])
def test_nothing_acknowledged_is_missing_after_a_kill(gmt, compiled, threads):
    program = compiled("acknowledge.c", SIMGPU / "libcuda.so.1", "-lpthread")
    choose = random.Random(threads)
    for _ in range(KILLS // 2):
        kill_at(gmt, program, threads, int(2 ** choose.uniform(0, 13)))


def test_run_writes_the_reports_of_a_program_that_was_killed(gmt):
    folder = gmt.new_folder()
    script = folder / "program.py"
    script.write_text("import os, cuda\ncuda.init()\ncuda.allocate(3 << 20)\nos.kill(os.getpid(), 9)\n")
    done = gmt.tool("run", "-o", folder / "killed", "--", sys.executable, script, status=None)
    assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
    report = json.loads((folder / "killed.json").read_text())
    assert report["process"]["end"] == "killed"
    assert report["leaks"]["live_bytes"] == 3 << 20
    assert "program.py:3" in (folder / "killed.txt").read_text()
