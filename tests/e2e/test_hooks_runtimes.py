"""The CUDA runtime's own functions: named in the report as the program called them, from the program's frame on, and each
going to the runtime that the caller would have reached without the library."""
import os
import pathlib
import re

import hook_table
import pytest
from conftest import EMULATOR, LIBRARY, ROOT, SANITIZE, SIMGPU

QUIET = {"GPUMEMTRACE_QUIET": "1"}
INCLUDE = f"-I{ROOT / 'src'}"
TEXEL = 16
# place: (api, family, space, bytes of one block; None: by the pitch that came back)
PLACES = {
    "plain": ("cudaMalloc", "plain", "device", 1000),
    "managed": ("cudaMallocManaged", "managed", "managed", 2000),
    "pitched": ("cudaMallocPitch", "pitched", "device", None),
    "pitched_3d": ("cudaMalloc3D", "pitched", "device", None),
    "pinned": ("cudaMallocHost", "pinned", "pinned", 3000),
    "host_alloc": ("cudaHostAlloc", "pinned", "pinned", 3500),
    "registered": ("cudaHostRegister", "registered", "registered", 4096),
    "async": ("cudaMallocAsync", "pool", "device", 4000),
    "async_per_thread": ("cudaMallocAsync", "pool", "device", 4100),
    "from_pool": ("cudaMallocFromPoolAsync", "pool", "device", 4200),
    "array": ("cudaMallocArray", "array", "device", 64 * 32 * TEXEL),
    "array_3d": ("cudaMalloc3DArray", "array", "device", 16 * 8 * 4 * TEXEL),
    "mipmap": ("cudaMallocMipmappedArray", "array", "device", (16 * 8 + 8 * 4) * TEXEL),
}


def native_functions(site):
    return [frame["function"] for frame in site["frames"] if frame["kind"] == "native"]


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("reset", [False, True], ids=["", "reset"])
def test_runtime_calls_are_known_by_their_names(gmt, compiled, version, reset):
    program = compiled("hooks_runtime.c", INCLUDE, "-rdynamic", SIMGPU / f"libcudart.so.{version}")
    arguments = ["reset"] if reset else []
    plain = gmt.run(program, *arguments, traced=False)
    done = gmt.run(program, *arguments, env=QUIET)
    assert done.out == plain.out and done.err == plain.err
    report = gmt.rendered(done.recording)  # with names of static functions, from the debugging information
    pitch, pitch_3d = map(int, re.search(r"pitch (\d+) (\d+)", done.err).groups())
    for place, (api, family, space, size) in PLACES.items():
        if re.search(rf"^{place}: ", plain.out, re.M):
            continue  # refused by the simulated driver
        (site,) = [site for site in report["sites"] if native_functions(site)[:1] == [place]]
        size = size or {"pitched": pitch * 7, "pitched_3d": pitch_3d * 5 * 3}[place]
        assert (site["api"], site["family"], site["space"]) == (api, family, space)
        assert (site["allocs"], site["allocated_bytes"]) == (2, 2 * size)
        gone_with_context = reset and family not in ("pool",)
        assert (site["live_blocks"], site["live_bytes"]) == ((0, 0) if gone_with_context else (1, size)), place
    for place, size in [("by_entry_point", 5000), ("by_entry_point_of_a_version", 6000)]:
        (entry,) = [site for site in report["sites"] if native_functions(site)[:1] == [place]]
        assert (entry["api"], entry["allocated_bytes"]) == ("cuMemAlloc", size)
    assert "plain" not in re.findall(r"^(\w+): ", plain.out, re.M)
    counters = report["counters"]
    assert counters["foreign_frees"] == counters["dropped_events"] == 0
    (oom,) = report["ooms"]
    assert (oom["api"], oom["requested_bytes"]) == ("cudaMalloc", 1 << 50)
    refusals = sum(line.split(":")[0] in PLACES for line in plain.out.splitlines())
    assert counters["failed_allocs"] == 2 + refusals


def test_two_runtimes_in_one_process_are_kept_apart(gmt, compiled):
    flags = ["-ldl"]
    libraries = [compiled("hooks_two_runtimes.c", "-shared", "-fPIC", SIMGPU / f"libcudart.so.{version}", *flags)
                 for version in (12, 13)]
    program = compiled("hooks_two_runtimes.c", "-DMAIN", *flags)
    plain = gmt.run(program, *libraries, traced=False)
    done = gmt.run(program, *libraries, env=QUIET)
    assert done.out == plain.out
    assert plain.out.count("remembered: 2") == 4
    report = done.report
    assert (report["counters"]["allocs"], report["counters"]["failed_allocs"]) == (4, 4)
    assert {site["api"] for site in report["sites"]} == {"cudaMalloc"}


def nvidias_runtimes():
    """NVIDIA's own runtimes: of an installed toolkit, or of a package (nvidia-cuda-runtime-cu12 and the like)."""
    places = [pathlib.Path(place) for place in os.environ.get("HOOKS_RUNTIMES", "").split(":") if place]
    places += sorted(pathlib.Path("/usr/local").glob("cuda-*/lib64")) if not EMULATOR else []
    return sorted(path for place in places for pattern in ("libcudart.so.*", "libcudart_static.a")
                  for path in place.glob(pattern) if re.search(r"so\.[\d.]+$|\.a$", path.name))


@pytest.mark.skipif(SANITIZE != "", reason="NVIDIA's runtimes are not built for it")
@pytest.mark.parametrize("runtime", nvidias_runtimes() or [None], ids=lambda path: path and path.name)
def test_nvidias_own_runtime_finds_what_it_finds_without_the_library(gmt, compiled, runtime, tmp_path):
    """On a driver that is not NVIDIA's it goes as far as where it asks the driver to prove itself, and that is after it
    has looked up all it needs: the same functions, or our hooks of the same variants."""
    if runtime is None:
        pytest.skip("none here")
    observer = compiled("hooks_observer.c", "-shared", "-fPIC", "-ldl")
    program = compiled("hooks_runtime.c", INCLUDE, "-rdynamic", runtime, f"-Wl,-rpath,{runtime.parent}",
                       "-ldl", "-lpthread", "-lrt", "-lm")
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "libcuda.so.1").symlink_to(SIMGPU / "libcuda.so.1")
    env = {**QUIET, "LD_LIBRARY_PATH": tmp_path / "driver"}
    plain = gmt.run(program, traced=False, env={**env, "LD_PRELOAD": observer}, status=None)
    done = gmt.run(program, env={**env, "LD_PRELOAD": f"{observer}:{LIBRARY}"}, status=None)
    assert (done.out, done.status) == (plain.out, plain.status)
    assert done.err.replace("libgpumemtrace.so", "libcuda.so.1") == plain.err
    hooked = {symbol.name for symbol in hook_table.symbols() if symbol.library == "DRIVER"}
    found = re.findall(r"^look-up .*: \d+ (\w+) (\S+)$", done.err, re.M)
    assert len(found) > 200 or ".so.11" in runtime.name  # which asks the older cuGetProcAddress
    for name, file in found:
        assert (file == "libgpumemtrace.so") == (name in hooked), name
