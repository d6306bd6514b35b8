"""Who has a device's memory: contexts, code, pools, rounding and other processes are told apart, add up to what the
driver calls used, and are unknown rather than wrong. Expected sizes are the simulated device's: 256 MiB a context, code
in whole granules of 2 MiB."""
import json
import re
import subprocess
import sys
import textwrap

import pytest
from conftest import PRELOAD, SIMGPU

MIB = 1 << 20
GIB = 1 << 30
PARTS = ("tracked", "context", "modules", "pool_unused", "graph", "granule_waste", "other_processes", "untracked")

# What programs here do besides allocating. An image of so many bytes is a text, as PTX is.
HEAD = """
import ctypes, os, sys
import cuda
from ctypes import c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
MIB = 1 << 20
load = cuda._function("cuModuleLoadData", [c_void_p], c_char_p)
unload = cuda._function("cuModuleUnload", c_void_p)
function = cuda._function("cuModuleGetFunction", [c_void_p], c_void_p, c_char_p)
library = cuda._function("cuLibraryLoadData", [c_void_p], c_char_p, c_void_p, c_void_p, c_uint, c_void_p, c_void_p, c_uint)
kernel = cuda._function("cuLibraryGetKernel", [c_void_p], c_void_p, c_char_p)
function_of = cuda._function("cuKernelGetFunction", [c_void_p], c_void_p)
limit = cuda._function("cuCtxSetLimit", c_uint, c_size_t)
pool_of = cuda._function("cuDeviceGetMemPool", [c_void_p], c_int)
pool_set = cuda._function("cuMemPoolSetAttribute", c_void_p, c_uint, ctypes.POINTER(c_uint64))
trim = cuda._function("cuMemPoolTrimTo", c_void_p, c_size_t)
def image(bytes):
    return b"/" * bytes
"""


def play(gmt, source, *arguments, **options):
    return gmt.python(HEAD + textwrap.dedent(source), *arguments, **options)


def rows(gmt, done):
    """The report's rows by device, after what holds of every one of them."""
    found = done.report["memory_map"]
    assert gmt.rendered(done.recording)["memory_map"] == found
    for row in found:
        parts = [row[f"{part}_bytes"] or 0 for part in PARTS]
        assert all(bytes >= 0 for bytes in parts)
        if row["untracked_bytes"] is not None:
            assert row["free_bytes"] + sum(parts) == row["total_bytes"]
        for sample in row["samples"] + [row["first"], row["peak"]]:
            assert 0 <= sample["rest_bytes"] <= sample["total_bytes"] - sample["free_bytes"] - sample["tracked_bytes"] \
                or sample["rest_bytes"] == 0
    return {row["device"]: row for row in found}


def mib(row, *names):
    return [None if row[f"{name}_bytes"] is None else row[f"{name}_bytes"] / MIB for name in names]


class Neighbour:
    """Another process on the same simulated devices: it allocates as many MiB as it is told and holds on to them."""

    def __init__(self, gmt, folder):
        self.shared = folder / "devices"
        source = ("import cuda, sys\ncuda.init()\nprint('ready', flush=True)\n"
                  "for line in sys.stdin:\n    cuda.allocate(int(line) << 20)\n    print('done', flush=True)\n")
        env = gmt.environment(traced=False, SIMGPU_SHARED=self.shared)
        self.process = subprocess.Popen([sys.executable, "-c", source], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n"

    def take(self, amount):
        self.process.stdin.write(f"{amount}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def neighbour(gmt, tmp_path):
    process = Neighbour(gmt, tmp_path)
    yield process
    process.end()


def test_every_part_is_told_and_all_add_up(gmt):
    done = play(gmt, """
        cuda.init()
        module = load(image(3 * MIB))               # 4 MiB, with its first function
        keep = [cuda.allocate(1 << 20), cuda.allocate(3 * MIB)]    # 1 MiB and 4 MiB of granules for 4 MiB
        function(module, b"kernel")
        pool = pool_of(0)
        pool_set(pool, 4, ctypes.byref(c_uint64(1 << 40)))      # CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        held, given_back = cuda.allocate_async(32 * MIB), cuda.allocate_async(32 * MIB)
        cuda.release_async(given_back)
        cuda.allocate(2 * MIB)
    """)
    row = rows(gmt, done)[0]
    assert mib(row, "total", "tracked", "context", "modules", "pool_unused") == [8192, 38, 256, 4, 32]
    assert mib(row, "granule_waste", "graph", "other_processes", "untracked") == [2, 0, 0, 0]
    assert (row["contexts"], row["context_basis"], row["modules"], row["modules_basis"]) == (1, "process", 1, "device")
    assert row["process_bytes"] == row["total_bytes"] - row["free_bytes"] == 332 * MIB
    assert row["reason"] == "exit" and not row["cut_to_fit"]
    assert [sample["reason"] for sample in row["samples"]] == ["start", "code", "allocation", "exit"]
    assert row["first"]["free_bytes"] == row["total_bytes"]


def test_a_module_is_measured_when_it_is_loaded_and_given_back(gmt):
    source = """
        cuda.init()
        cuda.allocate(2 * MIB)
        modules = [load(image(size * MIB)) for size in (3, 6)]
        for module in modules:
            function(module, b"kernel")
            function(module, b"another")
        if len(sys.argv) > 1:
            unload(modules[0])
    """
    for mode in ("LAZY", "EAGER"):
        row = rows(gmt, play(gmt, source, env={"CUDA_MODULE_LOADING": mode}))[0]
        assert (mib(row, "modules", "untracked"), row["modules"]) == ([10, 0], 2)
        row = rows(gmt, play(gmt, source, "unload", env={"CUDA_MODULE_LOADING": mode}))[0]
        assert (mib(row, "modules", "untracked"), row["modules"]) == ([6, 0], 1)


def test_a_library_is_measured_where_its_first_function_is_asked_for(gmt):
    row = rows(gmt, play(gmt, """
        cuda.init_driver(0)
        loaded = library(image(5 * MIB), None, None, 0, None, None, 0)
        cuda.use(0)
        cuda.allocate(2 * MIB)
        function_of(kernel(loaded, b"kernel"))
    """))[0]
    assert mib(row, "context", "modules", "untracked") == [256, 6, 0]


def test_contexts_are_counted_as_they_come_and_go(gmt):
    source = """
        cuda.init()
        cuda.allocate(2 * MIB)
        second = cuda.context_create(0, 0)
        cuda.allocate(4 * MIB)                      # goes with it
        function(load(image(3 * MIB)), b"kernel")
        if len(sys.argv) > 1:
            cuda.context_destroy(second)
            cuda.use(0)
    """
    row = rows(gmt, play(gmt, source))[0]
    assert (row["contexts"], row["modules"]) == (2, 1)
    assert mib(row, "tracked", "context", "modules", "untracked") == [6, 512, 4, 0]
    row = rows(gmt, play(gmt, source, "destroy"))[0]
    assert (row["contexts"], row["modules"]) == (1, 0)
    assert mib(row, "tracked", "context", "modules", "untracked") == [2, 256, 0, 0]


def test_a_primary_context_that_is_reset_and_made_again_counts_once(gmt):
    row = rows(gmt, play(gmt, """
        cuda.init()
        cuda.allocate(2 * MIB)
        cuda.context_reset(0)
        cuda.use(0)
        cuda.use(0)
        cuda.allocate(4 * MIB)
    """))[0]
    assert row["contexts"] == 1 and mib(row, "tracked", "context", "untracked") == [4, 256, 0]


def test_contexts_that_threads_make_at_once_are_not_counted_twice(gmt, compiled):
    """While one is made the other takes its memory: neither tells what was whose, and both are in the rest."""
    program = compiled("contexts_at_once.c", SIMGPU / "libcuda.so.1", "-lpthread")
    tool = compiled("contexts_at_once.c", "-DTOOL", "-shared", "-fPIC", "-ldl", "-lpthread")
    row = rows(gmt, gmt.run(program, env={"LD_PRELOAD": f"{PRELOAD}:{tool}"}))[0]
    assert (row["contexts"], row["context_basis"]) == (3, "part")
    assert mib(row, "tracked", "context", "untracked") == [2, 256, 512] and not row["cut_to_fit"]


def test_deeper_stacks_count_with_their_context(gmt):
    """Of each thread that can be resident: 108 multiprocessors of 2048."""
    row = rows(gmt, play(gmt, """
        cuda.init()
        cuda.allocate(2 * MIB)
        limit(0, 5120)      # CU_LIMIT_STACK_SIZE
    """))[0]
    assert mib(row, "context", "untracked") == [256 + 4096 * 108 * 2048 / MIB, 0]


def test_each_device_has_its_own_row(gmt):
    found = rows(gmt, play(gmt, """
        cuda.init(0)
        cuda.allocate(10 * MIB)
        cuda.use(1)
        cuda.allocate(20 * MIB)
        cuda.context_use(None)
    """, env={"SIMGPU_DEVICES": 3}))
    assert {device: mib(row, "tracked", "context", "untracked") for device, row in found.items()} == \
        {0: [10, 256, 0], 1: [20, 256, 0]}
    assert {row["reason"] for row in found.values()} == {"exit"}


def test_other_processes_are_told_from_this_one(gmt, neighbour):
    neighbour.take(1000)
    done = play(gmt, """
        cuda.init()
        cuda.allocate(100 * MIB)
    """, env={"SIMGPU_SHARED": neighbour.shared})
    row = rows(gmt, done)[0]
    assert mib(row, "tracked", "context", "other_processes", "untracked") == [100, 256, 1256, 0]
    assert row["process_bytes"] == 356 * MIB
    (start,) = [sample for sample in row["samples"] if sample["reason"] == "start"]
    assert start["total_bytes"] - start["free_bytes"] == 1256 * MIB
    assert "The driver     Device 0: 1.57 GiB of 8.00 GiB used: 1.23 GiB other processes\n" in done.text
    assert re.search(r"^  other processes +1.23 GiB +by NVML", done.text, re.M)
    assert re.search(r"nvidia-smi shows 356.0 MiB for this process, and 1.57 GiB in use on the\s+device", done.text)


def test_memory_that_others_take_during_the_run_is_theirs(gmt, neighbour):
    """The neighbour takes memory before and after the program's second context is made."""
    source = """
        import subprocess
        cuda.init()
        cuda.allocate(100 * MIB)
        print("ready", flush=True)
        input()
        cuda.context_create(0, 0)
        print("made", flush=True)
        input()
    """
    script = neighbour.shared.parent / "program.py"
    script.write_text(HEAD + textwrap.dedent(source))
    folder = gmt.new_folder()
    program = subprocess.Popen([sys.executable, script], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env=gmt.environment(folder / "gmt.%p", SIMGPU_SHARED=neighbour.shared))
    assert program.stdout.readline() == "ready\n"
    neighbour.take(300)
    program.stdin.write("\n")
    program.stdin.flush()
    assert program.stdout.readline() == "made\n"
    neighbour.take(500)
    program.communicate("\n")
    assert program.returncode == 0
    (path,) = folder.glob("*.json")
    (row,) = json.loads(path.read_text())["memory_map"]
    assert (row["contexts"], row["context_basis"]) == (2, "process")
    assert mib(row, "tracked", "context", "other_processes", "untracked") == [100, 512, 1056, 0]


WITHOUT_NVML = """
    cuda.init()
    cuda.allocate(100 * MIB)
    function(load(image(3 * MIB)), b"kernel")
"""


def without_nvml(tmp_path):
    folder = tmp_path / "driver"
    folder.mkdir()
    (folder / "libcuda.so.1").symlink_to(SIMGPU / "libcuda.so.1")
    return {"LD_LIBRARY_PATH": folder}


@pytest.mark.parametrize("how", ["forbidden", "not there"])
def test_without_nvml_the_first_context_is_in_the_rest(gmt, tmp_path, how):
    """There is no context to ask the driver by before the first one is made."""
    env = {"GPUMEMTRACE_NVML": "0"} if how == "forbidden" else without_nvml(tmp_path)
    done = play(gmt, WITHOUT_NVML, env=env)
    row = rows(gmt, done)[0]
    assert mib(row, "tracked", "context", "modules", "other_processes", "untracked") == [100, None, 4, None, 256]
    assert (row["contexts"], row["context_basis"], row["process_bytes"]) == (1, "unknown", None)
    assert "1 context; what it took could not be measured" in done.text
    assert re.search(r"nvidia-smi shows at least 104.0 MiB for this process", done.text)


def test_without_nvml_a_second_context_is_measured_by_the_driver(gmt):
    row = rows(gmt, play(gmt, """
        cuda.init()
        cuda.allocate(100 * MIB)
        cuda.context_create(0, 0)
        cuda.allocate(10 * MIB)
    """, env={"GPUMEMTRACE_NVML": "0"}))[0]
    assert (row["contexts"], row["context_basis"]) == (2, "part")
    assert mib(row, "tracked", "context", "untracked") == [110, 256, 256]


def test_nvml_is_loaded_only_where_it_may_be(gmt):
    source = """
        cuda.init()
        cuda.allocate(2 * MIB)
        print("libnvidia-ml" in open("/proc/self/maps").read())
    """
    assert play(gmt, source).out == "True\n"
    assert play(gmt, source, env={"GPUMEMTRACE_NVML": "0"}).out == "False\n"
    assert play(gmt, source, env={"GPUMEMTRACE_DISABLE": "1"}).out == "False\n"


def test_in_a_container_this_process_is_not_mistaken_for_another(gmt, neighbour):
    """NVML numbers processes as they are outside: this one is not among them by its own number."""
    neighbour.take(1000)
    done = play(gmt, WITHOUT_NVML, env={"SIMGPU_SHARED": neighbour.shared, "SIMGPU_PIDS": 10000000})
    row = rows(gmt, done)[0]
    assert (row["contexts"], row["context_basis"], row["process_bytes"]) == (1, "device", None)
    assert mib(row, "tracked", "context", "modules", "other_processes", "untracked") == [100, 256, 4, None, 1256]
    assert re.search(r"Before this program had anything there, 1.23 GiB were in use.", done.text)


def test_another_process_with_this_ones_number_is_not_taken_for_it(gmt, neighbour):
    """As may be outside of a container, of the number that this process has inside."""
    row = rows(gmt, play(gmt, """
        os.environ["SIMGPU_PIDS"] = str(os.getpid() - int(sys.argv[1]))
        cuda.init()
        cuda.allocate(100 * MIB)
    """, neighbour.process.pid, env={"SIMGPU_SHARED": neighbour.shared}))[0]
    assert (row["contexts"], row["context_basis"], row["process_bytes"]) == (1, "device", None)
    assert mib(row, "tracked", "context", "other_processes", "untracked") == [100, 256, None, 256]


def test_a_killed_process_is_told_of_by_its_last_sample(gmt):
    done = play(gmt, """
        cuda.init()
        cuda.allocate(100 * MIB)
        cuda.allocate(1 * MIB)          # so soon after, and so little more, that the driver is not asked again
        os.kill(os.getpid(), 9)
    """, status=-9)
    report = gmt.rendered(done.recording)
    (row,) = report["memory_map"]
    assert mib(row, "tracked", "context", "untracked") == [101, 256, None]
    assert mib(row["peak"], "tracked", "rest") == [100, 0]
    text = gmt.tool("report", done.recording).stdout
    assert re.search(r"Who has the memory of device 0 at \S+ \S+, when the driver was last asked", text)
    assert re.search(r"^  allocations +100.0 MiB", text, re.M)


def test_the_peak_has_a_sample_of_its_own(gmt):
    row = rows(gmt, play(gmt, """
        cuda.init()
        cuda.allocate(50 * MIB)
        big = cuda.allocate(1000 * MIB)
        cuda.release(big)
        cuda.allocate(10 * MIB)
    """))[0]
    assert mib(row, "tracked") == [60] and mib(row["peak"], "tracked") == [1050]
    assert row["peak"]["free_bytes"] == row["total_bytes"] - (1050 + 256) * MIB


def test_a_refusal_for_want_of_memory_is_a_sample(gmt):
    done = play(gmt, """
        cuda.init()
        cuda.allocate(600 * MIB)
        try:
            cuda.allocate(600 * MIB)
        except cuda.CudaError:
            pass
    """, env={"SIMGPU_MEMORY": "1G"})
    row = rows(gmt, done)[0]
    (oom,) = done.report["ooms"]
    assert mib(oom, "other_processes", "context", "free") == [0, 256, 168]
    (refused,) = [sample for sample in row["samples"] if sample["reason"] == "out_of_memory"]
    assert mib(refused, "free", "tracked", "context", "rest") == [1024 - 856, 600, 256, 0]


def test_a_refusal_on_another_process_account_names_it(gmt, neighbour):
    neighbour.take(5000)
    done = play(gmt, """
        cuda.init()
        cuda.allocate(1000 * MIB)
        try:
            cuda.allocate(3000 * MIB)
        except cuda.CudaError:
            os._exit(0)             # no exit that NVML is asked at
    """, env={"SIMGPU_SHARED": neighbour.shared})
    (oom,) = done.report["ooms"]
    assert oom["cause"] == "elsewhere" and mib(oom, "other_processes", "context", "elsewhere") == [5256, 256, 5512]
    assert "; other processes (5.13 GiB), contexts (256.0 MiB) or untracked memory hold 5.38 GiB" in oom["verdict"]
    (again,) = gmt.rendered(done.recording)["ooms"]
    assert {**again, "frames": []} == {**oom, "frames": []}


def test_a_program_that_gets_nothing_is_told_who_has_it(gmt, neighbour):
    neighbour.take(7000)
    row = rows(gmt, play(gmt, """
        cuda.init()
        try:
            cuda.allocate(3000 * MIB)
        except cuda.CudaError:
            pass
    """, env={"SIMGPU_SHARED": neighbour.shared}))[0]
    assert mib(row, "tracked", "context", "other_processes", "untracked") == [0, 256, 7256, 0]


def test_children_and_other_ways_out_ask_nothing(gmt):
    """A forked child ends by exit() with its parent's handlers, and without a driver."""
    done = play(gmt, """
        cuda.init()
        cuda.allocate(100 * MIB)
        child = os.fork()
        if child == 0:
            ctypes.CDLL(None).exit(7)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
        os._exit(0)
    """)
    assert done.out == "7\n"
    row = rows(gmt, done)[0]
    assert row["reason"] == "allocation" and mib(row, "tracked", "context", "untracked") == [100, 256, 0]


def test_asking_leaves_a_capture_and_the_context_alone(gmt):
    """In the global mode an unsafe call of any thread ends the capture, and a driver may call our questions unsafe."""
    row = rows(gmt, play(gmt, """
        stream_create = cuda._function("cuStreamCreate", [c_void_p], c_uint)
        begin = cuda._function("cuStreamBeginCapture_v2", c_void_p, c_uint)
        end = cuda._function("cuStreamEndCapture", c_void_p, [c_void_p])
        create = cuda._function("cuMemCreate", [c_uint64], c_size_t, c_void_p, c_uint64)
        current = cuda._function("cuCtxGetCurrent", [c_void_p])
        cuda.init()
        cuda.allocate(2 * MIB)
        before, stream = current(), stream_create(1)
        begin(stream, 0)
        properties = (c_uint * 16)(1, 0, 1, 0)      # pinned memory of device 0
        create(100 * MIB, properties, 0)            # a rise that is sampled
        module = load(image(3 * MIB))
        function(module, b"kernel")
        end(stream)
        assert current() == before
    """, env={"SIMGPU_STRICT": "1"}))[0]
    assert mib(row, "tracked", "context", "modules", "untracked") == [102, 256, 4, 0]


def test_asking_for_functions_again_and_again_changes_no_figure(gmt):
    done = play(gmt, """
        cuda.init()
        cuda.allocate(2 * MIB)
        module = load(image(3 * MIB))
        function(module, b"kernel")
        for i in range(50000):
            function(module, b"kernel")
    """)
    row = rows(gmt, done)[0]
    assert mib(row, "modules", "untracked") == [4, 0]
    assert row["modules_basis"] == "device"


def test_code_that_is_unloaded_when_the_time_for_questions_is_spent_leaves_the_sum_unsure(gmt):
    """Of half a million calls the most ask nothing, and neither does the last."""
    row = rows(gmt, play(gmt, """
        cuda.init()
        cuda.allocate(2 * MIB)
        modules = [load(image(3 * MIB)) for _ in range(2)]
        function(modules[0], b"kernel"), function(modules[1], b"kernel")
        for i in range(500000):
            function(modules[0], b"kernel")
        unload(modules[1])
    """))[0]
    assert (row["modules"], row["modules_basis"]) == (1, "part")


def test_what_graphs_keep_is_told(gmt):
    """A graph's allocation takes memory when it is launched, and keeps it."""
    row = rows(gmt, play(gmt, """
        stream_create = cuda._function("cuStreamCreate", [c_void_p], c_uint)
        begin = cuda._function("cuStreamBeginCapture_v2", c_void_p, c_uint)
        end = cuda._function("cuStreamEndCapture", c_void_p, [c_void_p])
        instantiate = cuda._function("cuGraphInstantiateWithFlags", [c_void_p], c_void_p, c_uint64)
        launch = cuda._function("cuGraphLaunch", c_void_p, c_void_p)
        cuda.init()
        cuda.allocate(2 * MIB)
        stream = stream_create(1)
        begin(stream, 2)
        cuda.allocate_async(64 * MIB, stream)
        launch(instantiate(end(stream), 0), stream)
    """))[0]
    assert mib(row, "tracked", "graph", "context", "untracked") == [2, 64, 256, 0]


def test_after_the_last_context_nvml_tells_what_is_free(gmt, neighbour):
    row = rows(gmt, play(gmt, """
        cuda.init_driver(0)
        context = cuda.context_create(0, 0)
        cuda.allocate(100 * MIB)
        cuda.context_destroy(context)
    """, env={"SIMGPU_SHARED": neighbour.shared}))[0]
    assert (row["contexts"], row["reason"]) == (0, "exit")
    assert mib(row, "free", "tracked", "context", "untracked") == [8192 - 256, 0, 0, 256]
    assert mib(row["peak"], "tracked", "context", "rest") == [100, 256, 256]


def test_a_bounded_recording_tells_the_same(gmt):
    """What was told before the events that are kept is in the checkpoint."""
    done = play(gmt, """
        cuda.init()
        function(load(image(3 * MIB)), b"kernel")
        big = cuda.allocate(500 * MIB)
        cuda.release(big)
        for i in range(150000):
            cuda.release(cuda.allocate(1 * MIB))
        cuda.allocate(10 * MIB)
    """, env={"GPUMEMTRACE_MAX_TRACE": "2M", "GPUMEMTRACE_STACKS": "none"})
    assert "Older events were dropped" in done.text
    row = rows(gmt, done)[0]
    assert mib(row, "tracked", "context", "modules", "untracked") == [10, 256, 4, 0]
    assert mib(row["peak"], "tracked") == [500] and row["first"]["reason"] == "start"
