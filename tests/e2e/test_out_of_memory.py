"""Out of memory: on disk at once, why it was refused, how much would have been granted, and what came of it."""
import signal
import subprocess
import sys

import stand_in
from conftest import TIMEOUT

MIB, GIB = 1 << 20, 1 << 30

ASKS = """
    import sys, cuda
    cuda.init()
    kept = cuda.allocate(5 << 30)

    def batch(size):
        return cuda.allocate(size)

    def answer(size):
        try:
            cuda.release(batch(size))
            print("granted", flush=True)
        except cuda.CudaError:
            print("refused", flush=True)

    answer(4 << 30)
    for line in sys.stdin:
        answer(int(line))
"""


class Asking:
    """The program above, waiting for sizes to try."""

    def __init__(self, gmt):
        self.folder = gmt.new_folder()
        script = self.folder / "asks.py"
        script.write_text("\n".join(line[4:] for line in ASKS.splitlines()))
        self.process = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=gmt.environment(self.folder / "gmt.%p", GPUMEMTRACE_QUIET=1))
        assert self.process.stdout.readline() == "refused\n"
        (self.recording,) = self.folder.glob("gmt.*.gmt")

    def ask(self, size):
        self.process.stdin.write(f"{size}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def kill(self):
        self.process.kill()
        assert self.process.wait(TIMEOUT) == -signal.SIGKILL
        self.process.stdin.close()
        self.process.stdout.close()


def test_a_refusal_is_on_disk_while_the_program_runs_and_after_it_was_killed(gmt):
    asking = Asking(gmt)
    while_running = gmt.rendered(asking.recording)
    asking.kill()
    after = gmt.rendered(asking.recording)
    assert (while_running["process"]["end"], after["process"]["end"]) == ("running", "killed")
    for report in (while_running, after):
        (oom,) = report["ooms"]
        assert (oom["requested_bytes"], oom["live_bytes"], oom["cause"]) == (4 * GIB, 5 * GIB, "full")
        assert [frame["function"] for frame in oom["frames"] if frame["kind"] == "python"][0] == "batch"
        assert oom["outcome"] == "ended"
    text = gmt.tool("report", asking.recording).stdout
    assert "OUT OF MEMORY: cuMemAlloc asked for 4.00 GiB on device 0" in text
    assert "asks.py:7 in batch" in text and "asks.py:4 in <module>, 1 block" in text


def test_the_largest_request_that_is_named_would_have_been_granted_and_no_larger_one(gmt):
    asking = Asking(gmt)
    (oom,) = gmt.rendered(asking.recording)["ooms"]
    largest = oom["largest_request_bytes"]
    assert 0 < largest < 4 * GIB
    assert (asking.ask(largest), asking.ask(largest + 1)) == ("granted", "refused")
    asking.kill()


def test_memory_that_a_library_took_past_us_is_named_as_the_cause(gmt):
    report = gmt.python("""
        import cuda, past_us
        cuda.init()
        kept = cuda.allocate(2 << 30)
        past_us.allocate(4 << 30)
        try:
            cuda.allocate(3 << 30)
        except cuda.CudaError:
            pass
    """, env={"SIMGPU_CONTEXT": "256M"}).report
    (oom,) = report["ooms"]
    assert oom["cause"] == "elsewhere"
    assert oom["elsewhere_bytes"] == 4 * GIB + 256 * MIB
    assert oom["verdict"].endswith("hold 4.25 GiB, 256.0 MiB of it since before its first allocation.")


def test_a_device_full_before_the_program_came_is_somebody_elses(gmt):
    report = gmt.python("""
        import cuda
        cuda.init()
        kept = cuda.allocate(1 << 30)
        try:
            cuda.allocate(3 << 30)
        except cuda.CudaError:
            pass
    """, env={"SIMGPU_CONTEXT": "5G"}).report
    (oom,) = report["ooms"]
    assert (oom["cause"], oom["elsewhere_bytes"]) == ("elsewhere", 5 * GIB)


def test_pinned_memory_that_the_system_refuses_is_not_the_devices_doing(gmt):
    report = gmt.python("""
        import cuda
        cuda.init()
        cuda.allocate_pinned(1 << 20)
        try:
            cuda.allocate_pinned(1 << 20)
        except cuda.CudaError:
            pass
    """, env={"SIMGPU_FAIL": "cuMemHostAlloc:2:2"}).report
    (oom,) = report["ooms"]
    assert (oom["cause"], oom["space"], oom["device"], oom["live_bytes"]) == ("host", "pinned", None, MIB)
    assert oom["largest_request_bytes"] is None


def test_a_request_beyond_the_device_is_called_that(gmt):
    report = gmt.python("""
        import cuda
        cuda.init()
        try:
            cuda.allocate(9 << 30)
        except cuda.CudaError:
            pass
    """).report
    (oom,) = report["ooms"]
    assert (oom["cause"], oom["outcome"]) == ("too_large", "ended")


CACHE = """
    import json, sys
    import cuda, caching
    cuda.init()
    allocator = caching.Allocator()

    def layer(size):
        return allocator.malloc(0, size, 0)

    kept = [layer(1 << 30) for _ in range(3)]
    scratch = layer(3 << 30)
    allocator.free(scratch)
"""


def test_a_framework_that_empties_its_cache_and_goes_on_is_told_from_one_that_gives_up(gmt):
    done = gmt.python(CACHE + """
    assert layer(4 << 30)       # fits only without the cached 3 GiB
    assert not layer(4 << 30)   # does not fit at all
    """, env=stand_in.environment())
    went_on, *gave_up, reported = done.report["ooms"]
    assert (went_on["cause"], went_on["outcome"]) == ("cached", "granted")
    assert went_on["releasable_bytes"] == went_on["freed_before_granted_bytes"] == 3 * GIB
    assert "PyTorch empties its cache and asks again" in went_on["advice"]
    assert gave_up and all(row["outcome"] == "ended" for row in [*gave_up, reported])
    assert (reported["cause"], reported["api"], reported["live_bytes"]) == ("full", "pytorch", 7 * GIB)


def test_pieces_in_a_frameworks_segments_are_called_fragmentation(gmt):
    done = gmt.python("""
        import cuda, caching
        cuda.init()
        allocator = caching.Allocator()

        def keep():
            return allocator.malloc(0, 12 << 20, 0)

        scratch = []
        for _ in range(7):
            allocator.free(allocator.malloc(0, 1 << 30, 0))
            keep()   # lies in the segment of 1 GiB that was just freed, and scratch beside it
            scratch.append(allocator.malloc(0, 1012 << 20, 0))
        for block in scratch:
            allocator.free(block)
        assert not allocator.malloc(0, 2 << 30, 0)
    """, env=stand_in.environment())
    report, reported = done.report, done.report["ooms"][-1]
    assert (reported["api"], reported["cause"], reported["live_bytes"]) == ("pytorch", "fragmented", 7 * 12 * MIB)
    assert (reported["stranded_bytes"], reported["releasable_bytes"]) == (7 * (1012 * MIB), 0)
    assert reported["largest_request_bytes"] == 1012 * MIB
    assert "in pieces of at most 1012.0 MiB" in reported["verdict"]
    (pinner,) = [site["id"] for site in report["sites"] if site["live_blocks"] == 7 and site["layer"] == "framework"]
    assert reported["frameworks"][0]["pinners"] == [pinner]
    after = done.text.split("verdict     Fragmented", 1)[1]
    assert "stranded by 6.92 GiB" in after and "program.py:7 in keep" in after
