"""Processes: forks, children, pools; each has files of its own, and a child never writes into its parent's."""
import json
import os
import subprocess
import sys

import pytest
from conftest import SIMGPU, TIMEOUT, TOOL

MIB = 1 << 20


def by_pid(done):
    return {report["process"]["pid"]: report for report in done.reports}


def test_forked_children_write_their_own_files(gmt):
    done = gmt.python("""
        import os
        import cuda
        children = []
        for n in range(3):
            pid = os.fork()
            if pid == 0:
                cuda.init()
                cuda.allocate((n + 1) << 20)
                os._exit(0)
            children.append(pid)
        for pid in children:
            os.waitpid(pid, 0)
        cuda.init()
        cuda.allocate(10 << 20)
        print(os.getpid(), *children)
        """, env={"GPUMEMTRACE_QUIET": "1"})
    parent, *children = map(int, done.out.split())
    recorded = {int(path.name.split(".")[1]): gmt.rendered(path) for path in done.recordings}
    assert recorded.keys() == {parent, *children}
    for n, child in enumerate(children):
        assert recorded[child]["leaks"]["live_bytes"] == (n + 1) * MIB
        assert recorded[child]["process"]["pid"] == child
        assert recorded[child]["process"]["ppid"] == parent
        assert recorded[child]["counters"]["allocs"] == 1
    assert recorded[parent]["leaks"]["live_bytes"] == 10 * MIB
    assert recorded[parent]["counters"]["allocs"] == 1
    assert by_pid(done)[parent]["leaks"]["live_bytes"] == 10 * MIB


# Inside a namespace of processes of its own: one that holds memory is killed, and the next one gets its number.
SAME_NUMBER = """
import json, os, signal, subprocess, sys
tool, program, folder, env = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])

def start(megabytes):
    process = subprocess.Popen([sys.executable, program, str(megabytes)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\\n"
    return process

def end_of(name):
    report = json.loads(subprocess.check_output([tool, "report", "--json", os.path.join(folder, name)]))
    return [report["process"]["pid"], report["process"]["end"], report["leaks"]["live_bytes"] >> 20]

killed = start(3)
(first,) = os.listdir(folder)
killed.send_signal(signal.SIGKILL)
killed.wait()
with open("/proc/sys/kernel/ns_last_pid", "w") as last:
    last.write(str(killed.pid - 1))
running = start(5)
(second,) = set(os.listdir(folder)) - {first}
print(json.dumps([[killed.pid, end_of(first)], [running.pid, end_of(second)]]))
running.kill()
"""


def test_a_process_that_gets_the_number_of_a_killed_one_is_told_from_it(gmt):
    """Each has a recording of its own, and the killed one's does not pass for that of a running process."""
    space = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*space, "sh", "-c", "echo 100 >/proc/sys/kernel/ns_last_pid"], capture_output=True).returncode:
        pytest.skip("processes cannot be numbered here: needs root")
    driver, program, folder = gmt.folder / "driver.py", gmt.folder / "program.py", gmt.new_folder()
    driver.write_text(SAME_NUMBER)
    program.write_text("import sys\nimport cuda\ncuda.init()\ncuda.allocate(int(sys.argv[1]) << 20)\n"
                       "print('held', flush=True)\nsys.stdin.read()\n")
    env = gmt.environment(folder / "gmt.%p", GPUMEMTRACE_REPORT="none")
    done = subprocess.run([*space, sys.executable, driver, TOOL, program, folder, json.dumps(env)], capture_output=True,
                          text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    killed, running = json.loads(done.stdout)
    assert killed[0] == running[0]
    assert killed[1] == [killed[0], "killed", 3] and running[1] == [running[0], "running", 5]


def test_a_child_forked_after_first_use_leaves_the_parents_recording_alone(gmt):
    done = gmt.python("""
        import os
        import cuda
        cuda.init()
        kept = cuda.allocate(1 << 20)
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                try:
                    cuda.allocate(7 << 20)
                except cuda.CudaError:
                    pass
                os._exit(0)
            os.waitpid(pid, 0)
        cuda.release(kept)
        cuda.allocate(2 << 20)
        print(os.getpid())
        """, env={"GPUMEMTRACE_QUIET": "1"})
    parent = int(done.out)
    report = by_pid(done)[parent]
    assert report["counters"]["allocs"] == 2 and report["counters"]["frees"] == 1
    assert report["leaks"]["live_bytes"] == 2 * MIB
    (recording,) = [path for path in done.recordings if path.name == f"gmt.{parent}.gmt"]
    assert gmt.rendered(recording)["counters"] == report["counters"]


def test_children_that_do_not_allocate_leave_no_files(gmt):
    done = gmt.python("""
        import os, subprocess, sys
        import cuda
        cuda.init()
        cuda.allocate(1 << 20)
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        subprocess.run("true", shell=True, check=True)
        """, env={"GPUMEMTRACE_QUIET": "1"})
    assert len(done.recordings) == len(done.reports) == 1


@pytest.mark.parametrize("variables, error", [({"LD_LIBRARY_PATH": None}, 35), ({"SIMGPU_DEVICES": "0"}, 100)],
                         ids=["no driver", "no device"])
def test_a_program_that_finds_no_gpu_and_goes_on_leaves_no_files(gmt, variables, error):
    """By the runtime's own numbers: cudaErrorInsufficientDriver, cudaErrorNoDevice."""
    done = gmt.python("""
        import ctypes, sys
        runtime, address, size = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p(), ctypes.c_size_t(1 << 20)
        print([runtime.cudaMalloc(ctypes.byref(address), size), runtime.cudaMallocHost(ctypes.byref(address), size)])
        """, SIMGPU / "libcudart.so.12", env=variables)
    assert done.out == f"[{error}, {error}]\n" and done.err == ""
    assert list(done.folder.iterdir()) == []


def test_an_allocation_before_the_driver_was_initialised_begins_nothing(gmt):
    done = gmt.python("""
        import cuda
        try:
            cuda.allocate(1 << 20)
        except cuda.CudaError as error:
            print(error.code)
        cuda.init()
        cuda.allocate(1 << 20)
        """)
    assert done.out == "3\n"
    assert done.report["counters"]["allocs"] == 1 and done.report["counters"]["failed_allocs"] == 0


def test_a_forked_child_keeps_its_standard_streams(gmt):
    """Before first use, and after: our own descriptor is closed in the child, and no other."""
    done = gmt.python("""
        import os
        import cuda
        for turn in range(2):
            pid = os.fork()
            if pid == 0:
                os._exit(0 if all(os.fstat(n) for n in range(3)) else 1)
            assert os.waitpid(pid, 0)[1] == 0, turn
            cuda.init()
            cuda.allocate(1 << 20)
        """, stdin=subprocess.DEVNULL)
    assert len(done.recordings) == 1


def test_worker_pool_gives_each_worker_its_report(gmt):
    done = gmt.python("""
        import multiprocessing
        import cuda

        def work(n):
            cuda.init()
            cuda.allocate((n + 1) << 20)

        if __name__ == "__main__":
            multiprocessing.set_start_method("fork")
            workers = [multiprocessing.Process(target=work, args=(n,)) for n in range(4)]
            for worker in workers: worker.start()
            for worker in workers: worker.join()
            assert all(worker.exitcode == 0 for worker in workers)
        """, env={"GPUMEMTRACE_QUIET": "1"})
    assert sorted(gmt.rendered(path)["leaks"]["live_bytes"] for path in done.recordings) == \
        [n * MIB for n in (1, 2, 3, 4)]


def test_exec_keeps_both_programs_books(gmt):
    done = gmt.python("""
        import os, sys
        import cuda
        cuda.init()
        cuda.allocate((1 if len(sys.argv) == 1 else 2) << 20)
        if len(sys.argv) == 1:
            os.execv(sys.executable, [sys.executable, __file__, "again"])
        """, env={"GPUMEMTRACE_QUIET": "1"})
    assert sorted(gmt.rendered(path)["leaks"]["live_bytes"] for path in done.recordings) == [MIB, 2 * MIB]


def test_destructors_and_exit_handlers_that_free_are_counted(gmt, tmp_path, compiled):
    source = tmp_path / "handlers.c"
    source.write_text("""
        #include <stdlib.h>
        int cuInit(unsigned int);
        int cuDevicePrimaryCtxRetain(void **, int);
        int cuCtxSetCurrent(void *);
        int cuMemAlloc_v2(unsigned long long *, size_t);
        int cuMemFree_v2(unsigned long long);
        static unsigned long long blocks[3];
        static void at_exit(void) { cuMemFree_v2(blocks[0]); }
        __attribute__((destructor)) static void destroy(void) { cuMemFree_v2(blocks[1]); }
        int main(void)
        {
            void *context;
            cuInit(0);
            cuDevicePrimaryCtxRetain(&context, 0);
            cuCtxSetCurrent(context);
            for (int i = 0; i < 3; i++)
                cuMemAlloc_v2(&blocks[i], 1 << 20);
            atexit(at_exit);
            return 0;
        }
        """)
    done = gmt.run(compiled(source, SIMGPU / "libcuda.so.1"), env={"GPUMEMTRACE_QUIET": "1"})
    assert done.report["counters"]["frees"] == 2
    assert done.report["leaks"]["live_blocks"] == 1


def test_pool_of_32_workers(gmt):
    """As a DataLoader's: forked before first use, some never allocate, all end by os._exit."""
    done = gmt.python("""
        import multiprocessing
        import cuda

        def work(n):
            if n % 4:
                cuda.init()
                cuda.allocate((n + 1) << 10)
            return n

        if __name__ == "__main__":
            multiprocessing.set_start_method("fork")
            workers = [multiprocessing.Process(target=work, args=(n,)) for n in range(32)]
            for worker in workers: worker.start()
            for worker in workers: worker.join()
            assert all(worker.exitcode == 0 for worker in workers)
        """, env={"GPUMEMTRACE_QUIET": "1"})
    assert sorted(report["leaks"]["live_bytes"] for report in done.reports) == \
        sorted((n + 1) << 10 for n in range(32) if n % 4)
    assert len({report["process"]["pid"] for report in done.reports}) == len(done.recordings) == 24
    assert {report["process"]["ppid"] for report in done.reports} == {done.reports[0]["process"]["ppid"]}


def test_spawned_programs_have_files_of_their_own(gmt):
    done = gmt.python("""
        import os, sys
        import cuda
        cuda.init()
        cuda.allocate(1 << 20)
        code = "import cuda; cuda.init(); cuda.allocate(2 << 20)"
        pid = os.posix_spawn(sys.executable, [sys.executable, "-c", code], os.environ)
        assert os.waitpid(pid, 0)[1] == 0
        assert os.system(f"{sys.executable} -c '{code}'") == 0
        """, env={"GPUMEMTRACE_QUIET": "1"})
    assert sorted(report["leaks"]["live_bytes"] for report in done.reports) == [MIB, 2 * MIB, 2 * MIB]


def test_ranks_of_a_job_share_a_folder(gmt):
    """They start at once, with one name for all that tells them apart only by a number."""
    folder = gmt.new_folder()
    ranks = 12
    running = [subprocess.Popen([sys.executable, "-c", f"import cuda; cuda.init(); cuda.allocate({rank + 1} << 20)"],
                                env=gmt.environment(folder / "job", RANK=rank, GPUMEMTRACE_QUIET=1))
               for rank in range(ranks)]
    assert [process.wait() for process in running] == [0] * ranks
    reports = [json.loads(path.read_text()) for path in folder.glob("job*.json")]
    assert {report["process"]["rank"]: report["leaks"]["live_bytes"] for report in reports} == \
        {rank: (rank + 1) * MIB for rank in range(ranks)}
    for path in folder.glob("job*.gmt"):
        written = json.loads(path.with_suffix(".json").read_text())
        assert gmt.rendered(path)["process"] == written["process"]


def test_program_that_changes_its_folder_writes_where_it_started(gmt):
    folder, other = gmt.new_folder(), gmt.new_folder()
    gmt.python("""
        import os, sys
        import cuda
        os.chdir(sys.argv[1])
        cuda.init()
        cuda.allocate(1 << 20)
        os.chdir("/")
        """, other, env={"GPUMEMTRACE_OUTPUT": "it", "GPUMEMTRACE_QUIET": "1"}, cwd=folder)
    assert sorted(path.name for path in folder.iterdir()) == ["it.gmt", "it.json", "it.txt"]
    assert list(other.iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="mounts a file system: needs root")
@pytest.mark.parametrize("kind", ["tmpfs", "overlay", "ramfs"])
def test_output_folder_of_another_kind(gmt, kind):
    """ramfs cannot reserve space, so the recording is not mapped there."""
    place = gmt.new_folder()
    options = []
    if kind == "overlay":
        base = gmt.new_folder()
        subprocess.run(["mount", "-t", "tmpfs", "none", base], check=True, capture_output=True)
        for name in ("lower", "upper", "work"):
            (base / name).mkdir()
        options = ["-o", f"lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work"]
    try:
        if subprocess.run(["mount", "-t", kind, *options, "none", place], capture_output=True).returncode:
            pytest.skip("this machine does not let us mount that")
        try:
            done = gmt.python("""
                import cuda
                cuda.init()
                for n in range(60000):
                    cuda.release(cuda.allocate(4096))
                kept = cuda.allocate(1 << 20)
                """, env={"GPUMEMTRACE_OUTPUT": place / "it", "GPUMEMTRACE_MAX_TRACE": "2M"})
            report = json.loads((place / "it.json").read_text())
            for same in (report, gmt.rendered(place / "it.gmt")):
                assert same["counters"]["allocs"] == 60001 and same["process"]["complete"]
                assert same["leaks"]["live_bytes"] == MIB
            assert "cannot" not in done.err
        finally:
            subprocess.run(["umount", place], check=True)
    finally:
        if kind == "overlay":
            subprocess.run(["umount", base], check=True)
