"""Every way a program looks functions up gives what it gives without the library, our hook of the same variant in the
place of what is hooked, and nothing else changed."""
import re

import hook_table
import pytest
from conftest import SIMGPU

QUIET = {"GPUMEMTRACE_QUIET": "1"}
OURS = "libgpumemtrace.so"
VERSIONS = [2000, 3020, 4000, 6050, 7000, 10000, 11000, 11020, 11030, 11040, 12000, 12020, 12030, 12050, 13000, 13010, 99000]
DRIVERS = {"direct": SIMGPU, "through the GOT": SIMGPU / "got"}


def hooked_names():
    return {symbol.name for symbol in hook_table.symbols() if symbol.library == "DRIVER"}


def in_driver(line):
    """A traced run's line with our file's name turned into the driver's: what the line should be without us."""
    return line.replace(OURS, "libcuda.so.1")


def look_up(gmt, program, how, questions, folder, traced):
    done = gmt.run(program, how, input=questions, traced=traced, env={**QUIET, "LD_LIBRARY_PATH": folder})
    return done.out.splitlines()


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("how", ["address", "address-v1"])
def test_names_and_versions_mean_the_variant_they_mean_to_the_driver(gmt, compiled, driver, how):
    program = compiled("hooks_look_up.c", "-ldl")
    bare = sorted({symbol.bare for symbol in hook_table.symbols() if symbol.library == "DRIVER"})
    odd = ["(empty)", "cuMemAlloc_v2", "cuMemcpy", "cuNoSuchThing", "cudaMalloc", "malloc", "cu", "c"]
    questions = "".join(f"{name} {version} {flags}\n" for name in bare + odd for version in VERSIONS for flags in (0, 1, 2))
    plain = look_up(gmt, program, how, questions, DRIVERS[driver], traced=False)
    traced = look_up(gmt, program, how, questions, DRIVERS[driver], traced=True)
    assert [in_driver(line) for line in traced] == plain
    assert len(plain) == questions.count("\n")
    hooked = hooked_names()
    for line in traced:
        symbol, _, file = line.split(": ")[1].rpartition(" ")
        assert (file == OURS) == (symbol.split(" ")[-1] in hooked), line


@pytest.mark.parametrize("driver", DRIVERS)
def test_names_on_the_drivers_handle_are_hooked(gmt, compiled, driver):
    program = compiled("hooks_look_up.c", "-ldl")
    names = sorted(hooked_names() | {"cuMemcpy", "cuDeviceGet", "cuNoSuchThing", "cudaMalloc", "cuMemAlloc_v3"})
    questions = "\n".join(names)
    plain = look_up(gmt, program, "name", questions, DRIVERS[driver], traced=False)
    traced = look_up(gmt, program, "name", questions, DRIVERS[driver], traced=True)
    assert [in_driver(line) for line in traced] == plain
    for line in traced:
        name, found = line.split(": ")
        if found != "nothing":
            assert found.endswith(OURS) == (name in hooked_names()), line


def test_dlsym_finds_what_it_finds_without_the_library(gmt, compiled):
    for flags in [["-ldl"], ["-Wl,--no-as-needed", SIMGPU / "libcuda.so.1", "-ldl"],
                  ["-Wl,--no-as-needed", SIMGPU / "libcudart.so.12", "-ldl"]]:
        program = compiled("hooks_dlsym.c", *flags)
        plain = gmt.run(program, traced=False).out
        assert gmt.run(program, env=QUIET).out == plain
        assert "errno 99" in plain and "found cuMemAlloc_v2" in plain
