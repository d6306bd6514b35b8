"""Python frames, for every CPython on this machine: what the capture code reads is what traceback says.

The capture code is built into a library of its own, the probe, which the programs call by ctypes.
"""
import json
import os
import pathlib
import subprocess

import pytest

from conftest import PROGRAMS, ROOT, SANITIZE

SOURCES = [*sorted((ROOT / "src" / "capture").glob("*.c")), ROOT / "src" / "base" / "arena.c"]
FLAGS = ["-std=gnu11", f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}", "-fPIC", "-shared", "-fvisibility=hidden",
         "-ftls-model=initial-exec"]
SHUTDOWNS = 30  # of each Python


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


@pytest.mark.skipif(SANITIZE == "thread", reason="Python frees what its daemon threads may still be reading")
@pytest.mark.xfail(reason="on a busy machine a daemon thread that allocates while Python ends can still crash it")
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
    for _ in range(SHUTDOWNS):
        done = gmt.run(interpreter, script, status=None)
        assert done.status == 0, done.err
        assert done.report["counters"]["allocs"] >= 3


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
    done = gmt.run(compiled("python_host.c", "-ldl"), library, probe,
                   "def inner(): pass\ndef outer(): inner()\nouter()", traced=False, env={"PYTHONHOME": prefix})
    assert walks(done) == {"before": 0, "loaded": 0, "initialised": 0, "inside": 3, "after": 0, "mapped": 0,
                           "unloaded": 0}


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
