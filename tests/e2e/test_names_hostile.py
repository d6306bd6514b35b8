"""Naming frames opens nothing but regular files, starts no program, and ends in time, whatever a recording names, however
many or large."""
import json
import os
import resource
import shutil

import pytest
from conftest import PROGRAMS, SANITIZE, SIMGPU
from named_program import MIXED, PROGRAM, WHOLE, box, places, quickly, record, render


def renamed(recording, old, new, name="hostile.gmt"):
    """A copy of the recording that names another file, whose path is no longer."""
    old, new = str(old).encode(), str(new).encode()
    assert len(new) <= len(old)
    data = recording.read_bytes()
    assert old in data
    copy = recording.with_name(name)
    copy.write_bytes(data.replace(old, new.rjust(len(old), b"/")))
    return copy


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
