"""Every call that the library makes to the C library and the kernel fails, one by one: the traced program does and
says what it does without us and ends with the same status, and what the reports lack is said.

`make test` lets the first, second and last call of each function fail, and one in between; FAULTS=all lets every
call fail, and prints the table.
"""
import errno
import json
import os
import re
import struct
import subprocess
import sys

import pytest
from conftest import LIBRARY, PRELOAD, PROGRAMS, SANITIZE, SIMGPU

pytestmark = pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer makes calls of its own from inside the library")

MIB = 1 << 20
ALL = os.environ.get("FAULTS") == "all"

# The errors that each function is made to fail with.
ERRORS = {
    "mmap": ["ENOMEM", "EPERM"], "open": ["EMFILE", "EACCES"], "fallocate": ["ENOSPC", "EOPNOTSUPP", "EDQUOT"],
    "pwrite": ["ENOSPC", "EINTR"], "write": ["ENOSPC", "EPIPE"], "ftruncate": ["EIO"], "close": ["EIO"],
    "madvise": ["EINVAL"], "__fxstat": ["EIO"], "fstatfs": ["ENOSYS"], "__lxstat": ["EACCES"], "getcwd": ["ENOENT"],
    "readlink": ["EACCES"], "clock_gettime": ["EPERM"], "read": ["EIO", "EINTR"], "pread": ["EIO"],
    "unlink": ["EACCES"], "uname": ["EFAULT"], "syscall": ["EPERM", "EFAULT"], "fcntl": ["EMFILE"],
    "getrlimit": ["EPERM"], "sysconf": ["EINVAL"], "munmap": ["EINVAL"], "__register_atfork": ["ENOMEM"],
    "pthread_mutex_timedlock": ["ETIMEDOUT"], "pthread_mutex_trylock": ["EBUSY"],
    "pthread_setcancelstate": ["EINVAL"], "pthread_sigmask": ["EPERM"], "sigpending": ["EPERM"],
    "sigtimedwait": ["EAGAIN"], "nanosleep": ["EINTR"], "getcontext": ["EPERM"], "swapcontext": ["ENOMEM"],
}
# Functions that have no failure, or whose failure is an answer: text, memory, numbers, the lock, a variable that is not
# set, a list of loaded files without an entry.
CANNOT_FAIL = {
    "dl_iterate_phdr", "secure_getenv", "__ctype_b_loc", "__cxa_finalize", "__environ", "__errno_location",
    "__snprintf_chk", "__sprintf_chk", "__stack_chk_fail", "__gmon_start__", "_ITM_deregisterTMCloneTable",
    "_ITM_registerTMCloneTable", "dlerror", "environ", "free", "getpid", "getppid", "gnu_get_libc_version",
    "makecontext", "memchr", "memcmp", "memcpy", "memmove", "memset", "pthread_mutex_init", "pthread_mutex_lock",
    "pthread_mutex_unlock", "pthread_once", "sched_yield", "sigaddset", "sigaltstack", "sigemptyset",
    "sigismember", "snprintf", "vsnprintf", "stpcpy", "strcat", "strchr", "strcmp", "strcspn", "strerror", "strlen",
    "strncmp", "strncpy", "strnlen", "strrchr", "strspn", "strstr", "strverscmp", "memmem",
}


def functions():
    """The injector's table, in its order."""
    text = (PROGRAMS / "faults.c").read_text()
    table = text[text.index("#define FUNCTIONS(X)"):text.index("#define AS_NUMBER")]
    return re.findall(r"X\((\w+), [-\w]+\)", table)


@pytest.fixture(scope="module")
def injector(compiled):
    return compiled("faults.c", "-shared", "-fPIC", "-fno-builtin")


PYTHON = """
import cuda, os, sys
cuda.init()
kept = [cuda.allocate((n + 1) << 20) for n in range(3)]
cuda.release(kept[0])
print("worked")
sys.stdout.flush()
sys.exit(7)
"""


class Subject:
    """A program that takes blocks of 1, 2 and 3 MiB and gives the first one back, in a bounded recording or not."""

    def __init__(self, gmt, injector, command, out, second_freed):
        self.gmt, self.injector, self.command, self.out = gmt, injector, command, out
        self.live = 3 * MIB if second_freed else 5 * MIB

    def run(self, **variables):
        folder = self.gmt.new_folder()
        env = self.gmt.environment(folder / "it", **variables)
        env["LD_PRELOAD"] = f"{self.injector}:{PRELOAD}"
        self.folder = folder
        return subprocess.run(list(map(str, self.command)), env=env, capture_output=True, text=True, timeout=60)

    def counts(self):
        names = functions()
        file = self.gmt.folder / "counts"
        file.write_bytes(bytes(4 * len(names)))
        self.expect_unharmed(self.run(FAULTS_COUNT=file), "nothing")
        return dict(zip(names, struct.unpack(f"<{len(names)}I", file.read_bytes())))

    def expect_unharmed(self, done, what):
        assert (done.returncode, done.stdout) == (7, self.out), f"{what}: {done.returncode} {done.stdout} {done.stderr}"
        assert all(line.startswith("gpumemtrace: ") for line in done.stderr.splitlines()), f"{what}: {done.stderr}"

    def is_exact(self, report):
        return report["counters"]["allocs"] == 3 and report["leaks"]["live_bytes"] == self.live \
            and report["process"]["complete"] and all(site["frames"] for site in report["sites"])

    def outcome(self, done):
        """What a reader is told: 'exact', or the sentence that says what is missing."""
        complaints = [line for line in done.stderr.splitlines() if not line.startswith("gpumemtrace: peak")]
        path = self.folder / "it.json"
        report = json.loads(path.read_text()) if path.exists() else None
        if report is not None and self.is_exact(report) and (self.folder / "it.txt").exists():
            rendered = self.gmt.tool("report", "--json", self.folder / "it.gmt", status=None)
            if rendered.returncode == 0 and self.is_exact(json.loads(rendered.stdout)):
                return "exact"
        said = complaints + (report["notes"] if report else [])
        return said[0].removeprefix("gpumemtrace: ").replace(f"{self.folder}/", "") if said else None

    def recording_is_whole(self):
        done = self.gmt.tool("report", "--json", self.folder / "it.gmt", status=None)
        return done.returncode == 0 and self.is_exact(json.loads(done.stdout))


@pytest.fixture(params=["C", "Python"])
def subject(request, gmt, injector, compiled):
    if request.param == "C":
        program = compiled("endings.c", SIMGPU / "libcuda.so.1", "-lpthread", "-Wno-nonnull")
        return Subject(gmt, injector, [program, "return"], "worked\n", True)
    return Subject(gmt, injector, [sys.executable, "-B", "-c", PYTHON], "worked\n", False)


def test_every_call_that_the_library_makes_is_known():
    done = subprocess.run(["nm", "-D", "--undefined-only", LIBRARY], capture_output=True, text=True, check=True)
    imported = {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}
    assert imported - set(functions()) - CANNOT_FAIL == set()


def chosen(count, error):
    """Which of a function's calls are made to fail; 0 for all of them, but who is interrupted tries again."""
    everything = range(1, count + 1)
    each = everything if ALL else sorted({1, 2, (count + 1) // 2, count} & set(everything))
    return [*each] if error == "EINTR" else [0, *each]


def test_any_call_may_fail(subject):
    table, silent = [], []
    for function, count in subject.counts().items():
        for error in ERRORS.get(function, ["0"]):
            number = getattr(errno, error, 0)
            said = {}
            for call in chosen(count, error) if count else []:
                done = subject.run(FAULTS_FAIL=f"{function}:{call}:{number}")
                what = f"call {call or 'all'} of {count} of {function}, {error}"
                subject.expect_unharmed(done, what)
                outcome = subject.outcome(done)
                if outcome is None and function == "write" and call == 0 and subject.recording_is_whole():
                    outcome = "nothing, since nothing can be written; the recording is whole"
                if outcome is None:
                    silent.append(what)
                said[outcome] = said.get(outcome, 0) + 1
            if count:
                table.append((function, error, count, said))
    for function, error, count, said in table:
        outcomes = "; ".join(f"{times} × {sentence}" for sentence, times in said.items())
        print(f"{function:26}{error:12}{count:4} calls  {outcomes}")
    assert silent == [], f"something is missing and nobody says so: {silent}"
