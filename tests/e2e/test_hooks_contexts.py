"""What ends with a context, and whose device memory is on, in the books: small stories, as in test_hooks_families.py."""
import pytest
from hook_stories import GRANULE, driver, expect_clean, figures, nature, site_in, sites_in, tell

pytestmark = pytest.mark.usefixtures("driver")


def test_memory_ends_with_the_context_it_was_made_in(gmt):
    report = tell(gmt, """
        def keep(): alloc(100)
        def made():
            alloc(3000)
            address, host = u64(), c_void_p()
            call("cuMemAllocManaged", byref(address), c_size_t(4000), 1)
            call("cuMemHostAlloc", byref(host), c_size_t(5000), 0)
        def pooled():
            address = u64()
            call("cuMemAllocAsync", byref(address), c_size_t(600), None)
        keep()
        second = c_void_p()
        call("cuCtxCreate_v2", byref(second), 0, 0)
        made()
        pooled()
        create(GRANULE)
        refused("cuCtxDestroy_v2", context)         # the primary context
        call("cuCtxDestroy_v2", second)
        """).report
    assert figures(site_in(report, "keep")) == (1, 1, 100)
    assert [figures(site)[1:] for site in sites_in(report, "made")] == [(0, 0)] * 3
    assert figures(site_in(report, "pooled")) == (1, 1, 600)
    counters = report["counters"]
    assert (counters["teardown_frees"], counters["frees"]) == (3, 0)
    expect_clean(report)


@pytest.mark.parametrize("version", ["", "_v2"])
@pytest.mark.parametrize("how", ["Reset", "Release"])
def test_memory_ends_with_the_primary_context(gmt, how, version):
    report = tell(gmt, f"""
        primary()                   # a second reference
        def hold(): return alloc(3000)
        def again(): return alloc(5000)
        hold(), create(GRANULE)
        call("cuDevicePrimaryCtxRelease_v2", 0)
        def probe():
            address = u64()
            refused("cuMemAlloc_v2", byref(address), c_size_t(1 << 50))
        probe()
        call("cuDevicePrimaryCtx{how}{version}", 0)
        primary()
        again()
        """).report
    assert figures(site_in(report, "hold")) == (1, 0, 0)
    assert figures(site_in(report, "again")) == (1, 1, 5000)
    assert report["counters"]["teardown_frees"] == 1
    assert [oom["live_bytes"] for oom in report["ooms"]] == [3000 + GRANULE]


def test_memory_is_the_current_contexts_devices(gmt):
    report = tell(gmt, """
        def first(): alloc(1000)
        def second(): alloc(2000)
        def again(): alloc(3000)
        first()
        other = primary(1)
        second()
        call("cuCtxSetCurrent", context)
        again()
        handle = create(GRANULE, on_device(1))
        """, env={"SIMGPU_DEVICES": 2}).report
    for function, device in [("first", 0), ("second", 1), ("again", 0)]:
        assert nature(site_in(report, function))[2:] == ("device", device)
    assert nature(site_in(report, "create"))[2:] == ("device", 1)
    assert {row["device"] for row in report["memory_map"]} >= {0, 1}


def test_peer_access_and_copies_between_devices_move_no_block(gmt):
    report = tell(gmt, """
        def first(): return alloc(1000)
        def second(): return alloc(2000)
        one = first()
        other = primary(1)
        two = second()
        call("cuCtxEnablePeerAccess", context, 0)
        refused("cuCtxEnablePeerAccess", context, 0)
        call("cuMemcpyPeer", two, other, one, context, c_size_t(1000))
        call("cuMemFree_v2", one)           # of the other device
        call("cuCtxDisablePeerAccess", context)
        """, env={"SIMGPU_DEVICES": 2}).report
    assert (nature(site_in(report, "first"))[3], figures(site_in(report, "first"))) == (0, (1, 0, 0))
    assert (nature(site_in(report, "second"))[3], figures(site_in(report, "second"))) == (1, (1, 1, 2000))
    expect_clean(report)


def test_a_context_that_is_kept_by_attaching_ends_with_its_last_reference(gmt):
    report = tell(gmt, """
        second = c_void_p()
        call("cuCtxCreate_v2", byref(second), 0, 0)
        call("cuCtxAttach", byref(second), 0)
        def hold(): alloc(1000)
        hold()
        call("cuCtxDetach", second)
        def probe():
            address = u64()
            refused("cuMemAlloc_v2", byref(address), c_size_t(1 << 50))
        probe()
        call("cuCtxDetach", second)
        """).report
    assert figures(site_in(report, "hold")) == (1, 0, 0)
    assert report["ooms"][0]["live_bytes"] == 1000 and report["counters"]["teardown_frees"] == 1
