"""Memory that graphs allocate: a block for each allocation node, from its making to its end (as test_hooks_families.py)."""
import pytest
from hook_stories import driver, expect_clean, figures, nature, site_in, sites_in, tell

pytestmark = pytest.mark.usefixtures("driver")

GRAPHS = """
def new_graph():
    graph = c_void_p()
    call("cuGraphCreate", byref(graph), 0)
    return graph

def add_alloc(graph, size, device=0, behind=None):
    node = c_void_p()
    params = AllocNode(PoolProps(1, 0, Location(1, device)), None, 0, size, 0)
    call("cuGraphAddMemAllocNode", byref(node), graph, byref(behind) if behind else None, c_size_t(1 if behind else 0),
         byref(params))
    return node, u64(params.address)

def add_free(graph, node, address):
    free = c_void_p()
    call("cuGraphAddMemFreeNode", byref(free), graph, byref(node), c_size_t(1), address)
    return free

def instantiate(graph, flags=0):
    exec = c_void_p()
    call("cuGraphInstantiateWithFlags", byref(exec), graph, u64(flags))
    return exec

def launch(exec):
    call("cuGraphLaunch", exec, None)
    call("cuCtxSynchronize")

def probe():
    # What is alive when it fails is in the report.
    address = u64()
    refused("cuMemAlloc_v2", byref(address), c_size_t(1 << 50))

def stream():
    made = c_void_p()
    call("cuStreamCreate", byref(made), 1)
    return made
"""


def tell_graphs(gmt, story, env=None):
    import textwrap
    return tell(gmt, GRAPHS + textwrap.dedent(story), env)


def graph_space(report, device=0):
    rows = [row for row in report["spaces"] if row["space"] == "graph" and row["device"] == device]
    return rows[0] if rows else None


def test_an_allocation_node_is_a_block_until_its_graph_ends(gmt):
    report = tell_graphs(gmt, """
        def hold(graph, size): return add_alloc(graph, size)
        a, b = new_graph(), new_graph()
        for graph, size in [(a, 1000), (a, 2000), (b, 4000)]: hold(graph, size)
        call("cuGraphDestroy", a)
        refused("cuGraphDestroy", None)
        """).report
    site = site_in(report, "hold")
    assert nature(site) == ("cuGraphAddMemAllocNode", "graph", "graph", 0)
    assert figures(site) == (3, 1, 4000)
    assert graph_space(report)["peak_bytes"] == 7000
    expect_clean(report)


def test_nodes_are_on_the_device_they_name(gmt):
    report = tell_graphs(gmt, """
        def hold(): add_alloc(new_graph(), 1000, device=1)
        hold()
        """, env={"SIMGPU_DEVICES": 2}).report
    assert nature(site_in(report, "hold"))[3] == 1


def test_a_free_node_ends_the_block_and_launches_change_nothing(gmt):
    report = tell_graphs(gmt, """
        def hold(graph): return add_alloc(graph, 1000)
        graph = new_graph()
        node, address = hold(graph)
        add_free(graph, node, address)
        refused("cuGraphAddMemFreeNode", byref(c_void_p()), graph, byref(node), c_size_t(1), address)  # twice
        exec = instantiate(graph)
        for turn in range(3): launch(exec)
        call("cuGraphExecDestroy", exec)
        call("cuGraphDestroy", graph)
        """).report
    assert figures(site_in(report, "hold")) == (1, 0, 0)
    assert report["counters"]["frees"] == 1
    expect_clean(report)


@pytest.mark.parametrize("free", ['call("cuMemFree_v2", address)', 'call("cuMemFreeAsync", address, None)'])
def test_memory_freed_outside_its_graph_is_taken_again_by_the_next_launch(gmt, free):
    report = tell_graphs(gmt, f"""
        def hold(graph): return add_alloc(graph, 1000)
        def again(exec): launch(exec)
        graph = new_graph()
        node, address = hold(graph)
        exec = instantiate(graph)
        launch(exec)
        {free}
        probe()
        again(exec)
        probe()
        {free}
        probe()
        """).report
    assert figures(site_in(report, "hold")) == (1, 0, 0)
    site = site_in(report, "again")
    assert nature(site) == ("cuGraphLaunch", "graph", "graph", 0) and figures(site) == (1, 0, 0)
    assert graph_space(report)["live_blocks"] == 0 and graph_space(report)["allocs"] == 2
    expect_clean(report, failed=3)


def test_memory_that_a_launch_left_outlives_its_graph(gmt):
    """"Graph destruction does not automatically free any live graph-allocated memory.\""""
    report = tell_graphs(gmt, """
        def left(graph): return add_alloc(graph, 1000)
        def freed(graph): return add_alloc(graph, 2000)
        def unused(graph): return add_alloc(graph, 4000)
        graph, other = new_graph(), new_graph()
        left(graph)
        node, address = freed(graph)
        unused(other)
        exec = instantiate(graph)
        launch(exec)
        call("cuGraphExecDestroy", exec)
        call("cuGraphDestroy", graph)
        call("cuGraphDestroy", other)
        call("cuMemFree_v2", address)
        """).report
    assert figures(site_in(report, "left")) == (1, 1, 1000)
    assert figures(site_in(report, "freed")) == (1, 0, 0)
    assert figures(site_in(report, "unused")) == (1, 0, 0)
    expect_clean(report)


def test_an_executable_graph_outlives_the_one_it_was_made_from(gmt):
    report = tell_graphs(gmt, """
        def hold(graph): return add_alloc(graph, 1000)
        graph = new_graph()
        node, address = hold(graph)
        exec = instantiate(graph)
        call("cuGraphDestroy", graph)
        launch(exec)
        probe()
        call("cuMemFree_v2", address)
        launch(exec)
        call("cuMemFree_v2", address)
        call("cuGraphExecDestroy", exec)
        """).report
    assert figures(site_in(report, "hold")) == (1, 0, 0)
    space = graph_space(report)
    assert (space["allocs"], space["live_blocks"]) == (3, 0)
    expect_clean(report, failed=1)


@pytest.mark.parametrize("suffix", ["", "_ptsz"])
def test_an_allocation_on_a_capturing_stream_is_a_node(gmt, suffix):
    report = tell_graphs(gmt, f"""
        def hold(size):
            address = u64()
            call("cuMemAllocAsync{suffix}", byref(address), c_size_t(size), s)
            return address
        def pooled(size):
            address, pool = u64(), c_void_p()
            call("cuDeviceGetDefaultMemPool", byref(pool), 0)
            call("cuMemAllocFromPoolAsync{suffix}", byref(address), c_size_t(size), pool, s)
        s, graph = stream(), c_void_p()
        call("cuStreamBeginCapture_v2{suffix}", s, 1)
        a, b = [hold(size) for size in (1000, 2000)]
        pooled(4000)
        call("cuMemFreeAsync{suffix}", a, s)
        call("cuStreamEndCapture{suffix}", s, byref(graph))
        exec = instantiate(graph)
        for turn in range(2):
            call("cuGraphLaunch{suffix}", exec, s)
            call("cuStreamSynchronize", s)
            if turn == 0: call("cuMemFree_v2", b); lib.cuMemFree_v2
            break
        """).report
    site = site_in(report, "hold")
    assert nature(site) == ("cuMemAllocAsync", "graph", "graph", 0)
    assert figures(site) == (2, 0, 0)
    assert figures(site_in(report, "pooled")) == (1, 1, 4000) and site_in(report, "pooled")["family"] == "graph"
    assert not [row for row in report["spaces"] if row["space"] == "device"]
    expect_clean(report)


def test_a_capture_that_comes_to_nothing_leaves_nothing(gmt):
    report = tell_graphs(gmt, """
        def hold():
            address = u64()
            call("cuMemAllocAsync", byref(address), c_size_t(1000), s)
        s, graph = stream(), c_void_p(77)
        call("cuStreamBeginCapture_v2", s, 0)
        hold()
        refused("cuStreamSynchronize", s)           # not while capturing: that invalidates it
        refused("cuStreamEndCapture", s, byref(graph))
        alloc(500)
        """).report
    assert figures(site_in(report, "hold")) == (1, 0, 0)
    expect_clean(report)


def test_a_stream_beside_the_capture_allocates_as_ever(gmt):
    report = tell_graphs(gmt, """
        def captured():
            address = u64()
            call("cuMemAllocAsync", byref(address), c_size_t(1000), s)
        def beside():
            address = u64()
            call("cuMemAllocAsync", byref(address), c_size_t(3000), t)
            return address
        s, t, graph = stream(), stream(), c_void_p()
        call("cuStreamBeginCapture_v2", s, 2)
        captured()
        address = beside()
        call("cuMemFreeAsync", address, t)
        call("cuStreamEndCapture", s, byref(graph))
        call("cuGraphDestroy", graph)
        """).report
    assert nature(site_in(report, "captured"))[1:] == ("graph", "graph", 0)
    assert nature(site_in(report, "beside"))[1:] == ("pool", "device", 0)
    assert figures(site_in(report, "captured")) == (1, 0, 0) and figures(site_in(report, "beside")) == (1, 0, 0)
    expect_clean(report)


def test_no_memory_inside_a_capture_does_not_break_the_capture(gmt):
    """Asking the driver how much is free must not be what invalidates it."""
    report = tell_graphs(gmt, """
        def hold():
            address = u64()
            call("cuMemAllocAsync", byref(address), c_size_t(1000), s)
        s, graph = stream(), c_void_p()
        call("cuStreamBeginCapture_v2", s, 0)
        hold()
        mode = c_int(2)
        call("cuThreadExchangeStreamCaptureMode", byref(mode))
        probe()
        call("cuThreadExchangeStreamCaptureMode", byref(mode))
        assert mode.value == 2, "the thread's mode is the program's"
        call("cuStreamEndCapture", s, byref(graph))
        assert graph.value
        """).report
    assert figures(site_in(report, "hold")) == (1, 1, 1000)
    expect_clean(report, failed=1)


def test_nodes_of_any_kind_by_one_call(gmt):
    report = tell_graphs(gmt, """
        class Node(Structure):
            _fields_ = [("type", c_int), ("reserved", c_int * 3), ("alloc", AllocNode), ("rest", c_ubyte * 1024)]
        def by_hand(graph, version):
            node = c_void_p()
            params = Node(type=10, alloc=AllocNode(PoolProps(1, 0, Location(1, 0)), None, 0, 1000, 0))
            edges = [None] if version else []
            code = getattr(lib, "cuGraphAddNode" + version)(byref(node), graph, None, *edges, c_size_t(0), byref(params))
            assert code == 0, code
            return node, params.alloc.address
        graph = new_graph()
        made = [by_hand(graph, version) for version in ("", "_v2")]
        node, address = made[0]
        params = Node(type=11)
        ctypes.memmove(ctypes.addressof(params) + Node.alloc.offset, byref(u64(address)), 8)
        call("cuGraphAddNode_v2", byref(c_void_p()), graph, byref(node), None, c_size_t(1), byref(params))
        """).report
    sites = sites_in(report, "by_hand")
    assert {nature(site) for site in sites} == {("cuGraphAddNode", "graph", "graph", 0)}
    assert [sum(values) for values in zip(*map(figures, sites))] == [2, 1, 1000]
    expect_clean(report)


def test_trimming_changes_no_block(gmt):
    report = tell_graphs(gmt, """
        def hold(graph): return add_alloc(graph, 1000)
        graph = new_graph()
        hold(graph)
        launch(instantiate(graph))
        call("cuDeviceGraphMemTrim", 0)
        """).report
    assert figures(site_in(report, "hold")) == (1, 1, 1000)


# Beside graphs: memory of other APIs, and green contexts


def test_memory_mapped_from_outside_is_foreign(gmt):
    report = tell_graphs(gmt, """
        import os
        class Source(Structure):
            _fields_ = [("type", c_int), ("fd", c_int), ("more", c_void_p), ("size", c_ulonglong), ("flags", c_uint),
                        ("reserved", c_uint * 16)]
        class Buffer(Structure):
            _fields_ = [("offset", c_ulonglong), ("size", c_ulonglong), ("flags", c_uint), ("reserved", c_uint * 16)]
        class Mipmap(Structure):
            _fields_ = [("offset", c_ulonglong), ("array", Array3D), ("levels", c_uint), ("reserved", c_uint * 16)]
        fd = os.memfd_create("other")
        os.ftruncate(fd, 64 * MIB)
        external = c_void_p()
        source = Source()
        source.type, source.fd, source.size = 1, fd, 64 * MIB
        ctypes.memmove(ctypes.addressof(source) + 8, byref(c_int(fd)), 4)
        ctypes.memmove(ctypes.addressof(source) + 24, byref(c_ulonglong(64 * MIB)), 8)
        call("cuImportExternalMemory", byref(external), byref(source))
        def buffer(size):
            address = u64()
            call("cuExternalMemoryGetMappedBuffer", byref(address), external, byref(Buffer(0, size, 0)))
            return address
        def mipmap():
            array = c_void_p()
            of = Mipmap(0, Array3D(64, 32, 0, 0x20, 1, 0), 2)
            call("cuExternalMemoryGetMappedMipmappedArray", byref(array), external, byref(of))
            return array
        a, b = [buffer(size) for size in (1000, 5000)]
        arrays = [mipmap() for n in range(2)]
        call("cuDestroyExternalMemory", external)
        call("cuMemFree_v2", a)
        call("cuMipmappedArrayDestroy", arrays[0])
        """).report
    assert nature(site_in(report, "buffer")) == ("cuExternalMemoryGetMappedBuffer", "external", "foreign", 0)
    assert figures(site_in(report, "buffer")) == (2, 1, 5000)
    assert figures(site_in(report, "mipmap")) == (2, 1, 4 * (64 * 32 + 32 * 16))
    expect_clean(report)


def test_memory_of_a_green_context_is_its_primary_contexts(gmt):
    report = tell(gmt, """
        call("cuInit", 0)
        resource = (c_ubyte * 144)()
        call("cuDeviceGetDevResource", 0, byref(resource), 1)
        description, green, current = c_void_p(), c_void_p(), c_void_p()
        call("cuDevResourceGenerateDesc", byref(description), byref(resource), 1)
        call("cuGreenCtxCreate", byref(green), description, 0, 1)
        call("cuCtxFromGreenCtx", byref(current), green)
        call("cuCtxSetCurrent", current)
        def hold(): alloc(1000)
        hold()
        call("cuCtxSetCurrent", None)
        call("cuGreenCtxDestroy", green)
        """, start=False).report
    site = site_in(report, "hold")
    assert nature(site) == ("cuMemAlloc", "plain", "device", 0)
    # The green context held the only reference to the primary one.
    assert figures(site) == (1, 0, 0) and report["counters"]["teardown_frees"] == 1
