"""What each family's calls come to in the books, by the accounting rules: one small story a test, told by a Python function
named after it, with the right figures from NVIDIA's documentation and arithmetic."""
import pytest
from hook_stories import GRANULE, driver, expect_clean, figures, nature, site_in, sites_in, tell

pytestmark = pytest.mark.usefixtures("driver")

# Pools


def test_pool_memory_is_the_pools_devices_and_outlives_the_pool(gmt):
    report = tell(gmt, """
        pool = c_void_p()
        call("cuMemPoolCreate", byref(pool), byref(PoolProps(1, 0, Location(1, 1))))
        def hold(size):
            address = u64()
            call("cuMemAllocFromPoolAsync", byref(address), c_size_t(size), pool, None)
            return address
        a, b, c = hold(1000), hold(2000), hold(3000)
        call("cuMemFreeAsync", a, None)
        call("cuMemPoolTrimTo", pool, c_size_t(0))
        call("cuMemPoolDestroy", pool)
        call("cuMemFree_v2", b)
        """, env={"SIMGPU_DEVICES": 2}).report
    site = site_in(report, "hold")
    assert nature(site) == ("cuMemAllocFromPoolAsync", "pool", "device", 1)
    assert figures(site) == (3, 1, 3000)
    expect_clean(report)


def test_the_default_pool_of_another_device_is_found_out(gmt):
    report = tell(gmt, """
        pool = c_void_p()
        call("cuDeviceGetDefaultMemPool", byref(pool), 1)
        def hold():
            address = u64()
            call("cuMemAllocFromPoolAsync", byref(address), c_size_t(500), pool, None)
        hold()
        other = primary(1)
        stream = c_void_p()
        call("cuStreamCreate", byref(stream), 0)
        call("cuCtxSetCurrent", context)
        def on_stream():
            address = u64()
            return lib.cuMemAllocAsync(byref(address), c_size_t(700), stream)
        code = on_stream()
        def here():
            address = u64()
            call("cuMemAllocAsync", byref(address), c_size_t(800), None)
        here()
        """, env={"SIMGPU_DEVICES": 2}).report
    assert nature(site_in(report, "hold"))[1:] == ("pool", "device", 1)
    assert nature(site_in(report, "here"))[1:] == ("pool", "device", 0)
    site = site_in(report, "on_stream")
    if site["allocs"]:
        assert site["device"] == 1


# Old names


def test_names_without_a_suffix_keep_their_32_bits(gmt):
    report = tell(gmt, """
        def hold():
            address = (c_uint * 3)(7, 7, 7)
            call("cuMemAlloc", byref(address, 4), c_uint(1000))
            assert address[0] == address[2] == 7
            return address[1]
        one, two = [hold() for n in range(2)]
        call("cuMemFree", c_uint(one))
        """).report
    assert nature(site_in(report, "hold")) == ("cuMemAlloc", "plain", "device", 0)
    assert figures(site_in(report, "hold")) == (2, 1, 1000)
    expect_clean(report)


# Between processes


def test_shared_handles_are_foreign_and_as_large_as_they_are_mapped(gmt):
    """Imported into the process that exported them, which the driver allows."""
    report = tell(gmt, """
        shared = Props(1, 1, Location(1, 0))
        handle = create(3 * GRANULE, shared)
        fd = c_int()
        call("cuMemExportToShareableHandle", byref(fd), handle, 1, u64())
        def bring_in():
            other = u64()
            call("cuMemImportFromShareableHandle", byref(other), c_void_p(fd.value), 1)
            return other
        a, b, c = bring_in(), bring_in(), bring_in()
        at = reserve(6 * GRANULE)
        map_at(at, 3 * GRANULE, a)
        map_at(u64(at.value + 3 * GRANULE), 3 * GRANULE, b)
        call("cuMemRelease", b)
        call("cuMemUnmap", u64(at.value + 3 * GRANULE), c_size_t(3 * GRANULE))
        """).report
    site = site_in(report, "bring_in")
    assert nature(site)[:3] == ("cuMemImportFromShareableHandle", "ipc", "foreign")
    assert (site["allocs"], site["frees"], site["live_blocks"], site["live_bytes"]) == (3, 1, 2, 3 * GRANULE)
    assert site["allocated_bytes"] == 2 * 3 * GRANULE  # the third was never mapped
    (device,) = [row for row in report["spaces"] if row["space"] == "device"]
    assert device["live_bytes"] == 3 * GRANULE
    expect_clean(report)


def test_memory_opened_twice_is_one_block_closed_twice(gmt):
    done = tell(gmt, """
        import os
        class Handle(Structure):
            _fields_ = [("bytes", c_char * 64)]
        ready, go = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            call("cuInit", 0)
            primary()
            handle = Handle()
            call("cuIpcGetMemHandle", byref(handle), alloc(5000))
            os.write(ready[1], bytes(handle))
            os.read(go[0], 1)
            os._exit(0)
        handle = Handle.from_buffer_copy(os.read(ready[0], 64))
        call("cuInit", 0)
        primary()
        def open_it():
            address = u64()
            call("cuIpcOpenMemHandle_v2", byref(address), handle, 1)
            return address
        a, b, c = [open_it() for n in range(3)]
        assert a.value == b.value == c.value
        call("cuIpcCloseMemHandle", a)
        call("cuIpcCloseMemHandle", b)
        os.write(go[1], b"x")
        os.wait()
        """, start=False)
    (report,) = [report for report in done.reports if sites_in(report, "open_it")]
    site = site_in(report, "open_it")
    assert nature(site) == ("cuIpcOpenMemHandle", "ipc", "foreign", 0)
    assert figures(site) == (1, 1, 5000)
    expect_clean(report)


# Arrays


@pytest.mark.parametrize("what, expected", [
    # width, height, depth, format, channels, flags, levels (0: not mipmapped)
    ((100, 0, 0, 0x20, 4, 0, 0), 100 * 16),                                  # 1D of float4
    ((100, 50, 0, 0x10, 2, 0, 0), 100 * 50 * 4),                             # 2D of half2
    ((64, 32, 16, 0x01, 1, 0, 0), 64 * 32 * 16),                             # 3D of bytes
    ((64, 32, 5, 0x03, 1, 0x01, 0), 64 * 32 * 5 * 4),                        # 5 layers
    ((64, 0, 5, 0x03, 1, 0x01, 0), 64 * 5 * 4),                              # 1D layered: no height
    ((64, 64, 6, 0x08, 4, 0x04, 0), 64 * 64 * 6 * 4),                        # cubemap
    ((64, 64, 12, 0x08, 4, 0x05, 0), 64 * 64 * 12 * 4),                      # two layers of cubemaps
    ((64, 64, 0, 0xb0, 3, 0, 0), 64 * 64 * 3 // 2),                          # NV12: 12 bits a texel
    ((64, 32, 0, 0x20, 1, 0, 7), 4 * (2048 + 512 + 128 + 32 + 8 + 2 + 1)),   # all levels of 64 x 32
    ((64, 32, 16, 0x20, 1, 0, 3), 4 * (64 * 32 * 16 + 32 * 16 * 8 + 16 * 8 * 4)),
    ((64, 32, 5, 0x20, 1, 0x01, 2), 4 * 5 * (64 * 32 + 32 * 16)),            # layers do not shrink
    ((64, 64, 0, 0x91, 4, 0, 0), 64 * 64 // 2),                              # BC1: 8 bytes for 4 x 4
])
def test_array_takes_the_texels_of_its_descriptor(gmt, what, expected):
    done = tell(gmt, f"""
        width, height, depth, format, channels, flags, levels = {what!r}
        array = c_void_p()
        def make():
            of = Array3D(width, height, depth, format, channels, flags)
            if levels:
                return lib.cuMipmappedArrayCreate(byref(array), byref(of), levels)
            return lib.cuArray3DCreate_v2(byref(array), byref(of))
        print(make())
        """)
    assert done.out == "0\n"
    site = site_in(done.report, "make")
    assert nature(site)[1:] == ("array", "device", 0)
    assert figures(site) == (1, 1, expected)


def test_arrays_are_freed_by_their_own_calls(gmt):
    report = tell(gmt, """
        of = Array3D(64, 64, 0, 0x20, 1, 0)
        def make(name, *more):
            array = c_void_p()
            call(name, byref(array), byref(of), *more)
            return array
        def flat(): return make("cuArray3DCreate_v2")
        def mipmap(): return make("cuMipmappedArrayCreate", 2)
        a, b, c, d = flat(), flat(), mipmap(), mipmap()
        level = c_void_p()
        call("cuMipmappedArrayGetLevel", byref(level), c, 1)
        call("cuArrayDestroy", a)
        call("cuMipmappedArrayDestroy", d)
        """).report
    assert figures(site_in(report, "flat")) == (2, 1, 64 * 64 * 4)
    assert figures(site_in(report, "mipmap")) == (2, 1, 4 * (64 * 64 + 32 * 32))
    expect_clean(report)


@pytest.mark.parametrize("variant", ["", "_ptsz"])
def test_tiles_of_sparse_arrays_hold_memory_until_the_last_is_unmapped(gmt, variant):
    report = tell(gmt, f"""
        MAP, UNMAP = 1, 2
        class Tiles(Structure):     # CUarrayMapInfo
            _fields_ = [("kind", c_int), ("array", c_void_p), ("part", c_ulonglong), ("level", c_uint), ("layer", c_uint),
                        ("start", c_uint * 3), ("extent", c_uint * 3), ("operation", c_int), ("type", c_int),
                        ("handle", c_ulonglong), ("offset", c_ulonglong), ("devices", c_uint), ("flags", c_uint),
                        ("reserved", c_uint * 2)]
            def __init__(self, x, y, width, height, handle):
                super().__init__(0, array, 0, 0, 0, (128 * x, 128 * y, 0), (128 * width, 128 * height, 1),
                                 MAP if handle else UNMAP, 0, handle, 0, 1)
        def pool():
            props = on_device()
            props.flags[2] = 1      # CU_MEM_CREATE_USAGE_TILE_POOL
            return create(GRANULE, props)
        def change(*what):
            tiles = (Tiles * len(what))(*what)
            return lib.cuMemMapArrayAsync{variant}(tiles, len(what), None)
        array = c_void_p()
        def make():
            call("cuArray3DCreate_v2", byref(array), byref(Array3D(512, 512, 0, 0x20, 1, 0x40)))
        make()
        def first(): return pool()
        def second(): return pool()
        one, other = first().value, second().value
        assert change(Tiles(0, 0, 4, 2, one), Tiles(0, 2, 2, 2, other)) == 0
        call("cuMemRelease", u64(one))
        call("cuMemRelease", u64(other))
        def probe():
            address = u64()
            refused("cuMemAlloc_v2", byref(address), c_size_t(1 << 50))
        probe()
        assert change(Tiles(0, 0, 2, 4, 0), Tiles(9, 0, 1, 1, 0)) != 0    # outside: both stay
        probe()
        assert change(Tiles(0, 0, 3, 4, 0)) == 0    # the second's all, and what of the first lies there
        probe()
        assert change(Tiles(3, 0, 1, 1, 0)) == 0
        probe()
        call("cuArrayDestroy", array)
        probe()
        """).report
    assert [oom["live_bytes"] for oom in report["ooms"]] == [2 * GRANULE, 2 * GRANULE, GRANULE, GRANULE, 0]
    site = site_in(report, "make")
    assert nature(site)[1] == "array" and figures(site) == (1, 0, 0) and site["allocated_bytes"] == 0
    expect_clean(report, failed=5)


# Refusals and nothings


def test_frees_of_nothing_are_nothing_and_of_the_unknown_foreign(gmt):
    report = tell(gmt, """
        def hold(): return alloc(1000)
        address = hold()
        call("cuMemFree_v2", u64(0))
        lib.cuMemFreeHost(None), lib.cuArrayDestroy(None), lib.cuMemHostUnregister(None), lib.cuMemFreeAsync(u64(0), None)
        refused("cuMemFree_v2", u64(0xdead0000))
        refused("cuMemFree_v2", u64(address.value + 8))
        refused("cuMemFreeHost", c_void_p(0x1000))
        """).report
    assert figures(site_in(report, "hold")) == (1, 1, 1000)
    expect_clean(report, foreign=3)


def test_a_refused_free_leaves_the_block_where_it_was(gmt):
    report = tell(gmt, """
        def hold():
            host = c_void_p()
            call("cuMemHostAlloc", byref(host), c_size_t(1000), 0)
            return host
        host = hold()
        refused("cuMemFree_v2", u64(host.value))        # pinned memory is freed by cuMemFreeHost
        """).report
    site = site_in(report, "hold")
    assert figures(site) == (1, 1, 1000) and site["frees"] == 0
