"""Every way a program looks functions up gives what it gives without the library, our hook of the same variant in the
place of what is hooked, and nothing else changed."""
import subprocess

import hook_table
import pytest
from conftest import CC, LIBRARY, PRELOAD, ROOT, SIMGPU

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


def test_a_tool_in_front_of_us_keeps_its_place_in_a_global_search(gmt, compiled):
    """Its function is what the program gets, as without us, and not ours, which would call it, which would call us."""
    program = compiled("hooks_look_up.c", "-ldl")
    tool = compiled("hooks_tool.c", "-shared", "-fPIC", "-ldl")
    sanitizer = PRELOAD.rpartition(":")[0]
    for traced, libraries in [(False, [tool]), (True, [tool, LIBRARY])]:
        env = {**QUIET, "LD_PRELOAD": ":".join(filter(None, [sanitizer, *map(str, libraries)]))}
        done = gmt.run(program, "global", input="cuMemAlloc_v2\ncuMemFree_v2\n", traced=traced, env=env)
        first, second = done.out.splitlines()
        assert first == f"cuMemAlloc_v2: cuMemAlloc_v2 {tool.name}"
        assert second.endswith(OURS if traced else "libcuda.so.1")


# A driver of CUDA 14 that is not like those we know: what it returns is none of its exports, and cuMemAlloc means
# something else from 14000 on.
STRANGE_DRIVER = r"""
#include <string.h>
#include "cuda/abi.h"
CUresult cuInit(unsigned flags) { (void)flags; return 0; }
CUresult cuDriverGetVersion(int *version) { *version = 14000; return 0; }
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) { (void)bytes; *address = 0x1000; return 0; }
static CUresult inner(CUdeviceptr *address, size_t bytes) { (void)bytes; *address = 0x2000; return 0; }
static CUresult newer(int what, CUdeviceptr *address, size_t bytes) { (void)what, (void)bytes; *address = 0x3000; return 0; }
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags, void *status)
{
    (void)flags, (void)status;
    if (strcmp(symbol, "cuMemAlloc") != 0)
        return CUDA_ERROR_NOT_FOUND;
    *function = version >= 14000 ? (void *)newer : version >= 3020 ? (void *)inner : (void *)0x10;
    return 0;
}
"""
ASKER = r"""
#include <dlfcn.h>
#include <stdio.h>
#include "cuda/abi.h"
int main(void)
{
    static const int versions[] = {3020, 13000, 13050, 14000, 15000};
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *ours = dlopen("libgpumemtrace.so", RTLD_NOW | RTLD_NOLOAD);
    CUresult (*get)(const char *, void **, int, cuuint64_t, void *) = dlsym(driver, "cuGetProcAddress_v2");
    for (int i = 0; i < 5; i++) {
        Dl_info info;
        CUdeviceptr address = 0;
        void *function = NULL;
        get("cuMemAlloc", &function, versions[i], 0, NULL);
        if (versions[i] >= 14000)
            ((CUresult(*)(int, CUdeviceptr *, size_t))function)(1, &address, 100);
        else
            ((CUresult(*)(CUdeviceptr *, size_t))function)(&address, 100);
        printf("%d: %llx %d\n", versions[i], address, dladdr(function, &info) && strstr(info.dli_fname, "gpumemtrace") != NULL);
    }
    return ours == NULL;
}
"""


def test_a_variant_that_we_do_not_know_is_left_alone(gmt, tmp_path):
    for name, text, flags in [("libcuda.so.1", STRANGE_DRIVER, ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]),
                              ("asker", "#include <string.h>\n" + ASKER, ["-ldl"])]:
        (tmp_path / f"{name}.c").write_text(text)
        subprocess.run([CC, "-w", "-D_GNU_SOURCE", f"-I{ROOT / 'src'}", tmp_path / f"{name}.c", "-o", tmp_path / name, *flags],
                       check=True)
    done = gmt.run(tmp_path / "asker", env={**QUIET, "LD_LIBRARY_PATH": f"{tmp_path}"}, status=None)
    # What it still means at 13050 is what it means at the newest version we know.
    assert done.out.splitlines() == ["3020: 2000 1", "13000: 2000 1", "13050: 2000 1", "14000: 3000 0", "15000: 3000 0"]


def test_children_forked_beside_look_ups_can_look_up(gmt, compiled):
    """The dynamic linker's lock, held by another thread of the parent, would be held for good in the child."""
    done = gmt.run(compiled("hooks_fork.c", "-ldl", "-lpthread"), 40, env=QUIET)
    assert done.out == "0 stuck\n"
