"""The library next to other preloaded tools: its books stay exact, and the others see what they see without it."""
import itertools
import os
import subprocess

import pytest
from conftest import CC, LIBRARY, PRELOAD, SANITIZE, SIMGPU

QUIET = {"GPUMEMTRACE_QUIET": "1"}
TURNS = 100
WAYS = {
    "linked driver": ["-DVIA_DRIVER", SIMGPU / "libcuda.so.1"],
    "dlsym": ["-DVIA_DLSYM"],
    "cuGetProcAddress": ["-DVIA_PROC_ADDRESS"],
    "shared runtime": ["-DVIA_RUNTIME", SIMGPU / "libcudart.so.12"],
    "static runtime": ["-DVIA_RUNTIME", SIMGPU / "libcudart_static.a"],
}
TOOLS = {"by symbol": [], "by dlsym": ["-DHOOKS_DLSYM"]}


def expect_exact(report, threads=2):
    """As books.c does it."""
    kept = len(range(0, TURNS, 10))
    counters = report["counters"]
    assert (counters["allocs"], counters["frees"]) == (threads * (TURNS + kept), threads * TURNS)
    assert counters["failed_allocs"] == counters["foreign_frees"] == counters["dropped_events"] == 0
    assert counters.get("replaced_blocks", 0) == 0
    assert report["leaks"]["live_blocks"] == threads * kept


def preloaded(*libraries):
    sanitizer = PRELOAD.rpartition(":")[0]
    return ":".join(filter(None, [sanitizer, *map(str, libraries)]))


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("tool, way", itertools.product(TOOLS, WAYS))
def test_another_tool_sees_what_it_sees_without_us(gmt, compiled, tool, way, order):
    # Its dlsym is called by a sanitizer's runtime that cannot serve instrumented code yet.
    other = compiled("hooks_tool.c", "-shared", "-fPIC", *TOOLS[tool], "-ldl", "-fno-sanitize=thread")
    program = compiled("books.c", "-rdynamic", *WAYS[way], "-ldl", "-lpthread")
    plain = gmt.run(program, 2, TURNS, traced=False, env={"LD_PRELOAD": preloaded(other)})
    both = [other, LIBRARY] if order == "before" else [LIBRARY, other]
    traced = gmt.run(program, 2, TURNS, env={**QUIET, "LD_PRELOAD": preloaded(*both)})
    assert traced.out == plain.out
    expect_exact(traced.report)


def counts(report):
    counters = report["counters"]
    return counters["allocs"], counters["frees"], counters["failed_allocs"], counters["foreign_frees"]


def lives(gmt, compiled, *arguments, env=None):
    """Runs a life of hooks_lives.c without and with the library; the program must not tell the difference."""
    program = compiled("hooks_lives.c", "-ldl", "-lpthread")
    plain = gmt.run(program, *arguments, traced=False, env=env)
    traced = gmt.run(program, *arguments, env={**QUIET, **(env or {})})
    assert (traced.out, traced.err) == (plain.out, plain.err)
    return traced


@pytest.fixture
def plugin(compiled):
    return compiled("hooks_plugin.c", "-shared", "-fPIC", SIMGPU / "libcuda.so.1")


def test_a_library_that_brings_the_driver_is_seen(gmt, compiled, plugin):
    done = lives(gmt, compiled, "plugin", plugin)
    assert counts(done.report) == (3, 2, 0, 0)
    assert "the driver: found\na runtime: nothing\n" in done.out


@pytest.mark.skipif(SANITIZE != "", reason="sanitizers' runtimes do not allow RTLD_DEEPBIND and namespaces")
@pytest.mark.parametrize("mode", ["deepbind", "namespace"])
def test_what_is_bound_past_us_runs_undisturbed(gmt, compiled, plugin, mode):
    """Such a library's references never come to a preloaded one."""
    lives(gmt, compiled, mode, plugin)


def test_a_driver_may_be_unloaded_and_loaded_again(gmt, compiled, plugin):
    assert counts(lives(gmt, compiled, "reload", plugin).report)[:2] == (9, 6)


def test_constructors_destructors_and_exit_handlers_may_allocate(gmt, compiled):
    report = lives(gmt, compiled, "early").report
    assert counts(report) == (4, 3, 0, 0)
    assert report["leaks"]["live_blocks"] == 1


def test_parent_and_child_of_an_early_fork_both_have_their_books(gmt, compiled):
    done = lives(gmt, compiled, "fork-before")
    assert sorted(counts(report) for report in done.reports) == [(4, 3, 0, 0), (5, 3, 0, 0)]


def test_a_late_fork_leaves_the_parents_books_alone(gmt, compiled):
    done = lives(gmt, compiled, "fork-after")
    assert (3, 2, 0, 0) in [counts(report) for report in done.reports]


def test_a_thread_without_a_context_gets_the_drivers_error(gmt, compiled):
    done = lives(gmt, compiled, "bare-thread")
    assert "without a context: 201\naddress 77\n" in done.out
    assert counts(done.report) == (2, 1, 1, 0)


@pytest.mark.skipif(SANITIZE != "", reason="a sanitizer brings its own allocator")
@pytest.mark.parametrize("allocator", ["libjemalloc.so.2", "libtcmalloc.so.4", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"])
@pytest.mark.parametrize("order", ["before", "after"])
def test_works_with_another_allocator_preloaded(gmt, compiled, allocator, order):
    tried = subprocess.run(["true"], env={**os.environ, "LD_PRELOAD": allocator}, capture_output=True, text=True)
    if "cannot be preloaded" in tried.stderr:
        pytest.skip(f"no {allocator} here")
    program = compiled("books.c", "-rdynamic", *WAYS["dlsym"], "-ldl", "-lpthread")
    both = [allocator, LIBRARY] if order == "before" else [LIBRARY, allocator]
    expect_exact(gmt.run(program, 2, TURNS, env={**QUIET, "LD_PRELOAD": ":".join(map(str, both))}).report)


@pytest.mark.skipif(SANITIZE != "", reason="is about a program that is sanitized and a library that is not")
def test_works_with_a_program_built_with_a_sanitizer(gmt, compiled):
    program = compiled("books.c", "-fsanitize=address", "-rdynamic", *WAYS["dlsym"], "-ldl", "-lpthread")
    runtime = subprocess.run([CC, "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    done = gmt.run(program, 2, TURNS, env={**QUIET, "LD_PRELOAD": f"{runtime}:{LIBRARY}"})
    expect_exact(done.report)


@pytest.mark.parametrize("way", WAYS)
def test_a_driver_that_finds_its_own_functions_through_us_counts_once(gmt, compiled, way):
    program = compiled("books.c", "-rdynamic", *WAYS[way], "-ldl", "-lpthread")
    search = f"{SIMGPU / 'got'}:{SIMGPU}"
    expect_exact(gmt.run(program, 2, TURNS, env={**QUIET, "LD_LIBRARY_PATH": search}).report)


@pytest.mark.parametrize("way", WAYS)
def test_two_copies_of_the_library_count_once(gmt, compiled, tmp_path, way):
    """Two installations, both in LD_PRELOAD: the first acts, and nothing is there twice."""
    copy = tmp_path / "copy.so"
    copy.write_bytes(LIBRARY.read_bytes())
    program = compiled("books.c", "-rdynamic", *WAYS[way], "-ldl", "-lpthread")
    done = gmt.run(program, 2, TURNS, env={**QUIET, "LD_PRELOAD": preloaded(LIBRARY, copy)})
    expect_exact(done.report)
    expect_exact(gmt.rendered(done.recording))


@pytest.mark.parametrize("way", ["driver", "runtime"])
def test_a_call_that_the_program_jumps_out_of_hides_no_later_one(gmt, compiled, tmp_path, way):
    """Nor does a call from a signal handler in the middle of another, and calls of the driver's own count once as ever."""
    for flag, name in [("DRIVER", "libcuda.so.1"), ("RUNTIME", "libcudart.so.12")]:
        library = compiled("hooks_jumps.c", f"-D{flag}", "-shared", "-fPIC", f"-Wl,-soname,{name}")
        (tmp_path / name).symlink_to(library)
    program = compiled("hooks_jumps.c", tmp_path / "libcuda.so.1", tmp_path / "libcudart.so.12")
    env = {**QUIET, "LD_LIBRARY_PATH": tmp_path}
    plain = gmt.run(program, way, traced=False, env=env)
    done = gmt.run(program, way, env=env)
    assert done.out == plain.out
    blocks, total = map(int, done.out.split())
    report = done.report
    assert (report["counters"]["allocs"], report["leaks"]["live_bytes"]) == (blocks, total)
    assert report["counters"]["dropped_events"] == 0


@pytest.mark.parametrize("where, users, measured", [("driver", 0, (2, 200 << 20, "process")), ("nvml", 1, (2, 100 << 20, "part"))])
def test_a_call_that_the_program_jumps_out_of_hides_no_later_figure(gmt, compiled, tmp_path, where, users, measured):
    """Its window ends, and NVML is given back; NVML is not asked any more where the jump was out of that, and then the
    first context's size is not known."""
    driver = compiled("jumps_measured.c", "-DDRIVER", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")
    (tmp_path / "libcuda.so.1").symlink_to(driver)
    nvml = compiled("jumps_measured.c", "-DNVML", "-shared", "-fPIC", driver, "-lpthread")
    (tmp_path / "libnvidia-ml.so.1").symlink_to(nvml)
    program = compiled("jumps_measured.c", driver, "-lpthread")
    done = gmt.run(program, where, env={**QUIET, "LD_LIBRARY_PATH": tmp_path}, timeout=60)
    assert done.out.splitlines() == ["can be cancelled", f"nvml has {users} users"]
    (row,) = done.report["memory_map"]
    assert (row["contexts"], row["context_bytes"], row["context_basis"]) == measured


@pytest.mark.thread_sanitizer_cannot("see a lock left behind")
def test_a_jump_out_of_our_own_work_ends_the_recording_and_stops_nobody(gmt, compiled, tmp_path):
    """Its lock is given back: another thread's call goes through, and the thread can be cancelled again."""
    driver = compiled("jumps_measured.c", "-DDRIVER", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")
    (tmp_path / "libcuda.so.1").symlink_to(driver)
    program = compiled("jumps_measured.c", driver, "-lpthread", "-rdynamic")
    done = gmt.run(program, "open", env={**QUIET, "LD_LIBRARY_PATH": tmp_path, "GPUMEMTRACE_NVML": "0"}, timeout=60)
    assert done.out == "can be cancelled\n"
    assert done.err.count("jumped out of the middle of our own work") == 1 and done.recordings == []


@pytest.mark.parametrize("story, teardowns", [("reuse", 1), ("green", 3)])
def test_the_last_release_of_a_primary_context_ends_what_was_in_it_then(gmt, compiled, tmp_path, story, teardowns):
    """Neither what another thread has in it anew by the time the call returns, nor anything before it is the last."""
    library = compiled("hooks_last_release.c", "-DDRIVER", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-lpthread")
    (tmp_path / "libcuda.so.1").symlink_to(library)
    program = compiled("hooks_last_release.c", tmp_path / "libcuda.so.1", "-lpthread")
    done = gmt.run(program, story, env={**QUIET, "LD_LIBRARY_PATH": tmp_path})
    report = done.report
    assert (report["leaks"]["live_blocks"], report["leaks"]["live_bytes"]) == (1, 4000)
    # Of an address that is in use again before its context is known to have ended, the end is that.
    assert report["counters"]["teardown_frees"] == teardowns
    if story == "reuse":
        assert done.out == "the same address\n" and report["counters"]["frees"] == 1


def test_what_runs_before_our_constructor_is_recorded(gmt, compiled):
    library = compiled("early.c", "-DEARLY_LIBRARY", "-shared", "-fPIC", SIMGPU / "libcuda.so.1", "-lpthread")
    program = compiled("early.c", library, SIMGPU / "libcuda.so.1", "-lpthread")
    done = gmt.run(program, env={**QUIET, "GPUMEMTRACE_STACKS": "native"})
    assert done.out == "0\n"
    assert sorted(site["live_bytes"] for site in done.report["sites"]) == [30, 200, 1000]
    assert all(site["frames"] for site in done.report["sites"])
    assert gmt.rendered(done.recording)["leaks"]["live_bytes"] == 1230
    assert gmt.run(program, env={"GPUMEMTRACE_DISABLE": "1"}).recordings == []
