"""Whatever way a program reaches CUDA, its books come out exact: counts and bytes of each place that allocates."""
import pytest
from conftest import SIMGPU

TURNS = 300
# how a program was built: flags, and the API its report names
WAYS = {
    "shared runtime 12": (["-DVIA_RUNTIME", SIMGPU / "libcudart.so.12"], "cudaMalloc"),
    "shared runtime 13": (["-DVIA_RUNTIME", SIMGPU / "libcudart.so.13"], "cudaMalloc"),
    "static runtime": (["-DVIA_RUNTIME", SIMGPU / "libcudart_static.a"], "cuMemAlloc"),
    "linked driver": (["-DVIA_DRIVER", SIMGPU / "libcuda.so.1"], "cuMemAlloc"),
    "dlsym": (["-DVIA_DLSYM"], "cuMemAlloc"),
    "cuGetProcAddress": (["-DVIA_PROC_ADDRESS"], "cuMemAlloc"),
}


def site_of(report, function):
    found = [site for site in report["sites"] if any(frame["function"] == function for frame in site["frames"])]
    assert len(found) == 1, f"{function}: {len(found)} sites"
    return found[0]


def expect_books(report, threads, api):
    kept = [1000 + turn for turn in range(0, TURNS, 10)]
    keep, scratch = site_of(report, "keep"), site_of(report, "scratch")
    for site in (keep, scratch):
        assert (site["api"], site["family"], site["space"], site["device"]) == (api, "plain", "device", 0)
    assert (keep["allocs"], keep["frees"]) == (threads * len(kept), 0)
    assert keep["allocated_bytes"] == keep["live_bytes"] == threads * sum(kept)
    assert keep["live_blocks"] == threads * len(kept)
    assert (scratch["allocs"], scratch["frees"], scratch["live_bytes"]) == (threads * TURNS, threads * TURNS, 0)
    assert scratch["allocated_bytes"] == sum(4096 * (thread + 1) * TURNS for thread in range(threads))
    counters = report["counters"]
    assert counters["allocs"] == keep["allocs"] + scratch["allocs"]
    assert counters["frees"] == scratch["frees"]
    assert counters["failed_allocs"] == counters["foreign_frees"] == counters["dropped_events"] == 0
    (space,) = [row for row in report["spaces"] if row["space"] == "device"]
    assert (space["live_bytes"], space["live_blocks"]) == (keep["live_bytes"], keep["live_blocks"])
    assert space["allocated_bytes"] == keep["allocated_bytes"] + scratch["allocated_bytes"]
    assert report["leaks"]["live_bytes"] == keep["live_bytes"]


@pytest.mark.parametrize("threads", [1, 8], ids=["1-thread", "8-threads"])
@pytest.mark.parametrize("way", WAYS)
def test_books_of_a_c_program_are_exact(gmt, compiled, way, threads):
    flags, api = WAYS[way]
    program = compiled("books.c", "-rdynamic", *flags, "-ldl", "-lpthread")
    done = gmt.run(program, threads, TURNS)
    expect_books(done.report, threads, api)
    expect_books(gmt.rendered(done.recording), threads, api)


@pytest.mark.parametrize("threads", [1, 8], ids=["1-thread", "8-threads"])
def test_books_of_a_python_program_are_exact(gmt, threads):
    done = gmt.python("""
        import sys, threading
        import cuda
        threads, turns = int(sys.argv[1]), int(sys.argv[2])

        def keep(size):
            cuda.allocate(size)

        def scratch(size):
            cuda.release(cuda.allocate(size))

        def work(thread):
            cuda.use(0)
            for turn in range(turns):
                scratch(4096 * (thread + 1))
                if turn % 10 == 0:
                    keep(1000 + turn)

        cuda.init()
        workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
        for worker in workers: worker.start()
        for worker in workers: worker.join()
        """, threads, TURNS)
    expect_books(done.report, threads, "cuMemAlloc")
    expect_books(gmt.rendered(done.recording), threads, "cuMemAlloc")


def test_programs_end_as_they_do_without_the_library(gmt, compiled):
    for way, (flags, _) in WAYS.items():
        program = compiled("books.c", "-rdynamic", *flags, "-ldl", "-lpthread")
        plain = gmt.run(program, 2, 20, traced=False)
        traced = gmt.run(program, 2, 20, env={"GPUMEMTRACE_QUIET": "1"})
        assert (plain.out, plain.err) == (traced.out, traced.err) == ("", ""), way
        assert not plain.recordings and traced.recordings, way
