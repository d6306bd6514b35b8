"""Names of C++ and Rust under Python: the Python line first, then the functions that the reader wrote."""
import os
import re
import shutil
import subprocess

import pytest
from conftest import SANITIZE, SIMGPU, interpreters
from named_program import GROW, MIXED

MARKS = {mark: number for number, line in enumerate((MIXED / "attention.cc").read_text().splitlines(), 1)
         for mark in re.findall(r"// (\w+)$", line)}
FORWARD = next(number for number, line in enumerate((MIXED / "train.py").read_text().splitlines(), 1)
               if "fused.fused_attention(" in line)
ATTENTION = "fused::attention<float, fused::Workspace<float> >(fused::Workspace<float>&, unsigned long, unsigned long)"

EXTENSION = r"""
#define PY_SSIZE_T_CLEAN
#include <Python.h>
int fused_attention(int heads, int tokens);

static PyObject *attention(PyObject *self, PyObject *arguments)
{
    int heads, tokens;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "ii", &heads, &tokens))
        return NULL;
    return PyLong_FromLong(fused_attention(heads, tokens));
}

static PyMethodDef methods[] = {{"fused_attention", attention, METH_VARARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "fused", NULL, -1, methods, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_fused(void) { return PyModule_Create(&definition); }
"""


def with_headers():
    """An interpreter whose Python.h is here, and the folder of that; (None, None)."""
    for _, path in reversed(interpreters()):
        done = subprocess.run([path, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"],
                              capture_output=True, text=True)
        if os.path.exists(os.path.join(done.stdout.strip(), "Python.h")):
            return path, done.stdout.strip()
    return None, None


def check_mixed(gmt, done, script):
    """First the Python line, then the C++ function and line; in the stack all of the C++ the reader wrote."""
    text = gmt.tool("report", done.recording).stdout.splitlines()
    row = next(number for number, line in enumerate(text) if line.endswith(f"{script.name}:{FORWARD} in Model.forward"))
    assert re.fullmatch(r"\s+return fused\.fused_attention\(16, tokens\)", text[row + 1])
    assert text[row + 2].strip() == f"in C++ attention.cc:{MARKS['grow']} in {GROW}"
    site = text[next(number for number, line in enumerate(text) if line.startswith("Site 0: ")):]
    assert site[0] == f"Site 0: {script.name}:{FORWARD} in Model.forward"
    places = [re.search(r"(\w+\.\w+):(\d+) in ([^<(]*)", line).groups() for line in site if re.search(r":\d+ in ", line)]
    assert places[-5:] == [(script.name, str(FORWARD + 6), "train"),
                           (script.name, str(FORWARD), "Model.forward"),
                           ("attention.cc", str(MARKS["fused_attention"]), "fused_attention"),
                           ("attention.cc", str(MARKS["attention"]), "fused::attention"),
                           ("attention.cc", str(MARKS["grow"]), "fused::Workspace")] or \
        places[-4:] == [(script.name, str(FORWARD), "Model.forward"),
                        ("attention.cc", str(MARKS["fused_attention"]), "fused_attention"),
                        ("attention.cc", str(MARKS["attention"]), "fused::attention"),
                        ("attention.cc", str(MARKS["grow"]), "fused::Workspace")]
    assert [line for line in site if line.startswith("    > ")] == \
        [f"    > {script}:{FORWARD} in Model.forward"]
    assert max(map(len, text)) <= 100
    return site


def check_whole(gmt, done):
    """Nothing folded or shortened in --full and JSON; --native unfolds native frames only."""
    full = gmt.tool("report", "--full", done.recording).stdout
    assert "…" not in full
    assert f"attention.cc:{MARKS['attention']} in {ATTENTION}\n" in full
    assert f"attention.cc:{MARKS['grow']} in {GROW} (inlined)\n" in full
    (site,) = gmt.rendered(done.recording)["sites"]
    assert len(re.findall(r"^ {4}[> ] \S", full, re.M)) == len(site["frames"])
    assert [frame["function"] for frame in site["frames"][:3]] == [GROW, ATTENTION, "fused_attention"]
    assert [frame["line"] for frame in site["frames"][:3]] == \
        [MARKS["grow"], MARKS["attention"], MARKS["fused_attention"]]
    native = gmt.tool("report", "--native", done.recording).stdout
    for module in {frame["module"].rpartition("/")[2] for frame in site["frames"] if not frame["file"]}:
        assert re.search(rf"^ {{6}}.*{re.escape(module)}", native, re.M)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_python_line_comes_first_and_the_cpp_behind_it_next(gmt, compiled, compiler):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not here")
    library = compiled(MIXED / "attention.cc", "-fPIC", "-shared", compiler=compiler)
    done = gmt.run("/usr/bin/python3", MIXED / "train.py", library)
    site = check_mixed(gmt, done, MIXED / "train.py")
    if not SANITIZE:
        assert any(re.fullmatch(r" {6}… \d+ frames in _ctypes, libffi\.so\.\d+", line) for line in site)
    check_whole(gmt, done)


def test_extension_module_reads_the_same(gmt, compiled):
    python, include = with_headers()
    if not python:
        pytest.skip("no Python.h is here")
    source = gmt.folder / "module.c"
    source.write_text(EXTENSION)
    code = compiled(MIXED / "attention.cc", "-fPIC", "-shared")
    flags = [f"-I{include}", "-fPIC", "-shared", code, f"-Wl,-rpath,{code.parent}"]
    shutil.copy(compiled(source, *flags), gmt.folder / "fused.so")
    script = gmt.folder / "train.py"
    script.write_text((MIXED / "train.py").read_text().replace("fused = ctypes.CDLL(sys.argv[1])",
                                                               "sys.path.append(sys.argv[1]); import fused"))
    done = gmt.run(python, script, gmt.folder)
    text = gmt.tool("report", done.recording).stdout
    assert f"in C++ attention.cc:{MARKS['grow']} in {GROW}\n" in text
    assert re.search(rf"> {script}:{FORWARD} in (?:Model\.)?forward\n.*\n(?: +….*\n)? +.*module\.c:\d+ in attention\n"
                     rf" +.*attention\.cc:{MARKS['fused_attention']} in fused_attention\n", text)


RUST = """
extern "C" { fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> i32; }

pub struct Ring<T> { address: u64, items: Vec<T> }

trait Grow { fn grow(&mut self, count: usize) -> i32; }

impl<T> Grow for Ring<T> {
    #[inline(never)]
    fn grow(&mut self, count: usize) -> i32 {
        let result = unsafe { cuMemAlloc_v2(&mut self.address, count * std::mem::size_of::<T>()) }; // grow
        std::hint::black_box(result)
    }
}

#[no_mangle]
pub extern "C" fn take(count: i32) -> i32 {
    let mut ring = Ring::<f32> { address: 0, items: Vec::new() };
    let result = ring.grow(count as usize);
    std::mem::forget(std::hint::black_box(ring.items));
    std::hint::black_box(result)
}
"""


@pytest.mark.skipif(not shutil.which("rustc"), reason="rustc is not here")
@pytest.mark.parametrize("flags", [[], ["-C", "symbol-mangling-version=v0"]], ids=["default", "v0"])
def test_rust_functions_are_named_as_written(gmt, flags):
    source = gmt.folder / "ring.rs"
    source.write_text(RUST)
    library = gmt.folder / "libring.so"
    done = subprocess.run(["rustc", "--crate-type", "cdylib", "-g", "-O", *flags, source, "-o", library, "-L", SIMGPU,
                           "-l", "cuda"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"this rustc cannot: {done.stderr[:200]}")
    done = gmt.python("import ctypes, cuda, sys\ncuda.init()\nctypes.CDLL(sys.argv[1]).take(1000)\n", library)
    (site,) = gmt.rendered(done.recording)["sites"]
    line = 1 + RUST[:RUST.index("// grow")].count("\n")
    # Older mangling does not tell with which type.
    assert site["frames"][0]["function"] in ("<ring::Ring<f32> as ring::Grow>::grow", "<ring::Ring<T> as ring::Grow>::grow")
    assert site["frames"][0]["line"] == line
    assert f"in Rust ring.rs:{line} in <ring::Ring<" in gmt.tool("report", done.recording).stdout
