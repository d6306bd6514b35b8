"""Physical memory, its handles and mappings, and multicast objects, in the books: small stories, as in test_hooks_families.py."""
import pytest
from hook_stories import GRANULE, driver, expect_clean, figures, nature, site_in, tell

pytestmark = pytest.mark.usefixtures("driver")


@pytest.mark.parametrize("order", ["release, unmap", "unmap, release", "retain, release, unmap, release"])
def test_physical_memory_lives_until_its_last_reference_and_mapping(gmt, order):
    report = tell(gmt, f"""
        at = reserve(4 * GRANULE)
        def hold():
            handle = create(4 * GRANULE)
            map_at(at, 4 * GRANULE, handle)
            return handle
        handle = hold()
        def keep():
            return create(GRANULE)
        keep()
        steps = {order.split(', ')!r}
        for step in steps:
            if step == "release": call("cuMemRelease", handle)
            elif step == "unmap": call("cuMemUnmap", at, c_size_t(4 * GRANULE))
            else: call("cuMemRetainAllocationHandle", byref(handle), at)
            # A probe: what is alive when it fails tells how far the block got.
            address = u64()
            refused("cuMemAlloc_v2", byref(address), c_size_t(1 << 50))
        """).report
    site = site_in(report, "hold")
    assert nature(site) == ("cuMemCreate", "vmm", "device", 0)
    assert figures(site) == (1, 0, 0) and site["frees"] == 1
    expect_clean(report, failed=len(order.split(", ")))
    alive = [oom["live_bytes"] for oom in report["ooms"]]
    assert alive == [5 * GRANULE] * (len(alive) - 1) + [GRANULE]


def test_physical_memory_mapped_and_released_is_alive(gmt):
    report = tell(gmt, """
        at = reserve(6 * GRANULE)
        def hold():
            for n in range(3):
                handle = create(2 * GRANULE)
                map_at(u64(at.value + 2 * n * GRANULE), 2 * GRANULE, handle)
                call("cuMemRelease", handle)
        hold()
        call("cuMemUnmap", at, c_size_t(4 * GRANULE))   # the first two at once
        """).report
    assert figures(site_in(report, "hold")) == (3, 1, 2 * GRANULE)
    expect_clean(report)


def test_a_refused_map_release_or_unmap_changes_nothing(gmt):
    report = tell(gmt, """
        at = reserve(2 * GRANULE)
        def hold():
            handle = create(GRANULE)
            map_at(at, GRANULE, handle)
            return handle
        handle = hold()
        refused("cuMemMap", at, c_size_t(GRANULE), c_size_t(0), handle, u64())      # taken
        refused("cuMemUnmap", u64(at.value + GRANULE), c_size_t(GRANULE))           # nothing there
        refused("cuMemUnmap", at, c_size_t(GRANULE // 2))                           # not the whole
        refused("cuMemCreate", None, c_size_t(GRANULE), byref(on_device()), u64())
        call("cuMemRelease", handle)
        refused("cuMemRelease", handle)
        """).report
    assert figures(site_in(report, "hold")) == (1, 1, GRANULE)
    expect_clean(report, failed=1)


def test_host_memory_of_vmm_is_host_memory(gmt):
    report = tell(gmt, """
        def hold():
            handle = u64()
            return lib.cuMemCreate(byref(handle), c_size_t(GRANULE), byref(Props(1, 0, Location(2, 0))), u64())
        if hold(): sys.exit("not supported")
        """, ).report
    assert nature(site_in(report, "hold")) == ("cuMemCreate", "vmm", "host", None)


def test_a_multicast_object_is_no_memory(gmt):
    report = tell(gmt, """
        class Multicast(Structure):
            _fields_ = [("devices", c_uint), ("size", c_size_t), ("handles", c_ulonglong), ("flags", c_ulonglong)]
        alloc(4096)
        handle = u64()
        call("cuMulticastCreate", byref(handle), byref(Multicast(2, GRANULE, 0, 0)))
        call("cuMulticastAddDevice", handle, 0)
        call("cuMulticastAddDevice", handle, 1)
        at = reserve(GRANULE)
        map_at(at, GRANULE, handle)
        call("cuMemUnmap", at, c_size_t(GRANULE))
        call("cuMemRelease", handle)
        """, env={"SIMGPU_DEVICES": 2}).report
    assert report["counters"]["allocs"] == 1
    expect_clean(report)


def test_memory_bound_to_a_multicast_object_lives_until_it_is_unbound_or_the_object_ends(gmt):
    report = tell(gmt, """
        class Multicast(Structure):
            _fields_ = [("devices", c_uint), ("size", c_size_t), ("handles", c_ulonglong), ("flags", c_ulonglong)]
        multicast = u64()
        call("cuMulticastCreate", byref(multicast), byref(Multicast(1, 4 * GRANULE, 0, 0)))
        call("cuMulticastAddDevice", multicast, 0)
        at = reserve(GRANULE)
        def by_handle(): return create(GRANULE)
        def by_address(): return create(GRANULE)
        def unbound(): return create(GRANULE)
        def left(): return create(GRANULE)
        def bind(offset, handle):
            call("cuMulticastBindMem", multicast, c_size_t(offset), handle, c_size_t(0), c_size_t(GRANULE), u64())
            call("cuMemRelease", handle)
        bind(0, by_handle())
        handle = by_address()
        map_at(at, GRANULE, handle)
        call("cuMulticastBindAddr", multicast, c_size_t(GRANULE), at, c_size_t(GRANULE), u64())
        call("cuMemUnmap", at, c_size_t(GRANULE))
        call("cuMemRelease", handle)
        bind(2 * GRANULE, unbound())
        refused("cuMulticastUnbind", multicast, 0, c_size_t(3 * GRANULE), c_size_t(GRANULE))
        def probe():
            address = u64()
            refused("cuMemAlloc_v2", byref(address), c_size_t(1 << 50))
        probe()
        call("cuMulticastUnbind", multicast, 0, c_size_t(2 * GRANULE), c_size_t(GRANULE))
        probe()
        call("cuMemRelease", multicast)
        probe()
        left()
        """).report
    assert [oom["live_bytes"] for oom in report["ooms"]] == [3 * GRANULE, 2 * GRANULE, 0]
    assert figures(site_in(report, "left")) == (1, 1, GRANULE)
    expect_clean(report, failed=3)
