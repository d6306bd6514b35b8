"""Disks that are full, files that change under us, limits, sandboxes, clocks: the program goes on as it would without
us, and what the reports lack is said."""
import errno
import json
import os
import subprocess

import pytest
from conftest import PRELOAD, SANITIZE, SIMGPU

MIB = 1 << 20

PROGRAM = """
    import os, sys
    import cuda
    cuda.init()
    recording = os.environ["GPUMEMTRACE_OUTPUT"].replace("%p", str(os.getpid())) + ".gmt"
    kept = [cuda.allocate(1 << 20) for _ in range(5)]
    {meanwhile}
    for n in range(20000):
        cuda.release(cuda.allocate(4096))
    kept += [cuda.allocate(1 << 20) for _ in range(5)]
    print("worked")
    """


def expect_unharmed(done, word):
    """Its work was done, and one line of ours or a note of the report has the word."""
    assert done.out == "worked\n"
    lines = done.err.splitlines()
    assert all(line.startswith("gpumemtrace: ") for line in lines), done.err
    notes = [note for report in done.reports for note in report["notes"]]
    assert any(word in text for text in lines + notes), (lines, notes)


def expect_exact(report):
    assert report["leaks"]["live_bytes"] == 10 * MIB and report["process"]["complete"]
    assert report["counters"]["allocs"] == 20010 and report["counters"]["frees"] == 20000


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 5000, 100000, 700000])
def test_recording_that_is_truncated_meanwhile(gmt, size):
    done = gmt.python(PROGRAM.format(meanwhile=f"os.truncate(recording, {size})"))
    expect_unharmed(done, "somebody made the file shorter")
    expect_exact(done.report)
    assert gmt.tool("report", done.recording, status=None).returncode in (0, 2)


@pytest.mark.parametrize("meanwhile", [
    "os.unlink(recording)", "os.rename(recording, recording + '.old')",
    "os.unlink(recording); os.mkdir(recording)", "os.chmod(recording, 0)",
    "os.unlink(recording); open(recording, 'w').write('another')"])
def test_recording_whose_name_goes_to_something_else(gmt, meanwhile):
    done = gmt.python(PROGRAM.format(meanwhile=meanwhile))
    assert done.out == "worked\n"
    expect_exact(done.report)
    if "another" in meanwhile:
        assert done.recordings[0].read_text() == "another"
    if "rename" in meanwhile:
        (moved,) = done.folder.glob("*.old")
        expect_exact(gmt.rendered(moved))


@pytest.fixture
def small_disk(gmt):
    """small_disk(bytes): a folder on a disk of that size."""
    if os.getuid() != 0:
        pytest.skip("mounts a file system: needs root")
    mounted = []

    def mount(size):
        place = gmt.new_folder()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place], capture_output=True).returncode:
            pytest.skip("this machine does not let us mount a file system")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("pages", [1, 2, 3, 8, 64, 255, 256, 257, 258, 259, 260, 262, 264, 300, 511, 512, 513, 600])
def test_disk_that_is_full_after_so_many_pages(gmt, small_disk, pages):
    """A recording takes its space a MiB, or 256 pages, at a time; the reports take a few pages behind it."""
    place = small_disk(pages * 4096)
    done = gmt.python(PROGRAM.format(meanwhile="pass"), env={"GPUMEMTRACE_OUTPUT": place / "it"})
    assert done.out == "worked\n"
    written = {path.suffix: path for path in place.iterdir()}
    if ".json" in written:
        expect_exact(json.loads(written[".json"].read_text()))
    whole = ".gmt" in written and json.loads(gmt.tool("report", "--json", written[".gmt"]).stdout)
    if not whole or not whole["process"]["complete"] or written.keys() != {".gmt", ".json", ".txt"}:
        notes = json.loads(written[".json"].read_text())["notes"] if ".json" in written else []
        assert any("No space left on device" in text for text in done.err.splitlines() + notes)
    if whole and whole["process"]["complete"]:
        expect_exact(whole)


def test_quota_of_the_process_reached_in_the_middle(gmt):
    """RLIMIT_FSIZE, whose signal would end the program."""
    done = gmt.python(PROGRAM.format(meanwhile="import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100000,) * 2)"))
    assert done.out == "worked\n"
    expect_exact(done.report)


@pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer maps terabytes")
def test_address_space_that_may_not_grow(gmt):
    """From some allocations on: no memory for new stacks, sites and blocks, and none for the reports. What the program's
    own malloc needs it has already, traced or not."""
    for room in [0, 1 << 16, 1 << 18, 1 << 20, 4 << 20, 64 << 20]:
        done = gmt.python(PROGRAM.format(meanwhile=f"""
    import resource
    own = [bytes(100_000) for _ in range(40)]
    del own[:-1]
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + {room}
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
    """.strip()), status=None)
        plain = gmt.python(PROGRAM.format(meanwhile=f"""
    import resource
    own = [bytes(100_000) for _ in range(40)]
    del own[:-1]
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + {room}
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
    """.strip()), status=None, traced=False, env={"GPUMEMTRACE_OUTPUT": "it"})
        assert (done.status, done.out) == (plain.status, plain.out), (room, done.err, plain.err)


CALLS = ["openat", "mmap", "munmap", "fallocate", "ftruncate", "fstat", "newfstatat", "fstatfs", "madvise", "pwrite64",
         "pread64", "read", "write", "readlink", "fcntl", "prlimit64", "getcwd", "uname", "process_vm_readv",
         "rt_sigprocmask", "rt_sigtimedwait", "rt_sigpending", "getppid", "gettid", "unlink", "close", "mprotect", "lseek",
         "stat", "lstat", "open", "getrlimit", "sched_yield", "clock_gettime"]


def call_numbers():
    text = subprocess.run(["cc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"], capture_output=True,
                          text=True, check=True).stdout
    found = dict(line.split()[1:3] for line in text.splitlines() if line.startswith("#define __NR_"))
    return {name: int(found[f"__NR_{name}"]) for name in CALLS if f"__NR_{name}" in found}


@pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer makes calls of its own")
@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
def test_sandbox_that_refuses_a_call(gmt, compiled, error):
    program = compiled("refused.c", SIMGPU / "libcuda.so.1")
    for name, number in call_numbers().items():
        arguments = [number, getattr(errno, error)]
        plain = gmt.run(program, *arguments, traced=False, status=None)
        if plain.status == 77:
            pytest.skip("this machine does not let us make a sandbox")
        done = gmt.run(program, *arguments, status=None)
        assert (done.status, done.out) == (plain.status, plain.out), (name, done.err)
        assert all(line.startswith("gpumemtrace: ") for line in done.err.splitlines()), (name, done.err)
        exact = len(done.reports) == 1 and done.report["leaks"]["live_bytes"] == 5 * MIB
        print(f"{name:18}{error:8}", "exact" if exact else done.err.strip() or "not a word")
        assert exact or done.err or plain.status != 7 or name in ("write", "fstat", "newfstatat"), name


@pytest.mark.skipif(os.getuid() != 0, reason="takes /proc away: needs root")
def test_machine_without_proc(gmt, compiled):
    program = compiled("endings.c", SIMGPU / "libcuda.so.1", "-lpthread", "-Wno-nonnull")
    done = gmt.run("unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$0" return || exit 77', program, status=None)
    if done.status != 7:
        pytest.skip("this machine does not let us take /proc away")
    assert done.report["leaks"]["live_bytes"] == 3 * MIB
    assert done.report["process"]["complete"]
    assert gmt.rendered(done.recording)["leaks"]["live_bytes"] == 3 * MIB


@pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer reads clocks of its own")
def test_clock_that_goes_back(gmt, compiled):
    injector = compiled("faults.c", "-shared", "-fPIC", "-fno-builtin")
    done = gmt.python(PROGRAM.format(meanwhile="pass"),
                      env={"FAULTS_CLOCK": "back", "LD_PRELOAD": f"{injector}:{PRELOAD}"})
    assert done.out == "worked\n"
    expect_exact(done.report)
    expect_exact(gmt.rendered(done.recording))
