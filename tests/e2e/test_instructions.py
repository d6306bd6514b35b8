"""How many instructions of the library's own an event takes, as callgrind counts them: no more than it took when the
figures below were taken, and 3%.

They are the compiler's as much as ours, so they are kept by compiler; what libc and Python do meanwhile is not counted.
A change that is worth its instructions has new figures: the test's message says them.
"""
import os
import platform
import re
import shutil
import subprocess
import sys

import pytest
from conftest import LIBRARY, SANITIZE, SIMGPU

# An allocation and a free, from 30 native frames, and from 10 frames of ctypes and 20 of Python.
KNOWN = {
    "GCC 12.2.0 x86_64": {"native": 3656, "mixed": 4669},
}
GROWTH = 1.03
ROUNDS = 2000

pytestmark = [
    pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer adds instructions"),
    pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed"),
    pytest.mark.skipif(os.environ.get("CFLAGS", "-O2 -g") != "-O2 -g", reason="is about -O2"),
]


def compiler():
    """What the library was compiled by, and for."""
    comment = subprocess.run(["readelf", "-p", ".comment", LIBRARY], capture_output=True, text=True, check=True).stdout
    # What libc adds to every program was compiled by GCC, also where the rest was not.
    found = re.search(r"(clang) version ([\d.]+)", comment) or re.search(r"(GCC): \([^)]*\) ([\d.]+)", comment)
    return " ".join([*found.groups(), platform.machine()]) if found else "an unknown compiler"


def own_instructions(profile):
    """The sum of the lines of callgrind's file that are the library's own."""
    names, total, ours, called = {}, 0, False, False
    for line in profile.read_text().splitlines():
        if line.startswith("ob="):
            number, _, name = line[3:].partition(" ")
            ours = names.setdefault(number, name).endswith(LIBRARY.name)
        elif line.startswith("cob="):
            number, _, name = line[4:].partition(" ")
            names.setdefault(number, name)
        elif line.startswith("calls="):
            called = True
        elif line[:1].isdigit() or line[:1] in "+-*":
            if ours and not called:
                total += sum(map(int, line.split()[1:]))  # none where it is 0
            called = False
    return total


def instructions(gmt, *command):
    """Of a round, once all stacks are known. `command`: with the number of rounds last but one."""
    def run(rounds):
        profile = gmt.new_folder() / "profile"
        gmt.run("valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", *command[:-1], rounds, command[-1],
                env={"GPUMEMTRACE_QUIET": "1"})
        return own_instructions(profile)

    return (run(2 * ROUNDS) - run(ROUNDS)) / ROUNDS


def hold(gmt, what, *command):
    known = KNOWN.get(compiler())
    if known is None:
        pytest.skip(f"no figures for {compiler()}")
    found = instructions(gmt, *command)
    assert found <= known[what] * GROWTH, f"{what}: {found:.0f} instructions, where there were {known[what]}"


def test_event_from_native_frames(gmt, compiled):
    program = compiled("hot_path.c", SIMGPU / "libcuda.so.1", "-fno-optimize-sibling-calls")
    hold(gmt, "native", program, 30)


def test_event_from_python_frames(gmt):
    script = gmt.folder / "hot_path.py"
    script.write_text("""
import sys
import cuda

def work(rounds, frames):
    if frames > 1:
        return work(rounds, frames - 1)
    for _ in range(rounds):
        cuda.release(cuda.allocate(4096))

cuda.init()
work(int(sys.argv[1]), int(sys.argv[2]) - 1)
""")
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the figures are of Python 3.11")
    hold(gmt, "mixed", sys.executable, script, 20)
