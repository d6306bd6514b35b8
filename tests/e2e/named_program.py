"""A small program whose two frames have names, and what a report says of them: for the tests of names, test_names_*.py."""
import json
import re
import resource
import shutil
import subprocess
import time

import pytest
from conftest import PROGRAMS, SANITIZE, SIMGPU

PROGRAM = r"""
#include <stddef.h>
extern int cuInit(unsigned);
extern int cuDevicePrimaryCtxRetain(void **, int);
extern int cuCtxSetCurrent(void *);
extern int cuMemAlloc_v2(unsigned long long *, size_t);

__attribute__((noinline)) static int take_one(size_t bytes)
{
    unsigned long long address;
    int result = cuMemAlloc_v2(&address, bytes); // take_one
    __asm__ volatile("" ::: "memory");
    return result;
}

int main(void)
{
    void *context;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 1;
    int result = take_one(1000); // main
    __asm__ volatile("" ::: "memory");
    return result;
}
"""
LINE = {mark: number for number, line in enumerate(PROGRAM.splitlines(), 1) for mark in re.findall(r"// (\w+)$", line)}
WHOLE = [("take_one", "box.c", LINE["take_one"]), ("main", "box.c", LINE["main"])]
NAMELESS = [(None, None, None)] * 2

needs_objcopy = pytest.mark.skipif(not shutil.which("objcopy"), reason="objcopy is not here")

# C++ under Python: attention.cc, called by train.py.
MIXED = PROGRAMS / "mixed"
GROW = "fused::Workspace<float>::grow(unsigned long)"


@pytest.fixture
def box(gmt, compiled):
    """box(*flags): the program above as BOX/bin/box, in a folder of this test; recorded, and so gone elsewhere."""
    def build(*flags):
        source = gmt.folder / "box.c"
        source.write_text(PROGRAM)
        path = gmt.folder / "box" / "bin" / "box"
        path.parent.mkdir(parents=True, exist_ok=True)
        return shutil.copy2(compiled(source, "-Wl,--build-id", *flags, SIMGPU / "libcuda.so.1"), path)
    return build


def record(gmt, path):
    return gmt.run(path, env={"ASAN_OPTIONS": "detect_leaks=0"}).recording


def render(gmt, recording, *arguments, **options):
    return json.loads(gmt.tool("report", "--json", *arguments, recording, **options).stdout)


def places(report):
    """(function, file, line) of the two frames of the program, innermost first."""
    (site,) = report["sites"]
    return [(frame["function"], frame["file"] and frame["file"].rsplit("/", 1)[-1], frame["line"])
            for frame in site["frames"] if frame["module"] and frame["module"].endswith("/bin/box")][:2]


def whys(report):
    (site,) = report["sites"]
    return {frame.get("why") for frame in site["frames"] if frame["module"].endswith("/bin/box")}


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", notes)[1]


def split_debug(path, debug):
    debug.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", path, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", path], check=True)


def quickly(function, *arguments, **options):
    """In little processor time of the programs that it starts, and without waiting for anything, however busy the machine is."""
    start, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    result = function(*arguments, **options)
    end, waited = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    assert end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime < (10 if not SANITIZE else 60)
    assert waited < 60
    return result
