"""Real PyTorch, where there is one (torch_python.py), on the simulated GPU: its caching allocator's own figures and ours
are the same."""
import json

import pytest
from conftest import SIMGPU
from torch_python import PYTHON, needs_torch

TIMEOUT = 600
MIB = 1 << 20


pytestmark = needs_torch


@pytest.fixture
def torch(gmt):
    """torch(source, arguments…): runs it, PyTorch's allocator configured by `settings`."""
    def play(source, *arguments, settings="", env=None, **options):
        return gmt.python(source, *arguments, interpreter=PYTHON, timeout=TIMEOUT, **options, env={
            "LD_LIBRARY_PATH": SIMGPU, "SIMGPU_FOLDER": SIMGPU, "PYTORCH_CUDA_ALLOC_CONF": settings,
            "PYTORCH_ALLOC_CONF": settings, "GPUMEMTRACE_QUIET": "1", **(env or {})})
    return play


def framework_of(report):
    (row,) = report["fragmentation"]
    (framework,) = row["frameworks"]
    assert framework["name"] == "pytorch"
    return framework


def live(report, layer="framework"):
    return [sum(site[name] for site in report["sites"] if site["layer"] == layer) for name in ("live_bytes", "live_blocks")]


def expect_agreement(report, own):
    framework = framework_of(report)
    found = {segment["address"]: [segment["bytes"], segment["allocated_bytes"], segment["largest_free_bytes"],
                                  segment["blocks"]] for segment in framework["segments"]}
    assert found == dict(map(tuple, own["segments"]))
    assert framework["reserved_bytes"] == own["reserved"]
    assert framework["allocated_bytes"] == own["allocated"]
    assert live(report) == [own["allocated"], own["blocks"]]
    assert framework["largest_free_bytes"] == max((free for _, (_, _, free, _) in own["segments"]), default=0)
    assert framework["at_peak"]["reserved_bytes"] == own["max_reserved"]
    assert [oom["api"] for oom in report["ooms"]].count("pytorch") == own["ooms"]


RANDOM = """
import json, os, random, sys
from real_torch import MIB, make, own_figures, torch
random.seed(int(sys.argv[1]))
streams = [torch.cuda.default_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
alive = []

def size():
    kind = random.random()
    return random.randrange(1, MIB) if kind < 0.4 else random.randrange(MIB, (10 if kind < 0.8 else 40) * MIB)

def step():
    kind = random.random()
    if kind < 0.02:
        torch.cuda.empty_cache()
    elif alive and (kind < 0.45 or len(alive) > 60):
        alive.pop(random.randrange(len(alive)))
    else:
        try:
            with torch.cuda.stream(random.choice(streams)):
                tensor = make(size())
            if random.random() < 0.2:
                tensor.record_stream(random.choice(streams))
            alive.append(tensor)
        except torch.OutOfMemoryError:
            del alive[::2]

for _ in range(600):
    step()
torch.cuda.synchronize()
make(1)  # takes note of what other streams have finished with
print(json.dumps(own_figures()), flush=True)
os._exit(0)
"""

SETTINGS = ["", "expandable_segments:True", "garbage_collection_threshold:0.5", "max_split_size_mb:32",
            "roundup_power2_divisions:4"]


@pytest.mark.parametrize("settings", SETTINGS)
def test_figures_are_pytorchs_own(torch, gmt, settings):
    done = torch(RANDOM, 1, settings=settings, env={"SIMGPU_MEMORY": "600M"})
    own = json.loads(done.out)
    assert own["ooms"] > 0 and own["retries"] > own["ooms"], "that was too much memory"
    expect_agreement(done.report, own)
    expect_agreement(gmt.rendered(done.recording), own)


def test_each_tensor_has_its_line(torch):
    done = torch("""
import os
from real_torch import MIB, torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(3 * MIB, device="cuda"))

    def forward(self, x):
        self.kept = torch.empty_like(self.weight)
        return torch.empty(x.shape[0], MIB, device=x.device)

def train():
    model = Model()
    batch = torch.empty(7, MIB, device="cuda")
    out = model(batch)
    return model, batch, out

kept = train()
os._exit(0)
""")
    lines = {}
    for site in done.report["sites"]:
        if site["layer"] == "framework" and site["live_bytes"]:
            lines[site["title"]] = site["live_bytes"]
            assert [frame for frame in site["frames"] if frame["kind"] == "native" and "libc10_cuda" in frame["module"]]
    assert lines == {"program.py:8 in Model.__init__": 12 * MIB, "program.py:11 in Model.forward": 12 * MIB,
                     "program.py:12 in Model.forward": 28 * MIB, "program.py:16 in train": 28 * MIB}


def test_one_living_tensor_strands_its_segment(torch):
    done = torch("""
import os
from real_torch import KIB, MIB, make, torch

def metrics():
    return make(KIB)

def activations():
    return [make(MIB // 2) for _ in range(30)]

kept = []
for _ in range(5):
    cached = activations()
    kept.append(metrics())
    del cached
torch.cuda.empty_cache()
os._exit(0)
""")
    framework = framework_of(done.report)
    sites = {site["id"]: site["title"] for site in done.report["sites"]}
    assert [sites[site] for site in framework["pinners"]] == ["program.py:6 in metrics"]
    assert framework["allocated_bytes"] == 5 * 1024
    assert framework["releasable_bytes"] == 0
    assert framework["stranded_bytes"] == framework["reserved_bytes"] - 5 * 1024 > 0
    assert "stranded by program.py:6 in metrics" in " ".join(done.text.split())


def test_giving_up_is_told_from_what_an_empty_cache_solves(torch):
    done = torch("""
import os
from real_torch import MIB, make, torch
cached = make(300 * MIB)
del cached
kept = make(400 * MIB)   # the cache is emptied for it
try:
    make(500 * MIB)
except torch.OutOfMemoryError as error:
    print(error)
print(torch.cuda.memory_stats()["num_ooms"], torch.cuda.memory_stats()["num_alloc_retries"])
os._exit(0)
""", env={"SIMGPU_MEMORY": "900M"})
    assert done.out.splitlines()[-1] == "1 2"
    apis = [(oom["api"], oom["requested_bytes"]) for oom in done.report["ooms"]]
    assert apis == [("cudaMalloc", 400 * MIB), ("cudaMalloc", 500 * MIB), ("cudaMalloc", 500 * MIB), ("pytorch", 500 * MIB)]
    first, *_, last = done.report["ooms"]
    assert [layout["releasable_bytes"] for layout in first["frameworks"]] == [300 * MIB]
    assert last["live_bytes"] == 400 * MIB


def test_threads_streams_and_a_private_pool(torch):
    done = torch("""
import json, os, threading
from real_torch import MIB, make, own_figures, torch
torch.cuda.init()
kept = [make(1)]
def work(number):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for i in range(200):
            tensor = make((number + 1) * 100000 + i)
            if i % 50 == 0:
                kept.append(tensor)
threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    kept += [make(5 * MIB), make(100)]
print(json.dumps(own_figures()), flush=True)
os._exit(0)
""")
    expect_agreement(done.report, json.loads(done.out))


def test_without_caching_there_are_no_blocks_inside_the_drivers(torch):
    done = torch("""
import os
from real_torch import MIB, make
kept = [make(3 * MIB) for _ in range(4)]
os._exit(0)
""", env={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})
    assert live(done.report) == [0, 0]
    assert live(done.report, "driver") == [12 * MIB, 4]


def test_cuda_malloc_async_is_told_as_a_pool(torch):
    done = torch("""
import os
from real_torch import MIB, make, torch
kept = [make(3 * MIB) for _ in range(40)]
del kept[::2]
os._exit(0)
""", settings="backend:cudaMallocAsync")
    assert live(done.report) == [0, 0]
    assert live(done.report, "driver") == [60 * MIB, 20]
    (row,) = done.report["fragmentation"]
    (pool,) = row["pools"]
    assert pool["used_bytes"] >= 60 * MIB and pool["reserved_bytes"] >= pool["used_bytes"]
