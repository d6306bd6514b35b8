"""Builds the stand-in for PyTorch's libraries (tests/programs/torch) and runs programs with it."""
import functools
import os
import pathlib
import subprocess
import tempfile

from conftest import PROGRAMS, SANITIZE, SIMGPU

SOURCES = PROGRAMS / "torch"
FLAGS = ["-std=c++17", "-O1", "-g", "-fPIC", "-Wall", "-Wextra", "-Werror",
         *{"address": ["-fsanitize=address,undefined"], "thread": ["-fsanitize=thread"]}.get(SANITIZE, [])]
_kept = []


def compiler():
    """Of g++, without what keeps a library from being unloaded."""
    words = (os.environ.get("CXX") or "c++").split()
    return words if "clang" in words[0] else [*words, "-fno-gnu-unique"]


@functools.lru_cache(maxsize=None)
def libraries(form=21, copy=0):
    """The folder with libc10.so and libc10_cuda.so, made once for each form (c10.h) and copy."""
    _kept.append(tempfile.TemporaryDirectory(prefix=f"stand-in-{form}-"))
    folder = pathlib.Path(_kept[-1].name)
    subprocess.run([*compiler(), *FLAGS, f"-DC10_FORM={form}", "-shared", SOURCES / "c10.cc", "-Wl,-soname,libc10.so",
                    "-o", folder / "libc10.so"], check=True)
    subprocess.run([*compiler(), *FLAGS, f"-DC10_FORM={form}", "-shared", SOURCES / "caching_allocator.cc",
                    "-Wl,-soname,libc10_cuda.so", "-o", folder / "libc10_cuda.so", f"-L{folder}", "-lc10",
                    SIMGPU / "libcudart.so.13", "-ldl", "-Wl,-rpath,$ORIGIN"], check=True)
    return folder


def environment(form=21, **extra):
    return {"CACHING_ALLOCATOR": str(libraries(form)), "GPUMEMTRACE_QUIET": "1", **extra}
