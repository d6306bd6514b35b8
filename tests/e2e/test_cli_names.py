"""Names of native frames for recordings made elsewhere: other roots, folders of debug files, debuginfod. And that
rendering opens nothing but regular files, executes nothing, and ends in time, whatever a recording names."""
import http.server
import json
import os
import re
import resource
import shutil
import subprocess
import threading
import time

import pytest
from conftest import PROGRAMS, SANITIZE, SIMGPU, TOOL, interpreters

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


def test_files_are_found_below_another_root(gmt, box):
    path = box()
    recording = record(gmt, path)
    root = gmt.folder / "root"
    (root / path.parent.relative_to("/")).mkdir(parents=True)
    # As a container may have it: a link that is right only inside.
    (root / "opt").mkdir()
    shutil.move(path, root / "opt" / "box")
    (root / path.relative_to("/")).symlink_to("/opt/box")
    assert places(render(gmt, recording)) == NAMELESS
    report = render(gmt, recording, "--sysroot", root)
    assert places(report) == WHOLE
    assert not any(str(path) in note for note in report["notes"])
    # Every command that names functions takes it.
    assert "take_one" in gmt.tool("diff", "--json", "--sysroot", root, recording, recording).stdout


def test_another_file_below_the_root_is_noticed_and_not_misread(gmt, box):
    path = box()
    recording = record(gmt, path)
    shutil.move(path, gmt.folder / "box.first")
    root = gmt.folder / "root"
    inside = root / path.relative_to("/")
    inside.parent.mkdir(parents=True)
    shutil.move(box("-O1", "-DOTHER"), inside)
    report = render(gmt, recording, "--sysroot", root)
    assert places(report) == NAMELESS
    assert whys(report) == {"has changed since the recording"}
    assert f"{inside} has changed since the recording: its functions are shown as offsets." in report["notes"]
    text = gmt.tool("report", "--full", "--sysroot", root, recording).stdout
    assert re.search(r"box\+0x[0-9a-f]+ \(has changed since the recording\)\n", text)


def test_file_that_is_here_counts_also_when_the_root_lacks_it(gmt, box):
    """A root that holds only a part: the build-id proves the rest."""
    recording = record(gmt, box())
    (gmt.folder / "root").mkdir()
    assert places(render(gmt, recording, "--sysroot", gmt.folder / "root")) == WHOLE


def test_lines_of_source_come_from_the_other_root_too(gmt):
    done = gmt.python("import cuda\ncuda.init()\nkept = cuda.allocate(4096)  # inside\n")
    root = gmt.folder / "root"
    inside = root / done.script.relative_to("/")
    inside.parent.mkdir(parents=True)
    shutil.move(done.script, inside)
    done.script.write_text("one\ntwo\nthree, outside\n")
    os.utime(done.script, (1, 1))
    text = gmt.tool("report", "--sysroot", root, done.recording).stdout
    assert "kept = cuda.allocate(4096)  # inside\n" in text
    assert "outside" not in text
    assert "outside" in gmt.tool("report", done.recording).stdout


def by_build_id(folder, path):
    identity = build_id(path)
    split_debug(path, folder / ".build-id" / identity[:2] / f"{identity[2:]}.debug")


def by_build_id_directly(folder, path):
    identity = build_id(path)
    split_debug(path, folder / identity[:2] / f"{identity[2:]}.debug")


def under_any_name(folder, path):
    shutil.copy(path, folder / "whatever")
    subprocess.run(["objcopy", "--strip-all", path], check=True)
    shutil.copy(path, folder / "stripped")


def by_path(folder, path):
    (folder / path.parent.relative_to("/")).mkdir(parents=True)
    shutil.copy(path, folder / path.relative_to("/"))


@needs_objcopy
@pytest.mark.parametrize("is_here", [True, False], ids=["stripped", "gone"])
@pytest.mark.parametrize("put", [by_build_id, by_build_id_directly, under_any_name, by_path])
def test_debug_files_are_found_in_named_folders(gmt, box, put, is_here):
    path = box()
    folders = [gmt.folder / "empty", gmt.folder / "debug"]
    for folder in folders:
        folder.mkdir()
    put(folders[1], path)
    recording = record(gmt, path)
    if not is_here:
        os.unlink(path)
    elif put is by_path:
        return
    arguments = [word for folder in folders for word in ("--debug-dir", folder)]
    assert places(render(gmt, recording))[0][1:] == (None, None)
    report = render(gmt, recording, *arguments)
    assert places(report) == WHOLE
    assert whys(report) <= {None, "no symbol there"}
    os.chdir(gmt.folder)
    assert places(render(gmt, recording, "--debug-dir", "debug")) == WHOLE


@needs_objcopy
def test_stripped_file_says_so(gmt, box):
    path = box()
    subprocess.run(["objcopy", "--strip-all", path], check=True)
    report = render(gmt, record(gmt, path))
    assert whys(report) == {"stripped, no debug file found"}
    assert report["notes"] == []


def test_copy_of_a_file_without_build_id_is_known_by_size_and_time(gmt, box):
    path = box("-Wl,--build-id=none")
    recording = record(gmt, path)
    folder = gmt.folder / "copies"
    folder.mkdir()
    shutil.move(path, folder / "box")
    status = (folder / "box").stat()
    assert places(render(gmt, recording, "--debug-dir", folder)) == WHOLE
    os.utime(folder / "box", (status.st_atime, int(status.st_mtime)))  # as archives keep it
    assert places(render(gmt, recording, "--debug-dir", folder)) == WHOLE
    os.utime(folder / "box", (status.st_atime, int(status.st_mtime) + 1))
    assert places(render(gmt, recording, "--debug-dir", folder)) == NAMELESS


@needs_objcopy
@pytest.mark.parametrize("folder", [".", ".debug", "elsewhere"])
@pytest.mark.parametrize("flag", ["-Wl,--build-id", "-Wl,--build-id=none"])
def test_debug_link_is_followed_and_checked(gmt, box, folder, flag):
    path = box(flag)
    debug = path.parent / folder / "box.dbg"
    split_debug(path, debug)
    stripped = shutil.copy2(path, gmt.folder / "stripped")
    recording = record(gmt, path)
    arguments = ["--debug-dir", debug.parent] if folder == "elsewhere" else []
    assert places(render(gmt, recording, *arguments)) == WHOLE
    # Another one's debug file, under the same name.
    other = gmt.folder / "other"
    shutil.copy(box("-O0", flag), other)
    shutil.copy2(stripped, path)
    subprocess.run(["objcopy", "--only-keep-debug", other, debug], check=True)
    report = render(gmt, recording, *arguments)
    assert places(report)[0][1:] == (None, None)
    assert whys(report) == {"stripped, no debug file found"}


class DebugServer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        body = self.server.files.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *arguments):
        pass


@pytest.fixture
def debug_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), DebugServer)
    server.asked, server.files = [], {}
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def has_debuginfod():
    return subprocess.run(["/usr/bin/python3", "-c", "import ctypes; ctypes.CDLL('libdebuginfod.so.1')"],
                          capture_output=True).returncode == 0


@needs_objcopy
@pytest.mark.skipif(not has_debuginfod(), reason="libdebuginfod.so.1 is not here (Debian: libdebuginfod1)")
@pytest.mark.parametrize("is_here", [True, False], ids=["stripped", "gone"])
def test_debuginfod_is_asked_only_where_the_user_wants_it(gmt, box, debug_server, is_here):
    path = box()
    debug = gmt.folder / "served" / "debug"
    split_debug(path, debug)
    asked_for = f"/buildid/{build_id(debug)}/debuginfo"
    debug_server.files[asked_for] = debug.read_bytes()
    stripped = shutil.copy2(path, gmt.folder / "stripped")
    recording = record(gmt, path)
    shutil.rmtree(debug.parent)
    if not is_here:
        os.unlink(path)
    env = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{debug_server.server_port}/", "NO_PROXY": "127.0.0.1",
           "no_proxy": "127.0.0.1", "DEBUGINFOD_CACHE_PATH": str(gmt.folder / "cache")}
    for unset in (None, ""):
        report = render(gmt, recording, env={**env, "DEBUGINFOD_URLS": unset})
        assert places(report)[0][1:] == (None, None)
        assert not any("DEBUGINFOD_URLS" in note for note in report["notes"])
    assert debug_server.asked == []
    assert places(render(gmt, recording, env=env)) == WHOLE
    assert asked_for in debug_server.asked
    # The server is as little trusted as a file: it has another build of the program.
    subprocess.run(["objcopy", "--only-keep-debug", box("-O0"), gmt.folder / "other"], check=True)
    debug_server.files[asked_for] = (gmt.folder / "other").read_bytes()
    if is_here:
        shutil.copy2(stripped, path)
    else:
        os.unlink(path)
    assert places(render(gmt, recording, env={**env, "DEBUGINFOD_CACHE_PATH": str(gmt.folder / "new")}))[0][1:] == \
        (None, None)


@pytest.mark.parametrize("option", ["--sysroot", "--debug-dir"])
def test_folder_that_is_none_is_named(gmt, option):
    (gmt.folder / "file").write_text("")
    for value in (gmt.folder / "missing", gmt.folder / "file"):
        done = gmt.tool("report", option, value, "x.gmt", status=2)
        assert re.fullmatch(f"gpumemtrace: {value}: [^\n]+\n", done.stderr)


MIXED = PROGRAMS / "mixed"
MARKS = {mark: number for number, line in enumerate((MIXED / "attention.cc").read_text().splitlines(), 1)
         for mark in re.findall(r"// (\w+)$", line)}
FORWARD = next(number for number, line in enumerate((MIXED / "train.py").read_text().splitlines(), 1)
               if "fused.fused_attention(" in line)
GROW = "fused::Workspace<float>::grow(unsigned long)"
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


def renamed(recording, old, new, name="hostile.gmt"):
    """A copy of the recording that names another file, whose path is no longer."""
    old, new = str(old).encode(), str(new).encode()
    assert len(new) <= len(old)
    data = recording.read_bytes()
    assert old in data
    copy = recording.with_name(name)
    copy.write_bytes(data.replace(old, new.rjust(len(old), b"/")))
    return copy


def quickly(function, *arguments, **options):
    start = time.monotonic()
    result = function(*arguments, **options)
    assert time.monotonic() - start < (10 if not SANITIZE else 60)
    return result


@pytest.fixture
def odd_files(tmp_path):
    """What a recording must not get anybody to read."""
    folder = tmp_path / "odd"
    folder.mkdir()
    os.mkfifo(folder / "fifo")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "zero").symlink_to("/dev/zero")
    with open(folder / "sparse", "wb") as file:
        file.truncate(1 << 40)
    return {"device": "/dev/zero", "terminal": "/dev/tty", "folder": "/usr", "kernel": "/proc/kcore",
            "memory": "/proc/self/mem", "log": "/proc/kmsg", "fifo": folder / "fifo", "loop": folder / "loop",
            "link": folder / "zero", "sparse": folder / "sparse"}


ODD = ["device", "terminal", "folder", "kernel", "memory", "log", "fifo", "loop", "link", "sparse"]


@pytest.mark.parametrize("kind", ODD)
def test_only_regular_files_are_read_as_programs(gmt, box, odd_files, kind):
    folder = gmt.folder / ("long" * 20)
    folder.mkdir()
    path = shutil.copy(box("-Wl,--build-id=none"), folder / "box")
    hostile = renamed(record(gmt, path), path, odd_files[kind])
    report = quickly(render, gmt, hostile)
    assert {frame["function"] for frame in report["sites"][0]["frames"]
            if frame["module"].endswith(str(odd_files[kind]))} == {None}
    assert any(note.endswith("its functions are shown as offsets.") for note in report["notes"])
    quickly(render, gmt, hostile, "--sysroot", gmt.folder, "--debug-dir", odd_files["fifo"].parent)


@pytest.mark.parametrize("kind", ODD)
def test_only_regular_files_are_read_as_sources(gmt, odd_files, kind):
    done = gmt.python("import cuda\ncuda.init()\nkept = cuda.allocate(4096)\n", interpreter="/usr/bin/python3",
                      env={"PYTHONPATH": f"{PROGRAMS}:{'x' * 60}"})
    hostile = renamed(done.recording, done.script, odd_files[kind])
    for option in ("--text", "--full"):
        text = quickly(gmt.tool, "report", option, hostile).stdout
        assert "cuda.allocate(4096)" not in text and f"{str(odd_files[kind]).rpartition('/')[2]}:3 in <module>" in text


@pytest.mark.parametrize("size, named", [(1 << 40, False), (8 << 30, True)], ids=["1 TiB", "8 GiB"])
def test_size_of_a_file_costs_no_time(gmt, box, size, named):
    """The recorded program, as its build-id says, but made huge."""
    path = box()
    recording = record(gmt, path)
    with open(path, "r+b") as file:
        file.truncate(size)
    assert (quickly(places, render(gmt, recording)) == WHOLE) == named
    assert any("is too large to be read" in note for note in render(gmt, recording)["notes"]) != named


# Whatever starts a program comes by one of these.
NO_PROGRAMS = r"""
#include <spawn.h>
#include <stdlib.h>
#include <sys/types.h>
#define FORBIDDEN(type, name, ...) type name(__VA_ARGS__) { abort(); }
FORBIDDEN(pid_t, fork, void)
FORBIDDEN(pid_t, vfork, void)
FORBIDDEN(int, execve, const char *a, char *const b[], char *const c[])
FORBIDDEN(int, execv, const char *a, char *const b[])
FORBIDDEN(int, execvp, const char *a, char *const b[])
#define SPAWN pid_t *a, const char *b, const posix_spawn_file_actions_t *c, const posix_spawnattr_t *d, \
              char *const e[], char *const f[]
FORBIDDEN(int, posix_spawn, SPAWN)
FORBIDDEN(int, posix_spawnp, SPAWN)
FORBIDDEN(int, system, const char *a)
FORBIDDEN(void *, popen, const char *a, const char *b)
"""


@pytest.mark.skipif(bool(SANITIZE), reason="the sanitizer's runtime starts programs")
def test_rendering_starts_no_program(gmt, compiled):
    source = gmt.folder / "none.c"
    source.write_text(NO_PROGRAMS)
    library = compiled(MIXED / "attention.cc", "-fPIC", "-shared")
    done = gmt.run("/usr/bin/python3", MIXED / "train.py", library)
    preload = {"LD_PRELOAD": compiled(source, "-w", "-shared", "-fPIC")}
    gmt.tool("run", "--", "true", env=preload, status=-6)  # it would be seen
    for arguments in (["--full"], ["--json"], ["--sysroot", "/"], ["--debug-dir", gmt.folder]):
        gmt.tool("report", *arguments, done.recording, env=preload)


MANY = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
extern int cuInit(unsigned);
extern int cuDevicePrimaryCtxRetain(void **, int);
extern int cuCtxSetCurrent(void *);

int main(int argc, char **argv)
{
    void *context;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 1;
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        int (*take)(void) = library ? (int (*)(void))dlsym(library, "take") : NULL;
        if (!take || take())
            return 2;
    }
    return 0;
}
"""
ONE_OF_MANY = r"""
#include <stddef.h>
extern int cuMemAlloc_v2(unsigned long long *, size_t);
int take(void)
{
    unsigned long long address;
    int result = cuMemAlloc_v2(&address, 1000); // take
    __asm__ volatile("" ::: "memory");
    return result;
}
"""


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 1000))


def test_more_modules_than_files_may_be_open(gmt, compiled):
    (gmt.folder / "many.c").write_text(MANY)
    (gmt.folder / "one.c").write_text(ONE_OF_MANY)
    one = compiled(gmt.folder / "one.c", "-fPIC", "-shared")
    libraries = [shutil.copy(one, gmt.folder / f"lib{number}.so") for number in range(60)]
    done = gmt.run(compiled(gmt.folder / "many.c", SIMGPU / "libcuda.so.1", "-ldl"), *libraries)
    report = json.loads(gmt.tool("report", "--json", done.recording, preexec_fn=few_descriptors).stdout)
    firsts = {(site["frames"][0]["function"], site["frames"][0]["line"], site["frames"][0]["module"])
              for site in report["sites"]}
    line = 1 + ONE_OF_MANY[:ONE_OF_MANY.index("// take")].count("\n")
    assert firsts == {("take", line, str(library)) for library in libraries}
    assert {site["frames"][0]["function"] for site in done.report["sites"]} == {"take"}


SITES = 10000


def test_ten_thousand_sites_take_seconds(gmt, compiled, capsys):
    """Each is an inlined call of its own. Nothing is looked up twice: so many sites, some seconds."""
    lines = ["grow(1000);"] * SITES
    source = gmt.folder / "sites.c"
    source.write_text(PROGRAM[:PROGRAM.index("__attribute__")] + """
static inline __attribute__((always_inline)) void grow(size_t bytes)
{
    unsigned long long address;
    cuMemAlloc_v2(&address, bytes);
}
static void all(void)
{
""" + "\n".join(lines) + "}\n" + PROGRAM[PROGRAM.index("int main"):].replace("take_one(1000)", "(all(), 0)"))
    program = compiled(source, "-O1", SIMGPU / "libcuda.so.1")
    done = gmt.run(program, env={"SIMGPU_MEMORY": "64G"})
    seconds = {}
    for option in ("--text", "--json", "--full"):
        start = resource.getrusage(resource.RUSAGE_CHILDREN)
        output = gmt.tool("report", option, done.recording).stdout
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds[option] = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
        if option == "--json":
            sites = json.loads(output)["sites"]
    first = 1 + source.read_text()[:source.read_text().index(lines[0])].count("\n")
    assert len(sites) == SITES
    assert {site["frames"][1]["line"] for site in sites} == set(range(first, first + SITES))
    with capsys.disabled():
        print(f"\n{SITES} sites: " + ", ".join(f"{option} {value:.2f} s" for option, value in seconds.items()), end=" ")
    assert max(seconds.values()) < (5 if not SANITIZE else 60)


def test_no_function_of_ours_stands_in_for_one_of_a_library(gmt):
    """The tool's own names go before those of the libraries that it is linked with, inside these too."""
    def names(path, *options):
        done = subprocess.run(["nm", *options, "--defined-only", path], capture_output=True, text=True, check=True)
        return {line.split()[2].split("@")[0] for line in done.stdout.splitlines() if line.split()[1] in "TDBR"}
    linked = subprocess.run(["ldd", TOOL], capture_output=True, text=True, check=True).stdout
    libraries = re.findall(r"=> (/\S*(?:libdw|libelf|libjansson)\S*)", linked)
    assert len(libraries) == 3
    for library in libraries:
        assert names(TOOL) & names(library, "-D") <= {"_init", "_fini"}


@needs_objcopy
@pytest.mark.skipif(bool(SANITIZE), reason="LD_LIBRARY_PATH is for one library only")
def test_missing_debuginfod_library_is_said(gmt, box):
    path = box()
    subprocess.run(["objcopy", "--strip-all", path], check=True)
    recording = record(gmt, path)
    (gmt.folder / "libdebuginfod.so.1").write_bytes(b"")
    env = {"LD_LIBRARY_PATH": str(gmt.folder)}
    note = "DEBUGINFOD_URLS is set, but libdebuginfod.so.1 (Debian: libdebuginfod1) cannot be used."
    assert render(gmt, recording, env=env)["notes"] == []
    assert render(gmt, recording, env={**env, "DEBUGINFOD_URLS": "http://127.0.0.1:1/"})["notes"] == [note]


@needs_objcopy
@pytest.mark.skipif(not has_debuginfod(), reason="libdebuginfod.so.1 is not here (Debian: libdebuginfod1)")
def test_debuginfod_that_does_not_answer_is_asked_once(gmt, box, debug_server):
    path = box()
    subprocess.run(["objcopy", "--strip-all", path], check=True)
    identity, recording = build_id(path), record(gmt, path)
    os.unlink(path)  # so that there would be two questions: for the debug file, and for the program
    env = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{debug_server.server_port}/", "NO_PROXY": "127.0.0.1",
           "no_proxy": "127.0.0.1", "DEBUGINFOD_CACHE_PATH": str(gmt.folder / "cache")}
    render(gmt, recording, env=env)
    mine = [question for question in debug_server.asked if question.startswith(f"/buildid/{identity}/")]
    assert len(mine) == 2
    debug_server.shutdown()
    debug_server.socket.close()
    env["DEBUGINFOD_CACHE_PATH"] = str(gmt.folder / "other")
    notes = quickly(render, gmt, recording, env=env)["notes"]
    assert any(re.fullmatch(r"debuginfod \(DEBUGINFOD_URLS\) failed and was asked no further: .+\.", note)
               for note in notes), notes


def test_recording_of_another_host_says_how_to_go_on(gmt, box):
    path = box()
    recording = record(gmt, path)
    host = os.uname().nodename
    other = "x" * len(host)
    os.unlink(path)
    hint = "--sysroot or --debug-dir can say where they are here"
    assert not any(hint in note for note in render(gmt, recording)["notes"])
    data = recording.read_bytes()
    recording.write_bytes(data.replace(bytes([1, len(host)]) + host.encode(), bytes([1, len(host)]) + other.encode()))
    assert any(hint in note and f"({other})" in note for note in render(gmt, recording)["notes"])
    assert not any(hint in note for note in render(gmt, recording, "--debug-dir", gmt.folder)["notes"])


@needs_objcopy
@pytest.mark.skipif(not shutil.which("dwz"), reason="dwz is not here")
def test_debug_information_shared_by_several_files_is_found(gmt, compiled):
    """Distributions move what debug files have in common to a file of its own, named by a link and a build-id."""
    library = shutil.copy(compiled(MIXED / "attention.cc", "-fPIC", "-shared", "-Wl,--build-id"), gmt.folder / "a.so")
    debug, common = gmt.folder / "debug", gmt.folder / "common"
    split_debug(library, debug / "a.debug")
    common.mkdir()
    shutil.copy(debug / "a.debug", debug / "b.debug")
    subprocess.run(["dwz", "-m", common / "shared", "-M", "../common/shared", debug / "a.debug", debug / "b.debug"],
                   check=True)
    if not (common / "shared").exists():
        pytest.skip("this dwz shares nothing of so little")
    recording = gmt.run("/usr/bin/python3", MIXED / "train.py", library).recording

    def innermost():
        return render(gmt, recording, "--debug-dir", debug)["sites"][0]["frames"][0]["function"]

    assert innermost() == GROW
    shutil.move(common / "shared", debug / "whatever")  # known by its build-id alone
    assert innermost() == GROW
    os.unlink(debug / "whatever")
    assert innermost() != GROW
