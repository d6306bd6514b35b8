"""What unwinds C++ frames does as it does without the library: in a C++ program, and in C and Python that load C++."""
import shutil

import pytest

from conftest import SIMGPU

COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
LINK = [f"-L{SIMGPU}", "-l:libcuda.so.1", "-lpthread"]


def nest(levels):
    """What deep<levels> prints before its last function is called."""
    return [f"+{'odd' if level % 2 else 'even'}" for level in range(levels, 0, -1)] + ["+last"]


def unnest(levels, unwinding=" unwinding"):
    return [f"-{line[1:]}{unwinding}" for line in reversed(nest(levels))]


EXPECTED = {
    "caught": (nest(5) + unnest(5) + ["caught thrown", "+in handler", "-in handler"]) * 3,
    "rethrown": nest(2) + unnest(2) + ["+first handler", "-first handler unwinding", "again thrown", "outer",
                                       "nested thrown"],
    "from_thread": nest(3) + unnest(3) + ["from thread thrown"],
    "in_threads": ["300"] * 8,
    "thread_exit": nest(3) + unnest(3, "") + ["exited"],
    "thread_cancel": nest(3) + unnest(3, "") + ["cancelled"],
    "busy_cancel": ["+outer", "-outer", "cancelled"],
    "through_generated_code": ["+below generated code", "+above generated code", "-above generated code unwinding",
                               "-below generated code unwinding", "caught through generated code"] * 3,
}
# What ends the process: the status, and what is said last. Whether frames are unwound before is the compiler's choice.
ENDS = {"terminated": (42, ["+in terminate", "terminate with thrown", "-in terminate"]), "uncaught": (-6, [])}


@pytest.fixture(params=COMPILERS)
def cxx(request):
    return request.param


def expect(done, name):
    lines = done.out.splitlines()
    if name in ENDS:
        status, last = ENDS[name]
        assert (done.status, lines[len(lines) - len(last):]) == (status, last), done.err
    else:
        assert (done.status, lines) == (0, EXPECTED[name]), done.err
    return lines


@pytest.mark.parametrize("name", [*EXPECTED, *ENDS])
def test_cxx_program(gmt, compiled, cxx, name):
    program = compiled("exceptions.cc", "-std=c++17", "-DPROGRAM", *LINK, compiler=cxx)
    done = gmt.run(program, name, status=None)
    assert expect(done, name) == expect(gmt.run(program, name, status=None, traced=False), name)
    if name in EXPECTED:
        assert done.report["leaks"]["live_blocks"] == 0
        assert done.report["counters"]["allocs"] > 0


@pytest.mark.parametrize("name", [*EXPECTED, *ENDS])
def test_cxx_loaded_by_a_c_program(gmt, compiled, cxx, name):
    library = compiled("exceptions.cc", "-std=c++17", "-shared", "-fPIC", *LINK, compiler=cxx)
    host = compiled("exceptions_host.c", *LINK, "-ldl")
    expect(gmt.run(host, library, name, status=None), name)


@pytest.mark.parametrize("name", [*EXPECTED, *ENDS])
def test_cxx_loaded_by_python(gmt, compiled, cxx, name):
    library = compiled("exceptions.cc", "-std=c++17", "-shared", "-fPIC", *LINK, compiler=cxx)
    done = gmt.python("""
        import ctypes, sys
        sys.exit(ctypes.CDLL(sys.argv[1]).run(sys.argv[2].encode()))
        """, library, name, status=None)
    expect(done, name)


def test_python_frames_stand_behind_those_of_cxx(gmt, compiled, cxx):
    library = compiled("exceptions.cc", "-std=c++17", "-shared", "-fPIC", *LINK, compiler=cxx)
    done = gmt.python("""
        import ctypes, sys

        def outer():
            return ctypes.CDLL(sys.argv[1]).run(b"caught")

        sys.exit(outer())
        """, library)
    for site in done.report["sites"]:
        kinds = [frame["kind"] for frame in site["frames"]]
        assert kinds == sorted(kinds, key=["native", "python"].index)
        assert [frame["function"] for frame in site["frames"] if frame["kind"] == "python"] == ["outer", "<module>"]
        assert site["frames"][0]["module"].endswith(library.name)
