"""Python frames, for every CPython on this machine: what the capture code reads is what traceback says.

The capture code is built into a library of its own, the probe, which the programs call by ctypes.
"""
import json
import os
import pathlib
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import PROGRAMS, ROOT, TIMEOUT

SOURCES = [*sorted((ROOT / "src" / "capture").glob("*.c")), *(ROOT / "src" / "base" / name for name in ("arena.c", "hash.c"))]
FLAGS = ["-std=gnu11", f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}", "-fPIC", "-shared", "-fvisibility=hidden",
         "-ftls-model=initial-exec"]
SHUTDOWNS = int(os.environ.get("SHUTDOWNS", 40))  # of each Python
AT_ONCE = 8  # more than there are processors: threads are stopped anywhere


@pytest.fixture(scope="session")
def probe(compiled):
    return compiled("capture_probe.c", *FLAGS, *SOURCES)


def test_every_shape_of_code_reads_as_traceback_sees_it(gmt, interpreter, probe):
    done = gmt.run(interpreter, PROGRAMS / "python_stacks.py", probe, traced=False)
    result = json.loads(done.out)
    assert result["wrong_count"] == 0, result["wrong"]
    assert result["compared"] > 1000


def test_functions_made_and_dropped_in_six_threads_are_never_mistaken(gmt, interpreter, probe):
    done = gmt.run(interpreter, PROGRAMS / "python_churn.py", probe, 2, traced=False)
    result = json.loads(done.out)
    assert result["wrong"] == []
    assert result["walks"] > 100
    assert result["addresses"] < result["functions"] / 10, "addresses were not reused: this shows nothing"
    assert result["hashes"] == result["functions"]


def walks(done):
    """What python_host and the scripts below print: {name: Python frames}."""
    return {name: int(count) for name, count in (line.split() for line in done.out.splitlines())}


def test_depth_keeps_the_innermost_frames(gmt, interpreter, probe):
    done = gmt.python("""
        import ctypes, sys
        probe = ctypes.CDLL(sys.argv[1])
        probe.probe_start(2, 5)
        text = ctypes.create_string_buffer(1 << 16)

        def down(levels):
            return down(levels - 1) if levels else probe.probe_walk(text, len(text))

        print(down(20), [line.split("\\t")[3] for line in text.value.decode().splitlines()])
        """, probe, interpreter=interpreter, traced=False)
    assert done.out.split(maxsplit=1) == ["5", "['8', '8', '8', '8', '8']\n"]


@pytest.mark.parametrize("mode, kinds", [(0, set()), (1, {"native"}), (2, {"python"}), (3, {"native", "python"})])
def test_mode_chooses_the_halves(gmt, interpreter, probe, mode, kinds):
    done = gmt.python("""
        import ctypes, sys
        probe = ctypes.CDLL(sys.argv[1])
        probe.probe_start(int(sys.argv[2]), 64)
        text = ctypes.create_string_buffer(1 << 16)
        probe.probe_walk(text, len(text))
        print(*{line.split("\\t")[0] for line in text.value.decode().splitlines()})
        """, probe, mode, interpreter=interpreter, traced=False)
    assert set(done.out.split()) == kinds


def test_native_half_ends_where_the_interpreter_begins(gmt, interpreter, probe):
    done = gmt.python("""
        import ctypes, sys
        probe = ctypes.CDLL(sys.argv[1])
        probe.probe_start(3, 64)
        text = ctypes.create_string_buffer(1 << 16)

        def down(levels):
            return down(levels - 1) if levels else probe.probe_walk(text, len(text))

        for levels in (0, 30, 3, 0):
            down(levels)
            print(*[line.split("\\t")[1] for line in text.value.decode().splitlines() if line[0] == "n"])
        """, probe, interpreter=interpreter, traced=False)
    for line in done.out.splitlines():
        modules = [path.rpartition("/")[2] for path in line.split()]
        assert modules and all(name.startswith(("libffi", "_ctypes")) for name in modules), modules


def test_thread_that_python_does_not_know_has_no_python_frames(gmt, interpreter, probe):
    done = gmt.python("""
        import ctypes, sys
        probe = ctypes.CDLL(sys.argv[1])
        probe.probe_start(3, 64)
        text = ctypes.create_string_buffer(1 << 16)
        print(probe.probe_walk(text, len(text)), probe.probe_walk_in_thread(text, len(text)))
        assert b"native" in text.value
        """, probe, interpreter=interpreter, traced=False)
    assert done.out.split() == ["1", "0"]


def test_capture_goes_on_while_python_shuts_down(gmt, interpreter, probe):
    script = gmt.folder / "daemons.py"
    script.write_text("""
import ctypes, sys, threading
probe = ctypes.CDLL(sys.argv[1])
probe.probe_start(3, 64)
def work(ready):
    probe.probe_capture_for(1)
    ready.set()
    while True:
        probe.probe_capture_for(7)
for _ in range(3):
    ready = threading.Event()
    threading.Thread(target=work, args=(ready,), daemon=True).start()
    assert ready.wait(20)
""")
    for _ in range(SHUTDOWNS // 2):
        done = gmt.run(interpreter, "-S", script, probe, traced=False, status=None)
        # A daemon thread that finds the interpreter gone is Python's business; a signal would be ours.
        assert done.status == 0, done.err


def run_many(gmt, times, *command):
    """Some at once, on a machine that is then busy. What they said that did not end well, and their reports."""
    def run(number):
        # Nobody joins a daemon thread.
        env = gmt.environment(gmt.folder / f"many.{number}", TSAN_OPTIONS="report_thread_leaks=0")
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIMEOUT)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(run, range(times)))
    return ([f"{one.returncode} {one.stderr}" for one in done if one.returncode != 0],
            [json.loads(path.read_text()) for path in gmt.folder.glob("many.*.json")])


def test_daemon_threads_allocate_while_python_shuts_down(gmt, interpreter):
    script = gmt.folder / "daemons.py"
    script.write_text("""
import threading
import cuda
cuda.init()
def work(ready):
    cuda.use(0)
    cuda.release(cuda.allocate(4096))
    ready.set()
    while True:
        cuda.release(cuda.allocate(4096))
for _ in range(3):
    ready = threading.Event()
    threading.Thread(target=work, args=(ready,), daemon=True).start()
    assert ready.wait(20)
""")
    failed, reports = run_many(gmt, SHUTDOWNS, interpreter, script)
    assert failed == []
    assert len(reports) == SHUTDOWNS and all(report["counters"]["allocs"] >= 3 for report in reports)


def test_daemon_threads_are_busy_while_the_process_goes_on_without_python(gmt, interpreter):
    """They wait for Python's lock, which CPython 3.10 lets them do in memory that it has freed."""
    script = gmt.folder / "busy.py"
    script.write_text("""
import ctypes, threading
import cuda
cuda.init()
kept = cuda.allocate(4096)
libc = ctypes.CDLL(None)
libc.__cxa_atexit(libc.usleep, ctypes.c_void_p(40000), None)
def work(ready):
    ready.set()
    while True:
        pass
for _ in range(3):
    ready = threading.Event()
    threading.Thread(target=work, args=(ready,), daemon=True).start()
    assert ready.wait(20)
""")
    failed, reports = run_many(gmt, SHUTDOWNS // 4, interpreter, script)
    assert failed == []
    assert len(reports) == SHUTDOWNS // 4


def python_frames(report):
    """Of each site, by its name: how many of its frames are Python's."""
    return [sum(frame["kind"] == "python" for frame in site["frames"]) for site in report["sites"]]


def test_program_that_calls_or_drops_its_exit_functions_keeps_its_stacks(gmt, interpreter):
    """Also of other threads; and of ours there is never more than one."""
    done = gmt.python("""
        import atexit, threading
        import cuda
        cuda.init()
        kept = []

        def work(bytes):
            cuda.use(0)
            kept.append(cuda.allocate(bytes))

        def allocate(bytes):
            thread = threading.Thread(target=work, args=(bytes,))
            thread.start()
            thread.join()
            for _ in range(1000):  # until Python's main thread has seen to what is pending
                pass

        before = atexit._ncallbacks()
        allocate(1024)
        print(atexit._ncallbacks() - before)
        allocate(2048)
        print(atexit._ncallbacks() - before)
        for drop in (atexit._clear, atexit._run_exitfuncs):
            drop()
            allocate(4096)
            print(atexit._ncallbacks())
            allocate(8192)
            print(atexit._ncallbacks())
        atexit.register(print, "at exit")
        """, interpreter=interpreter)
    assert done.out.split("\n") == ["1", "1", "1", "1", "1", "1", "at exit", ""]
    assert done.report["leaks"]["live_blocks"] == 6
    assert all(count >= 3 for count in python_frames(done.report)), python_frames(done.report)


@pytest.mark.thread_sanitizer_cannot("follow locks into a child")
def test_forked_child_ends_as_its_parent_does(gmt, interpreter):
    """What CUDA refuses there is recorded with a stack too."""
    done = gmt.python("""
        import os, threading
        import cuda
        cuda.init()
        kept = cuda.allocate(1024)
        child = os.fork()
        def work(ready):
            while True:
                try:
                    cuda.allocate(4096)
                except cuda.CudaError:
                    ready.set()
        if child:
            assert os.waitpid(child, 0)[1] == 0
        else:
            ready = threading.Event()
            threading.Thread(target=work, args=(ready,), daemon=True).start()
            assert ready.wait(20)
        """, interpreter=interpreter)
    assert len(done.reports) == 2


def shared_library(interpreter):
    """The interpreter's libpython*.so, None when it is linked in, and its prefix."""
    done = subprocess.run([interpreter, "-c", "import os, sys, sysconfig as s; print(os.path.join("
                           "s.get_config_var('LIBDIR'), s.get_config_var('INSTSONAME') or ''), sys.prefix)"],
                          capture_output=True, text=True, check=True)
    path, prefix = done.stdout.split()
    return (path, prefix) if ".so" in path and os.path.exists(path) else (None, prefix)


def test_python_that_comes_late_and_goes_again(gmt, interpreter, probe, compiled):
    library, prefix = shared_library(interpreter)
    if not library:
        pytest.skip("this Python has no library of its own")
    done = gmt.run(compiled("python_host.c", "-ldl", "-lpthread"), library, probe,
                   "def inner(): pass\ndef outer(): inner()\nouter()", traced=False, env={"PYTHONHOME": prefix})
    assert walks(done) == {"before": 0, "loaded": 0, "initialised": 0, "inside": 3, "after": 0, "again": 3,
                           "ended": 0, "mapped": 0, "unloaded": 0}


def test_subinterpreter_reads_as_itself(gmt, interpreter, probe):
    """From 3.12; before, the thread's state of the main interpreter is all that can be had without the GIL."""
    version = subprocess.run([interpreter, "-c", "import sys; print(sys.version_info >= (3, 12))"], capture_output=True,
                             text=True, check=True).stdout.strip()
    if version != "True":
        pytest.skip("before 3.12")
    done = gmt.python("""
        import sys
        try:
            import _interpreters
            made = _interpreters.create("legacy")
        except ImportError:
            import _xxsubinterpreters as _interpreters
            made = _interpreters.create(isolated=False)

        def run():
            return _interpreters.run_string(made, '''
        import ctypes
        probe = ctypes.CDLL({probe!r})
        probe.probe_start(2, 64)
        text = ctypes.create_string_buffer(1 << 16)
        def inner():
            probe.probe_walk(text, len(text))
            print(*[line.split(chr(9))[1] for line in text.value.decode().splitlines()], flush=True)
        inner()
        '''.format(probe=sys.argv[1]))

        print(run() or "")
        """, probe, interpreter=interpreter, traced=False)
    assert done.out.splitlines()[0] == "inner <module>"


def test_unsupported_python_is_named_once(gmt, probe):
    old = sorted(pathlib.Path.home().glob(".pyenv/versions/3.[67].*/bin/python3"))
    if not old:
        pytest.skip("no Python older than 3.8 here")
    done = gmt.python("""
        import ctypes, sys
        probe = ctypes.CDLL(sys.argv[1])
        probe.probe_notes.restype = ctypes.c_char_p
        probe.probe_start(3, 64)
        text = ctypes.create_string_buffer(1 << 16)
        print(probe.probe_walk(text, len(text)), probe.probe_walk(text, len(text)))
        print(probe.probe_notes().decode())
        """, probe, interpreter=old[0], traced=False)
    first, *notes = done.out.strip().splitlines()
    assert first == "0 0"
    assert len(notes) == 1 and "is not supported" in notes[0]
