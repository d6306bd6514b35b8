"""Whatever is wrong around the library, one clear line says so and the program runs on as it would without us."""
import os
import shutil
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import CC, LIBRARY, SANITIZE, SIMGPU

PROGRAM = """
    import cuda
    cuda.init()
    kept = [cuda.allocate(1 << 20) for _ in range(5)]
    cuda.release(kept[0])
    print("worked")
    """


def expect_unharmed(done, *words):
    """The program did its work, and one line of ours names what is wrong."""
    assert done.out == "worked\n"
    lines = done.err.splitlines()
    assert all(line.startswith("gpumemtrace:") for line in lines), done.err
    for word in words:
        assert sum(word in line for line in lines) == 1, f"{word!r} should be in one line of:\n{done.err}"


def test_output_folder_that_does_not_exist(gmt):
    done = gmt.python(PROGRAM, env={"GPUMEMTRACE_OUTPUT": gmt.folder / "no" / "such" / "gmt.%p"})
    expect_unharmed(done, "No such file or directory")


def test_output_folder_that_is_a_file(gmt):
    (gmt.folder / "file").write_text("")
    done = gmt.python(PROGRAM, env={"GPUMEMTRACE_OUTPUT": gmt.folder / "file" / "gmt.%p"})
    expect_unharmed(done, "Not a directory")
    assert (gmt.folder / "file").read_text() == ""


def test_current_folder_that_is_gone(gmt):
    for output in [None, "run.%p"]:
        folder = gmt.new_folder()
        done = gmt.run("sh", "-c", f'cd "{folder}" && rmdir "{folder}" && exec "$0" "$@"', sys.executable, "-c",
                       textwrap.dedent(PROGRAM), env={"GPUMEMTRACE_OUTPUT": output, "GPUMEMTRACE_QUIET": "1"})
        expect_unharmed(done, "No such file or directory")
        assert len(done.err.splitlines()) == 1


def test_output_folder_that_goes_away_is_not_pointed_at(gmt):
    folder = gmt.folder / "going"
    folder.mkdir()
    done = gmt.python(PROGRAM + """
    import os, sys
    os.rename(sys.argv[1], sys.argv[1] + ".gone")
    """, folder, env={"GPUMEMTRACE_OUTPUT": folder / "gmt"})
    expect_unharmed(done, "No such file or directory", "peak")
    assert "report:" not in done.err


@pytest.mark.skipif(os.getuid() != 0, reason="mounts a file system: needs root")
@pytest.mark.parametrize("options, word", [("size=4k,ro", "Read-only file system"),
                                           ("size=64k", "No space left on device")], ids=["read-only", "full"])
def test_output_folder_that_cannot_be_written(gmt, options, word):
    place = gmt.folder / "mounted"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place], capture_output=True).returncode:
        pytest.skip("this machine does not let us mount a file system")
    try:
        if "ro" not in options.split(","):
            with open(place / "filler", "wb") as filler:
                filler.write(b"x" * (60 << 10))
        done = gmt.python(PROGRAM, env={"GPUMEMTRACE_OUTPUT": place / "gmt.%p"})
        expect_unharmed(done, word)
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("limit", [0, 4096, 10000])
def test_files_may_not_grow(gmt, limit):
    """RLIMIT_FSIZE also sends a signal, SIGXFSZ, whose default ends the process: the library must not raise it."""
    done = gmt.python(f"""
        import resource
        import cuda
        cuda.init()
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
        kept = [cuda.allocate(1 << 20) for _ in range(5)]
        print("worked")
        """)
    assert done.out == "worked\n"
    assert len([line for line in done.err.splitlines() if "File too large" in line]) == 1, done.err


def test_no_file_descriptor_is_left(gmt):
    done = gmt.python("""
        import os, resource
        import cuda
        cuda.init_driver(0)
        context = cuda.context_retain(0)
        cuda.context_use(context)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        cuda.allocate(1 << 20)
        print("worked")
        """)
    assert done.out == "worked\n"


NONSENSE = {
    "GPUMEMTRACE_STACKS": "sideways",
    "GPUMEMTRACE_DEPTH": "very",
    "GPUMEMTRACE_MAX_TRACE": "12 parsecs",
    "GPUMEMTRACE_REPORT": "text,carrier-pigeon",
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_value_is_named_once_and_its_default_used(gmt, name):
    done = gmt.python(PROGRAM, env={name: NONSENSE[name]})
    assert done.out == "worked\n"
    lines = [line for line in done.err.splitlines() if name in line]
    assert len(lines) == 1 and NONSENSE[name] in lines[0], done.err
    assert done.report["counters"]["allocs"] == 5
    assert done.report["leaks"]["live_bytes"] == 4 << 20
    assert done.texts


def test_pattern_with_an_unknown_letter_is_named_and_the_default_used(gmt):
    folder = gmt.new_folder()
    done = gmt.python(PROGRAM, env={"GPUMEMTRACE_OUTPUT": "%q.%p"}, cwd=folder)
    assert done.out == "worked\n"
    first, *_ = done.err.splitlines()
    assert "GPUMEMTRACE_OUTPUT" in first and "%q.%p" in first
    assert {path.suffix for path in folder.glob("gpumemtrace.*")} == {".gmt", ".txt", ".json"}


@pytest.mark.thread_sanitizer_cannot("use libunwind")
def test_missing_libunwind_is_said_once_and_python_frames_remain(gmt):
    shadow = gmt.folder / "shadow"
    shadow.mkdir()
    (shadow / "libunwind.so.8").write_text("not a library")
    done = gmt.python(PROGRAM, env={"LD_LIBRARY_PATH": f"{shadow}:{SIMGPU}"})
    assert done.out == "worked\n"
    assert len([line for line in done.err.splitlines() if "libunwind.so.8" in line]) == 1, done.err
    assert len([note for note in done.report["notes"] if "libunwind" in note]) == 1
    (site,) = done.report["sites"]
    assert [frame["line"] for frame in site["frames"] if frame["kind"] == "python"][0] == 4


NESTED = """
    #include <stddef.h>
    int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
    int cuMemAlloc_v2(unsigned long long *, size_t);
    static int __attribute__((noinline)) inner(size_t bytes)
    {
        unsigned long long address;
        return cuMemAlloc_v2(&address, bytes) + (address == 0);
    }
    int __attribute__((noinline)) outer(size_t bytes)
    {
        return inner(bytes) + inner(2 * bytes);
    }
    int main(void)
    {
        void *context;
        return cuInit(0) + cuDevicePrimaryCtxRetain(&context, 0) + cuCtxSetCurrent(context) + outer(4096);
    }
"""


@pytest.mark.skipif(bool(SANITIZE), reason="its runtime needs libgcc itself")
@pytest.mark.parametrize("missing", [["libunwind.so.8"], ["libunwind.so.8", "libgcc_s.so.1"]])
def test_native_stacks_do_without_what_unwinders_are_missing(gmt, compiled, tmp_path, missing):
    """By our own walk on x86-64, by glibc's backtrace elsewhere, as long as that has its libgcc."""
    source = tmp_path / "nested.c"
    source.write_text(NESTED)
    for name in missing:
        (tmp_path / name).write_text("not a library")
    program = compiled(source, f"-L{SIMGPU}", "-l:libcuda.so.1")
    done = gmt.run(program, env={"LD_LIBRARY_PATH": f"{tmp_path}:{SIMGPU}"})
    (note,) = [note for note in done.report["notes"] if "libunwind" in note]
    assert all(name in note for name in missing)
    machine = subprocess.run([CC, "-dumpmachine"], capture_output=True, text=True, check=True).stdout
    if "libgcc_s.so.1" in missing and "x86_64" not in machine:
        return
    stacks = [[frame["function"] for frame in site["frames"]] for site in gmt.rendered(done.recording)["sites"]]
    assert len(stacks) == 2 and all(stack[:3] == ["inner", "outer", "main"] for stack in stacks), stacks


def test_disabled_library_does_nothing(gmt):
    done = gmt.python(PROGRAM, env={"GPUMEMTRACE_DISABLE": "1"})
    assert (done.out, done.err) == ("worked\n", "")
    assert not list(done.folder.iterdir())


def test_quiet_library_writes_files_and_no_line(gmt):
    done = gmt.python(PROGRAM, env={"GPUMEMTRACE_QUIET": "1"})
    assert (done.out, done.err) == ("worked\n", "")
    assert done.report and done.text


def test_summary_line_names_peak_what_is_live_and_the_report(gmt):
    done = gmt.python(PROGRAM)
    (line,) = done.err.splitlines()
    assert "5.0 MiB" in line and "4.0 MiB" in line and str(done.texts[0]) in line


def test_a_process_that_allocates_nothing_leaves_no_trace(gmt):
    for source in ["pass", "import cuda; cuda.init()", "import sys; sys.exit(3)"]:
        done = gmt.python(source, status=3 if "exit" in source else 0)
        assert (done.out, done.err, list(done.folder.iterdir())) == ("", "", []), source


def test_files_are_for_their_owner_alone_and_never_overwrite(gmt):
    folder = gmt.new_folder()
    first, second = (gmt.python(PROGRAM, env={"GPUMEMTRACE_OUTPUT": folder / "same"}) for _ in range(2))
    assert first.out == second.out == "worked\n"
    assert len(list(folder.glob("*.gmt"))) == 2
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.glob("*.gmt"))


def test_files_never_follow_a_link(gmt):
    folder = gmt.new_folder()
    victim = gmt.folder / "victim"
    victim.write_text("precious")
    for suffix in ("gmt", "json", "txt"):
        (folder / f"stem.{suffix}").symlink_to(victim)
    done = gmt.python(PROGRAM, env={"GPUMEMTRACE_OUTPUT": folder / "stem"})
    assert done.out == "worked\n"
    assert victim.read_text() == "precious"


@pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer's own start-up is many times the library's")
def test_start_costs_a_process_without_cuda_under_two_milliseconds(gmt):
    true = shutil.which("true")

    def fastest(env):
        times = []
        for _ in range(60):
            start = time.perf_counter()
            os.waitpid(os.posix_spawn(true, [true], env), 0)
            times.append(time.perf_counter() - start)
        times.sort()
        return sum(times[:20]) / 20

    plain = fastest({"PATH": os.environ["PATH"]})
    traced = fastest({"PATH": os.environ["PATH"], "LD_PRELOAD": str(LIBRARY)})
    print(f"start and end of /bin/true: {plain * 1e3:.2f} ms, with the library {traced * 1e3:.2f} ms")
    assert traced - plain < 0.002


def test_exit_status_and_signals_of_the_program_stay(gmt):
    for ending, status in [("sys.exit(5)", 5), ("os._exit(6)", 6), ("os.abort()", -6),
                           ("os.kill(os.getpid(), 15)", -15)]:
        done = gmt.python(f"""
            import os, sys
            import cuda
            cuda.init()
            cuda.allocate(4096)
            {ending}
            """, status=status, env={"GPUMEMTRACE_QUIET": "1"})
        assert done.out == ""
        assert gmt.rendered(done.recording)["leaks"]["live_bytes"] == 4096


SMALL_STACK = """
    #include <dlfcn.h>
    #include <limits.h>
    #include <pthread.h>
    #include <stdlib.h>
    #include <unistd.h>
    int cuInit(unsigned int);
    int cuDevicePrimaryCtxRetain(void **, int);
    int cuCtxSetCurrent(void *);
    int cuMemAlloc_v2(unsigned long long *, size_t);
    typedef int allocate(int (*)(unsigned long long *, size_t), size_t);
    static allocate *plugin;
    static void *context;
    static void *work(void *leave)
    {
        cuCtxSetCurrent(context);
        plugin(cuMemAlloc_v2, 1 << 20);
        plugin(cuMemAlloc_v2, (size_t)1 << 50); /* is refused */
        if (leave)
            _exit(0);
        return NULL;
    }
    int main(int count, char **arguments)
    {
        pthread_t thread;
        pthread_attr_t small;
        if (chdir(arguments[1]) != 0)
            return 1;
        plugin = (allocate *)dlsym(dlopen("./plugin.so", RTLD_NOW), "allocate");
        cuInit(0);
        cuDevicePrimaryCtxRetain(&context, 0);
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
        pthread_create(&thread, &small, work, count > 2 ? context : NULL);
        pthread_join(thread, NULL);
        return 0;
    }
    """
PLUGIN = """
    #include <stddef.h>
    int allocate(int (*real)(unsigned long long *, size_t), size_t bytes)
    {
        unsigned long long block;
        return real(&block, bytes) + 1;
    }
    """


@pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer's own code needs more stack than there is")
@pytest.mark.parametrize("leave", [[], ["leave"]], ids=["exit", "_exit"])
def test_a_thread_with_the_smallest_stack_can_do_everything(gmt, tmp_path, compiled, leave):
    """It begins the recording, names a module that was loaded by a relative path, is refused memory, and may end all."""
    (tmp_path / "small.c").write_text(SMALL_STACK)
    (tmp_path / "plugin.c").write_text(PLUGIN)
    program = compiled(tmp_path / "small.c", SIMGPU / "libcuda.so.1", "-ldl", "-lpthread")
    shutil.copy(compiled(tmp_path / "plugin.c", "-shared", "-fPIC"), tmp_path / "plugin.so")
    done = gmt.run(program, tmp_path, *leave, env={"GPUMEMTRACE_QUIET": "1"})
    assert done.report["counters"]["allocs"] == 1 and len(done.report["ooms"]) == 1
    assert done.report["sites"][0]["frames"][0]["module"] == str(tmp_path / "plugin.so")


SANDBOX = """
    #include <linux/filter.h>
    #include <linux/seccomp.h>
    #include <stddef.h>
    #include <sys/prctl.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    int main(int count, char **arguments)
    {
        struct sock_filter only_exit[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {4, only_exit};
        (void)arguments;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            return 77;
        if (count > 1)
            _exit(3);
        return 3;
    }
    """


@pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer asks the kernel for more at exit")
@pytest.mark.parametrize("how", [[], ["_exit"]], ids=["exit", "_exit"])
def test_a_sandbox_that_allows_nothing_but_to_exit_is_kept(gmt, tmp_path, compiled, how):
    (tmp_path / "sandbox.c").write_text(SANDBOX)
    program = compiled(tmp_path / "sandbox.c")
    if gmt.run(program, *how, traced=False, status=None).status == 77:
        pytest.skip("this machine does not let us make a sandbox")
    gmt.run(program, *how, status=3)
