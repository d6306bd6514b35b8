"""Every hook passes on every argument, result and errno as they are. A driver and a runtime that do nothing but take notes
stand behind the library; both are generated from the hooks' own prototypes, which test_hooks_coverage.py holds to
NVIDIA's headers."""
import subprocess

import hook_table
import pytest
from conftest import CC, ROOT, SANITIZE

BY_VALUE = {"CUipcMemHandle", "cudaIpcMemHandle_t", "struct cudaExtent"}

# What hooks ask the driver in between; it answers sensibly, takes no notes, and spoils errno.
QUESTIONS = r"""
CUresult cuDriverGetVersion(int *version) { *version = 13000; return errno = 0; }
CUresult cuCtxGetCurrent(CUcontext *context) { *context = (CUcontext)0x77; errno = EIO; return 0; }
CUresult cuCtxGetDevice(CUdevice *device) { *device = 0; errno = EIO; return 0; }
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{ (void)device; *flags = 0; *active = 0; errno = EIO; return 0; }
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) { *free_bytes = 1; *total = 2; errno = EIO; return 0; }
"""

NOTES = r"""
#include <errno.h>
#include <string.h>
#include "cuda/abi.h"
struct note { int calls, entry_errno; uintptr_t words[8]; unsigned char bytes[128]; };
"""


def fake(prototypes):
    text = NOTES + r"""
struct note notes[%d];
int return_code, leave_errno;
""" % len(prototypes)
    for index, prototype in enumerate(prototypes):
        parameters = ", ".join(f"{kind} a{i}" for i, (kind, _) in enumerate(prototype.parameters))
        text += f"int {prototype.name}({parameters or 'void'})\n{{\n    struct note *note = &notes[{index}];\n"
        text += "    note->calls++;\n    note->entry_errno = errno;\n"
        for i, (kind, _) in enumerate(prototype.parameters):
            if kind in BY_VALUE:
                text += f"    memcpy(note->bytes, &a{i}, sizeof a{i});\n"
            else:
                text += f"    note->words[{i}] = (uintptr_t)a{i};\n"
        text += "    errno = leave_errno;\n    return return_code;\n}\n"
    return text


def arguments(prototype, null):
    """Statements that set up distinct arguments, and the checks that they arrived. Pointers point at memory of our own."""
    setup, passed, checks = "", [], ""
    for i, (kind, _) in enumerate(prototype.parameters):
        if kind in BY_VALUE:
            setup += f"        {kind} a{i}; memset(&a{i}, 0x51 + {i}, sizeof a{i});\n"
            checks += f"        CHECK(memcmp(note->bytes, &a{i}, sizeof a{i}) == 0);\n"
        else:
            pointer = "*" in kind or kind in ("uintptr_t",)
            value = "0" if pointer and null else f"scratch[{i}]" if "*" in kind else str(0x40 + 8 * i)
            setup += f"        {kind} a{i} = ({kind}){value};\n"
            checks += f"        CHECK(note->words[{i}] == (uintptr_t)a{i});\n"
        passed.append(f"a{i}")
    return setup, ", ".join(passed), checks


def caller(prototypes, driver, runtime):
    text = NOTES + r"""
#include <dlfcn.h>
#include <stdio.h>
static unsigned char scratch[8][4096], before[8][4096];
static int failed;
#define CHECK(what) do { if (!(what)) { failed = 1; printf("%s: %s\n", name, #what); } } while (0)
int main(void)
{
    void *library;
    struct note *notes;
    int *return_code, *leave_errno;
"""
    libraries = [(driver, [p for p in prototypes if not p.runtime], False),
                 (runtime, [p for p in prototypes if p.runtime], True)]
    for library, wanted, _ in libraries:
        text += f"""
    library = dlopen("{library}", RTLD_NOW);
    if (library == NULL) {{ puts(dlerror()); return 1; }}
    notes = dlsym(library, "notes");
    return_code = dlsym(library, "return_code");
    leave_errno = dlsym(library, "leave_errno");
"""
        for index, prototype in enumerate(wanted):
            kinds = ", ".join(kind for kind, _ in prototype.parameters) or "void"
            for code, null in [(0, False), (1, False), (2, False), (700, False), (1, True)]:
                setup, passed, checks = arguments(prototype, null)
                text += f"""    {{
        const char *name = "{prototype.name} {code}{' with NULLs' if null else ''}";
        int (*function)({kinds}) = dlsym(library, "{prototype.name}");
        struct note *note = &notes[{index}];
        for (int i = 0; i < 8; i++)
            memset(scratch[i], i + 1, sizeof scratch[i]);
{"        memset(scratch[1], 0, sizeof scratch[1]);" if "ProcAddress" in prototype.name or "EntryPoint" in prototype.name
 else ""}
        memcpy(before, scratch, sizeof scratch);
        memset(note, 0, sizeof *note);
        *return_code = {code};
        *leave_errno = {code} + 33;
{setup}        errno = EDOM;
        int rc = function({passed});
        int left = errno;
        CHECK(rc == {code});
        CHECK(left == {code} + 33);
        CHECK(note->calls == 1);
        CHECK(note->entry_errno == EDOM);
        CHECK(memcmp(before, scratch, sizeof scratch) == 0);
{checks}    }}
"""
    return text + "    if (!failed) puts(\"all as they were\");\n    return failed;\n}\n"


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """The driver, the runtime, and a program that calls every function of both."""
    folder = tmp_path_factory.mktemp("forwarding")
    prototypes = hook_table.prototypes()
    driver = folder / "libcuda.so.1"
    runtime = folder / "libcudart.so.12"
    program = folder / "caller"
    common = [CC, "-w", "-g", "-D_GNU_SOURCE", f"-I{ROOT / 'src'}"]
    sanitize = {"address": ["-fsanitize=address,undefined"], "thread": ["-fsanitize=thread"]}.get(SANITIZE, [])
    for path, text, flags in [
            (driver, fake([p for p in prototypes if not p.runtime]) + QUESTIONS,
             ["-shared", "-fPIC", "-Wl,-Bsymbolic", "-Wl,-soname,libcuda.so.1"]),
            (runtime, fake([p for p in prototypes if p.runtime]),
             ["-shared", "-fPIC", "-Wl,-Bsymbolic", "-Wl,-soname,libcudart.so.12"]),
            (program, caller(prototypes, "libcuda.so.1", "libcudart.so.12"), [*sanitize, "-ldl"])]:
        source = folder / f"{path.name}.c"
        source.write_text(text)
        subprocess.run([*common, source, "-o", path, *flags], check=True)
    return folder, program


def test_every_symbol_of_cuda_has_one_hook():
    hooked = [symbol.name for symbol in hook_table.symbols() if symbol.library in ("DRIVER", "RUNTIME")]
    assert sorted(hooked) == sorted(prototype.name for prototype in hook_table.prototypes())


@pytest.mark.parametrize("traced", [True, False], ids=["traced", "untraced"])
def test_arguments_results_and_errno_pass_unchanged(gmt, libraries, traced):
    folder, program = libraries
    done = gmt.run(program, traced=traced, env={"LD_LIBRARY_PATH": folder, "GPUMEMTRACE_QUIET": "1"}, status=None)
    assert (done.out, done.status) == ("all as they were\n", 0), done.out + done.err
    if traced:
        assert done.report["counters"]["allocs"] > 10


def test_a_missing_function_is_an_error_and_not_a_crash(gmt, compiled, tmp_path):
    """The library exports names that an old driver lacks; to call one without any real one must say so."""
    source = tmp_path / "missing.c"
    source.write_text(r"""
        #include <dlfcn.h>
        #include <errno.h>
        #include <stdio.h>
        #pragma weak cuMemAlloc_v2
        #pragma weak cudaMalloc
        int cuMemAlloc_v2(unsigned long long *, size_t);
        int cudaMalloc(void **, size_t);
        int main(void)
        {
            unsigned long long address;
            void *pointer;
            errno = 77;
            printf("%d %d %d\n", cuMemAlloc_v2(&address, 1), cudaMalloc(&pointer, 1), errno);
        }""")
    # cudaErrorSharedObjectSymbolNotFound and its driver twin are both 302.
    done = gmt.run(compiled(source, "-ldl"))
    assert done.out == "302 302 77\n"
    assert not done.recordings
