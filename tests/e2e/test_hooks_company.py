"""The library next to other preloaded tools: its books stay exact, and the others see what they see without it."""
import itertools

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
    other = compiled("hooks_tool.c", "-shared", "-fPIC", *TOOLS[tool], "-ldl")
    program = compiled("books.c", "-rdynamic", *WAYS[way], "-ldl", "-lpthread")
    plain = gmt.run(program, 2, TURNS, traced=False, env={"LD_PRELOAD": preloaded(other)})
    both = [other, LIBRARY] if order == "before" else [LIBRARY, other]
    traced = gmt.run(program, 2, TURNS, env={**QUIET, "LD_PRELOAD": preloaded(*both)})
    assert traced.out == plain.out
    expect_exact(traced.report)
