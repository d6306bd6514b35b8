"""Phases of the program: NVTX ranges without a profiler, the older library, and the calls of gpumemtrace.h."""
import json
import os
import pathlib
import subprocess

import pytest
from conftest import CC, LIBRARY, ROOT, SIMGPU

MIB = 1 << 20
HEADERS = next((folder for folder in sorted(pathlib.Path("/usr/local").glob("cuda*/include"), reverse=True)
                if (folder / "nvtx3" / "nvToolsExt.h").exists()), None)


def phases(report):
    return {row["name"]: row for row in report["phases"]}


def figures(row):
    return row["count"], row["peak_bytes"] // MIB, row["net_bytes"] // MIB


@pytest.fixture(params=["header", "by hand"])
def nvtx_program(request, compiled):
    if request.param == "by hand":
        return compiled("nvtx_ranges.c", SIMGPU / "libcuda.so.1", "-lpthread", "-ldl")
    if HEADERS is None:
        pytest.skip("no NVTX headers here")
    return compiled("nvtx_ranges.c", f"-I{HEADERS}", "-DWITH_HEADER", SIMGPU / "libcuda.so.1", "-lpthread", "-ldl")


def test_nvtx_ranges_are_phases_without_a_profiler(gmt, nvtx_program):
    done = gmt.run(nvtx_program, "served")
    found = phases(done.report)
    assert {name: figures(row) for name, row in found.items()} == {
        "whole": (1, 29, 29), "load": (1, 8, 8), "forward": (3, 14, 3), "mine: exchange": (1, 13, 2),
        "across threads": (1, 29, 16)}
    assert {name: row["parent"] for name, row in found.items()} == {
        "whole": None, "load": "whole", "forward": "whole", "mine: exchange": "whole", "across threads": "whole"}
    (peak,) = done.report["peaks"]
    assert peak["phases"] == ["whole", "across threads"]
    assert "in whole / across threads, held by" in done.text
    assert gmt.rendered(done.recording)["phases"] == done.report["phases"]


def test_a_program_that_is_not_traced_or_has_another_tool_is_left_to_itself(gmt, nvtx_program, tmp_path):
    gmt.run(nvtx_program, "unserved", traced=False)
    tool = tmp_path / "tool.c"
    tool.write_text("#include <stdio.h>\nint InitializeInjectionNvtx2(void *f) { (void)f; puts(\"tool\"); return 1; }\n")
    subprocess.run([CC, "-shared", "-fPIC", tool, "-o", tmp_path / "tool.so"], check=True)
    done = gmt.run(nvtx_program, "unserved", env={"NVTX_INJECTION64_PATH": tmp_path / "tool.so"})
    assert done.out == "tool\n" and done.report["phases"] == []
    gmt.run(nvtx_program, "unserved", env={"GPUMEMTRACE_DISABLE": "1"})


def test_the_variable_names_this_library_and_nothing_else_is_changed(gmt):
    source = "import json, os; print(json.dumps(dict(os.environ)))"
    traced, untraced = (json.loads(gmt.python(source, traced=traced).out) for traced in (True, False))
    ours = traced.pop("NVTX_INJECTION64_PATH")
    assert os.path.samefile(ours, LIBRARY) and os.path.isabs(ours)
    for environment in (traced, untraced):
        for name in ("LD_PRELOAD", "GPUMEMTRACE_OUTPUT"):
            environment.pop(name, None)
    assert traced == untraced


NVTOOLS_USER = """
#include <stdint.h>
#include <wchar.h>
int nvtxRangePushA(const char *);
int nvtxRangePushW(const wchar_t *);
int nvtxRangePop(void);
uint64_t nvtxRangeStartA(const char *);
uint64_t nvtxRangeStartW(const wchar_t *);
uint64_t nvtxRangeStartEx(const void *);
void nvtxRangeEnd(uint64_t);
uint64_t nvtxDomainRangeStartEx(void *, const void *);
void nvtxDomainRangeEnd(void *, uint64_t);
extern int nvtx_calls;
extern uint64_t nvtx_next, nvtx_ended;

static int domain;
static const struct {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
} event = {.version = 2, .size = 48, .message_type = 1, .message = "described"};

int enter(const char *name) { return nvtxRangePushA(name); }
int enter_wide(void) { return nvtxRangePushW(L"wide \u00e9"); }
int leave(void) { return nvtxRangePop(); }
int calls(void) { return nvtx_calls; }
void number_from(uint64_t first) { nvtx_next = first; }
uint64_t last_ended(void) { return nvtx_ended; }
uint64_t start(const char *name) { return nvtxRangeStartA(name); }
uint64_t start_wide(void) { return nvtxRangeStartW(L"wide start"); }
uint64_t start_event(void) { return nvtxRangeStartEx(&event); }
uint64_t start_in_domain(void) { return nvtxDomainRangeStartEx(&domain, &event); }
void end(uint64_t number) { nvtxRangeEnd(number); }
void end_in_domain(uint64_t number) { nvtxDomainRangeEnd(&domain, number); }
"""


@pytest.fixture
def nvtools_user(tmp_path):
    """A library that marks ranges through the older library, in whose place there is one that counts."""
    library = tmp_path / "libnvToolsExt.so.1"
    subprocess.run([CC, "-shared", "-fPIC", ROOT / "tests" / "programs" / "nvtools_library.c",
                    "-Wl,-soname,libnvToolsExt.so.1", "-o", library], check=True)
    (tmp_path / "user.c").write_text(NVTOOLS_USER)
    subprocess.run([CC, "-shared", "-fPIC", tmp_path / "user.c", library, "-Wl,-rpath,$ORIGIN",
                    "-o", tmp_path / "libuser.so"], check=True)
    return tmp_path / "libuser.so"


def test_ranges_of_the_older_library_are_phases_and_reach_it(gmt, nvtools_user):
    done = gmt.python("""
        import ctypes, sys, cuda
        cuda.init()
        user = ctypes.CDLL(sys.argv[1])
        answers = [user.enter(b"attention")]
        cuda.allocate(3 << 20)
        answers += [user.leave(), user.enter_wide()]
        cuda.allocate(1 << 20)
        print(answers + [user.leave(), user.calls()])
    """, nvtools_user)
    assert done.out == "[-2, -2, -2, -2, 4]\n"
    assert {name: figures(row) for name, row in phases(done.report).items()} == \
        {"attention": (1, 3, 3), "wide \u00e9": (1, 4, 1)}


@pytest.mark.parametrize("numbers", [0, 7000])
def test_ranges_that_any_thread_may_end_are_phases_with_and_without_a_profiler(gmt, nvtools_user, numbers):
    """A profiler behind the library gets its own numbers back; without one each range has a number all the same."""
    done = gmt.python("""
        import ctypes, sys, threading, cuda
        cuda.init()
        user, numbers = ctypes.CDLL(sys.argv[1]), int(sys.argv[2])
        for name in ("start", "start_wide", "start_event", "start_in_domain", "last_ended"):
            getattr(user, name).restype = ctypes.c_uint64
        user.number_from(ctypes.c_uint64(numbers))
        ended = []

        def end(function, number):
            thread = threading.Thread(target=function, args=(ctypes.c_uint64(number),))
            thread.start()
            thread.join()
            ended.append(user.last_ended())

        load = user.start(b"load")
        wide = user.start_wide()
        cuda.allocate(1 << 20)
        end(user.end, load)             # not the one that was started last
        cuda.allocate(2 << 20)
        end(user.end, wide)
        described = user.start_event()
        cuda.allocate(4 << 20)
        end(user.end, described)
        inside = user.start_in_domain()
        cuda.allocate(8 << 20)
        end(user.end_in_domain, inside)
        user.end(ctypes.c_uint64(123))  # nobody's
        assert len({load, wide, described, inside, 0}) == 5
        assert ended == ([numbers, numbers + 1, numbers + 2, numbers + 3] if numbers else [0] * 4), ended
        assert user.last_ended() == 123
        print(user.calls())
    """, nvtools_user, numbers)
    assert done.out == "9\n"
    assert {name: (row["open"], *figures(row)) for name, row in phases(done.report).items()} == \
        {"load": (0, 1, 1, 1), "wide start": (0, 1, 3, 3), "described": (0, 2, 15, 12)}
    assert gmt.rendered(done.recording)["phases"] == done.report["phases"]


@pytest.mark.parametrize("name,left_alone", [("libnccl.so.2", True), ("libmine.so", False)])
def test_what_nvidias_libraries_mark_inside_themselves_is_left_alone(gmt, tmp_path, name, left_alone):
    source = (ROOT / "tests" / "programs" / "nvtx_ranges.c").read_text().replace("int main(", "int run(")
    (tmp_path / "ranges.c").write_text(source)
    subprocess.run([CC, "-D_GNU_SOURCE", "-shared", "-fPIC", tmp_path / "ranges.c", "-o", tmp_path / name,
                    SIMGPU / "libcuda.so.1", "-lpthread"], check=True)
    done = gmt.python("""
        import ctypes, sys
        arguments = (ctypes.c_char_p * 2)(b"x", sys.argv[2].encode())
        assert ctypes.CDLL(sys.argv[1]).run(2, arguments) == 0
    """, tmp_path / name, "unserved" if left_alone else "served")
    assert len(done.report["phases"]) == (0 if left_alone else 5)


PYTHON = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'programs'}"}


def test_phases_and_steps_from_python(gmt):
    done = gmt.python("""
        import cuda, gpumemtrace
        with gpumemtrace.phase("import"):
            cuda.init()             # nothing is allocated in it
        kept = []

        @gpumemtrace.phase("train")
        def train(step):
            with gpumemtrace.phase(f"step {step}"):
                kept.append(cuda.allocate(1 << 20))
                cuda.release(cuda.allocate(6 << 20))
            gpumemtrace.step()

        for step in range(200):
            train(step)
    """, env=PYTHON)
    found = phases(done.report)
    assert set(found) == {"train", "step 0", "step 1", "step 2", "step 3", "step #"}
    assert figures(found["train"]) == (200, 206, 200)
    assert figures(found["step #"]) == (196, 206, 196)
    assert figures(found["step 1"]) == (1, 8, 1)
    assert found["step #"]["parent"] == "train"
    kept, scratch = sorted(done.report["sites"], key=lambda site: site["live_bytes"], reverse=True)
    assert {row["site"]: (row["rise_bytes"] // MIB, row["net_bytes"] // MIB) for row in found["train"]["sites"]} == \
        {kept["id"]: (1, 200), scratch["id"]: (6, 0)}
    assert gmt.rendered(done.recording)["phases"] == done.report["phases"]


def test_a_phase_that_a_killed_program_was_in_is_open(gmt):
    done = gmt.python("""
        import cuda, gpumemtrace, os
        cuda.init()
        with gpumemtrace.phase("step"):
            cuda.allocate(2 << 20)
            os.kill(os.getpid(), 9)
    """, env=PYTHON, status=-9)
    (row,) = gmt.rendered(done.recording)["phases"]
    assert (row["name"], row["open"], figures(row)) == ("step", 1, (1, 2, 2))


def test_a_child_is_in_none_of_its_parents_phases(gmt):
    done = gmt.python("""
        import os
        import gpumemtrace
        with gpumemtrace.phase("parent's"):
            if os.fork() == 0:
                import cuda
                cuda.init()
                with gpumemtrace.phase("child's"):
                    cuda.allocate(2 << 20)
                os._exit(0)
            os.wait()
    """, env=PYTHON)
    assert {name: figures(row) for name, row in phases(done.report).items()} == {"child's": (1, 2, 2)}
