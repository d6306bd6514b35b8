"""The library as a file: what it exports, what it needs, and which C library it asks for."""
import re
import subprocess

import hook_table
import pytest
from conftest import LIBRARY, SANITIZE

pytestmark = pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer adds symbols and libraries of its own")

C_LIBRARY = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def readelf(*options):
    return subprocess.run(["readelf", "-W", *options, LIBRARY], capture_output=True, text=True, check=True).stdout


def exported():
    names = set()
    for line in readelf("--dyn-syms").splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[0].rstrip(":").isdigit() and fields[4] in ("GLOBAL", "WEAK") \
                and fields[6] not in ("UND", "ABS"):
            names.add(fields[7].split("@")[0])
    return names


def test_exports_the_hooked_symbols_and_the_public_functions_and_nothing_else():
    public = {name for name in exported() if name.startswith("gpumemtrace_")}
    assert exported() - public == {symbol.name for symbol in hook_table.symbols()} | set(hook_table.OTHERS)


def test_needs_nothing_but_the_c_library():
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d")))
    assert needed <= C_LIBRARY, needed - C_LIBRARY


def test_needs_no_c_library_newer_than_that_of_2012():
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_(\d[\d.]*)", readelf("-V"))}
    print("newest GLIBC needed:", ".".join(map(str, max(versions))))
    assert max(versions) <= (2, 17)


def test_has_no_text_relocations_and_no_executable_stack():
    dynamic = readelf("-d")
    assert "TEXTREL" not in dynamic
    assert "BIND_NOW" in dynamic or "NOW" in dynamic
    (stack,) = [line for line in readelf("-l").splitlines() if "GNU_STACK" in line]
    assert "RWE" not in stack and " E " not in stack
