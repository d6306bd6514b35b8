"""Every way a process can end: whatever had happened is in the recording, and the report is there. The library writes
it where code of the process still runs; `gpumemtrace run` writes it where none does; `report` reads any recording."""
import json
import signal
import time

import pytest
from conftest import SANITIZE, SIMGPU

MIB = 1 << 20
# How it ends, the status, and whether handlers and destructors ran: they free the second block, of 2 MiB.
RUNNING_CODE = {
    "return": (7, True), "exit": (7, True), "quick_exit": (7, True), "_exit": (7, False), "_Exit": (7, False),
    "exit_in_thread": (7, True), "pthread_exit": (0, True),
    "execv": (7, False), "execve": (7, False), "execvp": (7, False), "execvpe": (7, False), "execl": (7, False),
    "execlp": (7, False), "execle": (7, False), "fexecve": (7, False), "execveat": (7, False), "vfork": (7, True),
}
FATAL = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1",
         "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGXCPU", "SIGXFSZ", "SIGVTALRM",
         "SIGPROF", "SIGIO", "SIGPWR", "SIGSYS", "SIGRTMIN", "SIGRTMAX"]
NO_CODE = {"raw_exit": 7, "abort": -signal.SIGABRT, "fault": -signal.SIGSEGV, "handled_fault": -signal.SIGSEGV,
           **{name: -getattr(signal, name) for name in FATAL}}


@pytest.fixture
def endings(compiled):
    return compiled("endings.c", SIMGPU / "libcuda.so.1", "-lpthread", "-Wno-nonnull")


def arguments(way):
    return ["signal", int(getattr(signal, way))] if way in FATAL else [way]


def expect(report, end, second_freed=False, allocs=3):
    assert report["process"]["end"] == end
    assert report["process"]["complete"]
    assert report["counters"]["allocs"] == allocs
    assert report["counters"]["frees"] == (2 if second_freed else 1)
    assert report["leaks"]["live_bytes"] == (3 if second_freed else 5) * MIB


@pytest.mark.parametrize("way", [pytest.param(way, marks=pytest.mark.thread_sanitizer_cannot("end without main's thread"))
                                 if way == "pthread_exit" else way for way in RUNNING_CODE])
def test_library_writes_the_report_where_code_still_runs(gmt, endings, way):
    status, handlers_run = RUNNING_CODE[way]
    done = gmt.run(endings, *arguments(way), status=status)
    assert done.out == "worked\n"
    expect(done.report, "exited", handlers_run)
    expect(gmt.rendered(done.recording), "exited", handlers_run)


@pytest.mark.parametrize("way", NO_CODE)
def test_recording_has_everything_where_no_code_runs_any_more(gmt, endings, way):
    if SANITIZE and way in ("fault", "handled_fault", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT"):
        pytest.skip("the sanitizer handles it")
    done = gmt.run(endings, *arguments(way), status=NO_CODE[way])
    assert done.out == ("worked\nhandled\n" if way == "handled_fault" else "worked\n")
    assert done.reports == [] and done.err == ""
    expect(gmt.rendered(done.recording), "killed")


@pytest.mark.parametrize("way", ["raw_exit", "abort", "SIGKILL", "SIGTERM", "exit", "execv", "_exit"])
def test_run_has_the_report_whatever_way_the_program_died(gmt, endings, way):
    folder = gmt.new_folder()
    wanted = NO_CODE.get(way) or RUNNING_CODE[way][0]
    done = gmt.tool("run", "-o", folder / "it", "--", endings, *arguments(way), status=None)
    assert done.returncode == (wanted if wanted >= 0 else 128 - wanted) or done.returncode == wanted
    assert sorted(path.name for path in folder.iterdir()) == ["it.gmt", "it.json", "it.txt"]
    expect(json.loads((folder / "it.json").read_text()), "killed" if way in NO_CODE else "exited", way == "exit")


def test_failed_exec_is_no_end(gmt, endings):
    done = gmt.run(endings, "failed_exec", status=7, env={"GPUMEMTRACE_QUIET": "1"})
    assert done.out == "worked\n"
    assert done.err == "exec: No such file or directory\n"
    for report in (done.report, gmt.rendered(done.recording)):
        assert report["process"]["end"] == "exited"
        assert report["process"]["complete"]
        assert report["counters"]["allocs"] == 6
        assert report["leaks"]["live_bytes"] == 6 * MIB


def test_failed_exec_does_not_disturb_a_bounded_recording(gmt):
    """With generations behind it."""
    done = gmt.python("""
        import os
        import cuda
        cuda.init()
        kept = []
        for n in range(10):
            for _ in range(12000):
                cuda.release(cuda.allocate(4096))
            try:
                os.execv("/no/such/program", ["program"])
            except FileNotFoundError:
                pass
            kept.append(cuda.allocate(1 << 20))
        """, env={"GPUMEMTRACE_QUIET": "1", "GPUMEMTRACE_MAX_TRACE": "2M"})
    for report in (done.report, gmt.rendered(done.recording)):
        assert report["counters"]["allocs"] == 120010
        assert report["leaks"]["live_bytes"] == 10 * MIB
        assert report["process"]["complete"]


def test_threads_in_the_middle_of_their_work_at_exit(gmt, endings):
    for _ in range(3):
        done = gmt.run(endings, "threads", status=7)
        at_exit, rendered = done.report, gmt.rendered(done.recording)
        assert at_exit["process"]["complete"] and rendered["process"]["complete"]
        assert at_exit["counters"] == rendered["counters"]
        assert at_exit["counters"]["allocs"] > 3
        assert at_exit["leaks"]["live_bytes"] == 3 * MIB + 4096 * (at_exit["leaks"]["live_blocks"] - 1)


def test_daemon_has_files_of_its_own(gmt):
    """Forked twice, with a session, a folder and descriptors of its own, and nobody waits for it."""
    folder = gmt.new_folder()
    gmt.python("""
        import os, sys
        import cuda
        if os.fork():
            os._exit(0)
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        os.closerange(0, 1024)
        for _ in range(3):
            os.open("/dev/null", os.O_RDWR)
        cuda.init()
        cuda.allocate(5 << 20)
        os.closerange(0, 65536)
        cuda.allocate(2 << 20)
        """, env={"GPUMEMTRACE_OUTPUT": "it.%p"}, cwd=folder)
    deadline = time.monotonic() + 60
    while not list(folder.glob("it.*.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    (recording,) = folder.glob("it.*.gmt")
    report = gmt.rendered(recording)
    assert report["leaks"]["live_bytes"] == 7 * MIB
    assert report["process"]["end"] == "exited" and report["process"]["complete"]


PYTHON_ENDS = {
    "sys.exit(7)": (7, "exited"), "os._exit(7)": (7, "exited"), "os.abort()": (-signal.SIGABRT, "killed"),
    "raise ValueError": (1, "exited"), "os.kill(os.getpid(), 9)": (-9, "killed"),
    "os.execv('/bin/true', ['true'])": (0, "exited"), "os.execvp('true', ['true'])": (0, "exited"),
    "os.execlpe('true', 'true', {})": (0, "exited"), "os.execve(os.open('/bin/true', os.O_RDONLY), ['true'], {})":
    (0, "exited"), "os.kill(os.getpid(), 15)": (-15, "killed"), "os.kill(os.getpid(), 2)": (-2, "killed"),
    "threading.Thread(target=os._exit, args=(7,)).start(); time.sleep(60)": (7, "exited"),
    "ctypes.string_at(0)": (-signal.SIGSEGV, "killed"),
    "faulthandler.enable(); ctypes.string_at(0)": (-signal.SIGSEGV, "killed"),
}


@pytest.mark.parametrize("end", PYTHON_ENDS)
def test_python_program_ends(gmt, end):
    status, said = PYTHON_ENDS[end]
    if SANITIZE and "string_at" in end or SANITIZE and "abort" in end:
        pytest.skip("the sanitizer handles it")
    done = gmt.python(f"""
        import ctypes, faulthandler, os, resource, sys, threading, time
        import cuda
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        cuda.init()
        kept = [cuda.allocate(1 << 20) for _ in range(3)]
        cuda.release(kept.pop())
        print("worked", flush=True)
        {end}
        """, status=status)
    assert done.out == "worked\n"
    for report in ([done.report] if said == "exited" else []) + [gmt.rendered(done.recording)]:
        assert report["process"]["end"] == said
        assert report["counters"]["allocs"] == 3 and report["counters"]["frees"] == 1
        assert report["leaks"]["live_bytes"] == 2 * MIB
