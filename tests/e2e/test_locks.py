"""No lock of the library's is held across a call into the driver, the dynamic linker or libunwind (which asks the dynamic
linker): at each such call another thread makes calls that need them all, and comes back."""
import platform
import re
import shutil
import subprocess

import pytest
from conftest import CC, LIBRARY, PROGRAMS, ROOT, SANITIZE, SIMGPU

CALLS = 300
HELD = 86

pytestmark = [pytest.mark.skipif(platform.machine() != "x86_64", reason="the driver's jumps are x86-64"),
              pytest.mark.skipif(SANITIZE != "", reason="their own locks are around calls of ours")]


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A folder with the driver in front of the simulated one, and what is to be preloaded."""
    folder = tmp_path_factory.mktemp("locks")
    real = shutil.copy(SIMGPU / "libcuda.so.1", folder / "real.so")
    listed = subprocess.run(["nm", "-D", "--defined-only", real], capture_output=True, text=True, check=True).stdout
    symbols = sorted({(name, int(offset, 16)) for offset, kind, name in map(str.split, listed.splitlines())
                      if kind in "TW"})
    assert len(symbols) > 400
    lines = [".text"]
    for number, (name, _) in enumerate(symbols):
        lines += [f".globl {name}", f".type {name}, @function", f"{name}:",
                  f"    leaq locks_slots+{16 * number}(%rip), %r11", "    jmp locks_jump", f".size {name}, .-{name}"]
    lines += [".section .rodata"] + [f"name{number}: .string \"{name}\"" for number, (name, _) in enumerate(symbols)]
    lines += [".section .data.rel, \"aw\"", ".balign 8", ".globl locks_slots", ".hidden locks_slots", "locks_slots:"]
    lines += [f".quad name{number}, {offset}" for number, (_, offset) in enumerate(symbols)]
    lines += [".globl locks_slot_count", ".hidden locks_slot_count", "locks_slot_count:", f".quad {len(symbols)}",
              ".section .note.GNU-stack,\"\",@progbits", ""]
    (folder / "jumps.S").write_text("\n".join(lines))
    flags = [CC, "-O1", "-g", "-fPIC", "-shared", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*flags, PROGRAMS / "locks" / "driver.c", folder / "jumps.S", "-Wl,-soname,libcuda.so.1",
                    "-o", folder / "libcuda.so.1", "-ldl"], check=True)
    subprocess.run([*flags, PROGRAMS / "locks" / "watch.c", folder / "libcuda.so.1", "-o", folder / "watch.so", "-ldl",
                    "-lpthread"], check=True)
    return folder


@pytest.mark.parametrize("threads", [1, 4])
def test_other_threads_can_go_on_while_a_call_of_the_library_is_in_the_driver_or_the_linker(gmt, watched, threads):
    main, *others = sorted((PROGRAMS / "hooks_random").glob("*.c"), key=lambda path: path.name != "main.c")
    program = watched / "random"
    if not program.exists():
        subprocess.run([CC, "-O1", "-g", "-D_GNU_SOURCE", f"-I{ROOT / 'src'}", main, *others, "-o", program, "-ldl",
                        "-lpthread"], check=True)
    done = gmt.run(program, 7, CALLS, threads, status=None, timeout=300,
                   env={"LD_PRELOAD": f"{LIBRARY}:{watched / 'watch.so'}", "LD_LIBRARY_PATH": watched,
                        "LOCKS_DRIVER": watched / "real.so", "GPUMEMTRACE_QUIET": 1})
    assert done.status != HELD, done.err
    assert done.status == 0, done.err
    assert int(re.search(r"(\d+) rounds", done.err)[1]) > CALLS
    assert done.report["counters"]["allocs"] > 50 and all(site["frames"] for site in done.report["sites"])
