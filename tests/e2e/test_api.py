"""The public interface: gpumemtrace.h in C and C++, traced and not, and the Python module over it."""
import os
import re
import subprocess

import pytest
from conftest import CC, LIBRARY, PROGRAMS, ROOT, SANITIZE

MIB = 1 << 20
HEADER = ROOT / "include" / "gpumemtrace.h"
FUNCTIONS = set(re.findall(r"^GPUMEMTRACE_FUNCTION_ \w+ (gpumemtrace_\w+)\(", HEADER.read_text(), re.M))

LANGUAGES = [("c", "c99"), ("c", "c11"), ("c++", "c++11"), ("c++", "c++17")]


def build(folder, language, standard):
    compiler = CC if language == "c" else os.environ.get("CXX") or "c++"
    sanitize = {"address": ["-fsanitize=address,undefined"], "thread": ["-fsanitize=thread"]}.get(SANITIZE, [])
    program = folder / "api"
    subprocess.run([*compiler.split(), "-x", language, f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Wshadow",
                    "-Werror", *sanitize, f"-I{ROOT / 'include'}", PROGRAMS / "api.c", "-o", program, "-ldl", "-lpthread"],
                   check=True)
    return program


def answers(text):
    return {words[0]: tuple(map(int, words[1:])) for words in map(str.split, text.splitlines()) if words[0] != "errno"}


@pytest.mark.parametrize("language, standard", LANGUAGES)
def test_without_the_library_nothing_happens(gmt, tmp_path, language, standard):
    done = gmt.run(build(tmp_path, language, standard), traced=False)
    assert done.out.splitlines()[-1] == "errno 123, dlerror none"
    assert set(answers(done.out).values()) == {(0,), (0, 0, 0, 0, 0)}


@pytest.mark.parametrize("language, standard", LANGUAGES[::3])
def test_figures_are_those_of_the_calls(gmt, tmp_path, language, standard):
    done = gmt.run(build(tmp_path, language, standard))
    assert done.out.splitlines()[-1] == "errno 123, dlerror none"
    found = answers(done.out)
    nothing = (0, 0, 0, 0, 0)
    assert found["active"] == (1,)
    assert found["driver"] == (1, 64 * MIB, 1, 64 * MIB, 96 * MIB)
    assert found["framework"] == found["all"] == (1, 10 * MIB, 1, 0, 35 * MIB)
    assert found["early"] == found["run"] == (1, 64 * MIB, 1, 0, 96 * MIB)
    assert found["elsewhere"] == (1, 0, 0, 0, 0)
    assert found["before"] == found["unmarked"] == found["layer"] == found["device"] == nothing


def test_blocks_are_sites_of_their_allocator_inside_the_drivers(gmt, tmp_path):
    done = gmt.run(build(tmp_path, *LANGUAGES[0]))
    for report in (done.report, gmt.rendered(done.recording)):
        by_allocator = {}
        for site in report["sites"]:
            if site["layer"] == "framework":
                assert (site["family"], site["space"], site["device"]) == ("allocator", "device", 0)
                figures = by_allocator.setdefault(site["api"], [0, 0, 0])
                for i, name in enumerate(["allocs", "frees", "live_bytes"]):
                    figures[i] += site[name]
        assert by_allocator == {"rmm": [3, 2, 10 * MIB], "cupy": [1, 1, 0]}
        assert report["leaks"]["live_bytes"] == 64 * MIB
        assert report["counters"]["foreign_frees"] == 0


def test_every_function_of_the_header_is_exported_and_none_besides():
    done = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True)
    shown = {line.split()[-1] for line in done.stdout.splitlines()}
    ours = {name for name in shown if name.startswith("gpumemtrace_")}
    assert ours - {"gpumemtrace_preloaded"} == FUNCTIONS  # that one is for the library itself
    assert len(FUNCTIONS) == 9


ALLOCATORS = """
import gpumemtrace as g
MIB = 1 << 20
for i in range(9):
    for block in range(3):
        g.block_begin(f"pool {i}".encode(), 0x10000000 + (i > 5) * i * 4096 + block, MIB << i, -1)
for i in range(9):
    g.block_end(f"pool {i}".encode(), 0x10000000 + (i > 5) * i * 4096)
print(g.usage(g.FRAMEWORK, None).live_blocks)
"""


def python(gmt, source, **options):
    return gmt.python(source, env={"PYTHONPATH": f"{ROOT / 'python'}:{PROGRAMS}", "GPUMEMTRACE_QUIET": "1",
                                   **options.pop("env", {})}, **options)


def test_six_allocators_may_have_blocks_at_equal_addresses(gmt):
    done = python(gmt, ALLOCATORS)
    assert done.out == "18\n"
    assert {site["api"]: (site["allocs"], site["frees"], site["live_bytes"]) for site in done.report["sites"]} == \
        {f"pool {i}": (3, 1, 2 * MIB << i) for i in range(9)}


MEASURED = """
import asyncio
import cuda
import gpumemtrace as g
MIB = 1 << 20
kept = []

@g.measure
def work():
    "doc"
    kept.append(cuda.allocate(4 * MIB))
    cuda.release(cuda.allocate(10 * MIB))
    with g.measure("inner") as inner:
        cuda.release(cuda.allocate(3 * MIB))
    return inner

@g.measure("tensors", each=print)
def tensors(address):
    g.block_begin(b"pool", address, 2 * MIB, 0)
    g.block_begin(b"pool", address + 2 * MIB, MIB, 0)
    g.block_end(b"pool", address)

@g.measure()
async def later():
    await asyncio.sleep(0)
    kept.append(cuda.allocate(6 * MIB))

@g.measure
def fails():
    cuda.allocate(5 * MIB)
    raise KeyError("as it does")

@g.phase("a phase")
def in_phase():
    g.step()

def main():
    work()
    print("first", *work.memory.driver)
    cuda.init()
    inner = work()
    print(work.__name__, work.__doc__, *work.memory.driver, work.memory.peak_bytes, work.memory.net_bytes)
    print("inner", *inner.driver)
    tensors(kept[0])
    print("tensors", *tensors.memory.driver, *tensors.memory.framework, tensors.memory.peak_bytes, tensors.memory.net_bytes)
    asyncio.run(later())
    print("later", *later.memory.driver)
    try:
        fails()
    except KeyError:
        print("fails", *fails.memory.driver)
    in_phase()
    with g.measure() as memory:
        kept.append(cuda.allocate(7 * MIB))
        print("so far", *memory.driver)
        cuda.release(kept.pop())
        cuda.release(kept.pop())
    print("at last", *memory.driver)
    print("usage", *g.usage(), *g.usage(g.FRAMEWORK), *g.usage(device=None), *g.usage(device=3))
    print("active", g.active())

cuda.init()
main()
"""


def test_a_function_is_told_its_peak_and_what_it_left(gmt):
    done = python(gmt, MEASURED)
    lines = [line.split() for line in done.out.splitlines()]
    told = {words[0]: words[1:] for words in lines if words[0] not in ("so", "at", "tensors:")}
    mib = [[str(int(word) // MIB) if word.isdigit() and int(word) >= MIB else word for word in words] for words in lines]
    assert mib == [
        ["first", "14", "4", "0"],
        ["work", "doc", "14", "4", "4", "14", "4"],
        ["inner", "3", "0", "8"],
        ["tensors:", "peak", "3.0", "MiB,", "net", "1.0", "MiB"],
        ["tensors", "0", "0", "8", "3", "1", "0", "3", "1"],
        ["later", "6", "6", "8"],
        ["fails", "5", "5", "14"],
        ["so", "far", "7", "7", "19"],
        ["at", "last", "7", str(-6 * MIB), "19"],
        ["usage", "13", "3", "26", "1", "1", "3", "13", "3", "0", "0", "0", "0"],
        ["active", "True"]], told


def test_untraced_python_gets_zeros_and_the_same_behaviour(gmt):
    traced, untraced = python(gmt, MEASURED), python(gmt, MEASURED, traced=False)
    assert re.sub(r"-?\d[\d.]*", "0", untraced.out).replace("B", "MiB") == \
        re.sub(r"-?\d[\d.]*", "0", traced.out).replace("True", "False").replace("B", "MiB").replace("MiMiB", "MiB")
    assert not set("123456789") & set(untraced.out)


def test_module_works_in_every_python(gmt, interpreter):
    done = python(gmt, MEASURED, interpreter=interpreter)
    assert "first 14680064 4194304 0" in done.out


def test_a_child_starts_from_zero(gmt):
    done = python(gmt, """
import os
import cuda
import gpumemtrace as g
cuda.init()
cuda.allocate(1 << 20)
with g.measure() as memory:
    child = os.fork()
    if child == 0:
        print(*memory.driver, *g.usage(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
print(*memory.driver)
""")
    assert done.out == "0 0 0 0 0 0\n0 0 1048576\n"


def test_allocations_under_the_decorator_keep_their_own_lines(gmt):
    done = python(gmt, """
import cuda
import gpumemtrace as g
cuda.init()

@g.measure
def outer():
    g.block_begin(b"pool", cuda.allocate(1 << 20), 1 << 20, 0)

outer()
""")
    for site in done.report["sites"]:
        assert [frame["function"].split(".")[-1] for frame in site["frames"] if frame["kind"] == "python"] == \
            ["outer", "wrapper", "<module>"]
        assert site["title"].startswith("program.py:8 in ")
