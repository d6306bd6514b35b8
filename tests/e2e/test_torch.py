"""PyTorch's blocks, as its allocator tells c10's reporter of them: each is recorded inside the driver's memory with its
Python line, and the reporter is told exactly what it would be without us."""
import json

import pytest
import stand_in

KIB, MIB = 1 << 10, 1 << 20

PRELUDE = """
import json
from caching import CPU, CUDA, Allocator
MIB = 1 << 20
"""


def play(gmt, source, form=21, **options):
    env = stand_in.environment(form, **options.pop("env", {}))
    return gmt.python(PRELUDE + source, env=env, **options)


def of_layer(report, layer):
    return [site for site in report["sites"] if site["layer"] == layer]


def function_of(site):
    return [frame["function"] for frame in site["frames"] if frame["kind"] == "python"][0].split(".")[-1]


TWO_TENSORS = """
torch = Allocator()

def weights():
    return torch.malloc(0, 3 * MIB, 0)

def scratch():
    return torch.malloc(0, 700, 0)

kept = weights()
for _ in range(5):
    torch.free(scratch())
"""


@pytest.mark.parametrize("form", [21, 110])
def test_each_block_has_its_own_line_inside_the_drivers(gmt, form):
    done = play(gmt, TWO_TENSORS, form)
    for report in (done.report, gmt.rendered(done.recording)):
        blocks = {function_of(site): site for site in of_layer(report, "framework")}
        assert set(blocks) == {"weights", "scratch"}
        for site in blocks.values():
            assert (site["family"], site["space"], site["device"]) == ("torch", "device", 0)
        weights, scratch = blocks["weights"], blocks["scratch"]
        assert (weights["live_bytes"], weights["live_blocks"], weights["allocs"]) == (3 * MIB, 1, 1)
        assert (scratch["allocated_bytes"], scratch["allocs"], scratch["frees"]) == (5 * KIB, 5, 5)
        (device,) = [row for row in report["spaces"] if row["space"] == "device"]
        assert device["live_bytes"] == report["leaks"]["live_bytes"] == 22 * MIB, "a block inside a segment counts twice"
        assert report["counters"]["allocs"] == 2 and report["counters"]["foreign_frees"] == 0


def test_reporter_before_1_10_is_not_in_our_way_nor_we_in_its(gmt):
    report = play(gmt, TWO_TENSORS, 10).report
    assert of_layer(report, "framework") == []
    assert report["leaks"]["live_bytes"] == 22 * MIB


EVERYTHING = """
torch = Allocator()
a = [torch.malloc(0, size, stream) for size in (1, 513, 2 * MIB, 30 * MIB) for stream in (0, 7)]
torch.report(0x1234000, 4096, CPU, -1)
torch.report(0x1234000, -4096, CPU, -1)
for one in a[::2]:
    torch.free(one)
assert torch.malloc(0, 1 << 40, 0) is None
torch.empty_cache(0)
order = {}
told = torch.reported()
for one in told:
    one["address"] = order.setdefault(one["address"], len(order))
print(json.dumps(told))
"""


@pytest.mark.parametrize("form", [21, 110, 10])
def test_the_reporter_is_told_what_it_would_be_told_without_us(gmt, form):
    with_us, without_us = (play(gmt, EVERYTHING, form, traced=traced).out for traced in (True, False))
    assert with_us == without_us
    told = json.loads(with_us)
    assert len(told) == 8 + 2 + 4 + (form != 10)
    assert {one["type"] for one in told} == {0, 1}


def test_memory_of_the_cpu_is_not_recorded(gmt):
    done = play(gmt, """
torch = Allocator()
torch.report(0x1234000, 4096, CPU, -1)
print(len(torch.reported()))
""")
    assert done.out == "1\n"
    assert not done.recordings


def test_a_block_lies_on_its_segments_device_whatever_the_index_says(gmt):
    report = play(gmt, """
torch = Allocator()
address = torch.malloc(1, 4 * MIB, 0)
torch.report(address + 8 * MIB, MIB, CUDA, 0)
torch.report(0x7000, MIB, CUDA, 0)
""", env={"SIMGPU_DEVICES": "2"}).report
    assert sorted((site["device"], site["live_bytes"]) for site in of_layer(report, "framework")) == \
        [(0, MIB), (1, MIB), (1, 4 * MIB)]


def test_a_block_in_managed_memory_is_managed_and_goes_with_its_context(gmt):
    report = play(gmt, """
import cuda
torch = Allocator()
cuda.init()
torch.report(cuda.allocate_managed(MIB), MIB)
cuda.context_reset(0)
""").report
    (site,) = of_layer(report, "framework")
    assert (site["space"], site["device"]) == ("managed", 0)
    assert (site["live_blocks"], site["teardown_frees"], site["frees"]) == (0, 1, 0)


def test_a_free_of_a_block_never_seen_is_nothing(gmt):
    report = play(gmt, """
torch = Allocator()
torch.malloc(0, MIB, 0)
torch.report(0x5000, -MIB, CUDA, 0)
""").report
    assert report["counters"]["foreign_frees"] == 0
    assert [site["frees"] for site in report["sites"]] == [0, 0]


def test_giving_up_is_an_out_of_memory_of_its_own(gmt):
    report = play(gmt, """
torch = Allocator()
def weights():
    return torch.malloc(0, 1000 * MIB, 0)
def batch():
    return torch.malloc(0, 4000 * MIB, 0)
weights(), weights()
assert batch() is None
""", env={"SIMGPU_MEMORY": "4G"}).report
    first, second, given_up = report["ooms"]
    tensors = {function_of(site): site["id"] for site in of_layer(report, "framework")}
    assert given_up["api"] == "pytorch" and given_up["requested_bytes"] == 4000 * MIB
    assert given_up["live_bytes"] == 2000 * MIB
    assert [(row["site"], row["bytes"]) for row in given_up["sites"]] == [(tensors["weights"], 2000 * MIB)]
    assert (given_up["free_bytes"], given_up["total_bytes"]) == (second["free_bytes"], second["total_bytes"])
    assert report["counters"]["failed_allocs"] == 2, "the driver refused twice, whatever a framework says of it"


def test_two_copies_of_the_library_keep_to_their_own_reporters(gmt):
    other = stand_in.libraries(110, 1)
    done = play(gmt, f"""
one, other = Allocator(), Allocator({str(other)!r})
one.malloc(0, MIB, 0)
other.malloc(0, 2 * MIB, 0), other.malloc(0, 3 * MIB, 0)
print([one["bytes"] for one in one.reported()], [one["bytes"] for one in other.reported()])
""")
    assert done.out == f"[{MIB}] [{2 * MIB}, {3 * MIB}]\n"
    assert sum(site["live_blocks"] for site in of_layer(done.report, "framework")) == 3


def test_a_library_that_is_loaded_again_is_found_again(gmt):
    done = play(gmt, """
import _ctypes
for _ in range(3):
    torch = Allocator()
    torch.free(torch.malloc(0, MIB, 0))
    torch.empty_cache(0)
    print(len(torch.reported()))
    handles = torch.cuda._handle, torch.c10._handle
    del torch
    for handle in handles:
        _ctypes.dlclose(handle)
""")
    assert done.out == "2\n2\n2\n"
    assert sum(site["allocs"] for site in of_layer(done.report, "framework")) == 3


def test_blocks_in_expandable_segments_lie_in_what_is_mapped(gmt):
    report = play(gmt, """
torch = Allocator()
torch.expandable(1)
torch.free(torch.malloc(1, 30 * MIB, 0))
torch.empty_cache(1)
kept = torch.malloc(1, 50 * MIB, 0)
torch.report(kept + 50 * MIB, MIB, CUDA, 0)
""", env={"SIMGPU_DEVICES": "2"}).report
    assert {site["device"] for site in report["sites"]} == {1}
    assert sum(site["live_bytes"] for site in of_layer(report, "framework")) == 51 * MIB
    assert report["leaks"]["live_bytes"] == 60 * MIB
