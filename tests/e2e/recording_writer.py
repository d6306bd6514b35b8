"""Writes recordings by hand, as include/gpumemtrace/trace.h describes them, good ones and any others."""
import struct

HEADER_BYTES = 4096
STRING, MODULE, NATIVE, PYTHON, STACK, SITE, PROCESS, NOTE, STATE, CHECKPOINT = range(1, 11)
ALLOC, FREE, UNFREE, RETAIN, TEARDOWN, FAILED, OOM, FOREIGN_FREE, MEMORY = range(16, 25)
MAP, UNMAP, POOL, PHASE_BEGIN, PHASE_END, STEP, CONTEXTS, CODE, PROCESSES, RESIZE, SAMPLE = range(40, 51)
PLAIN, PITCHED, MANAGED_FAMILY, POOL_FAMILY, VMM, ARRAY, PINNED_FAMILY, REGISTERED, GRAPH, IPC, EXTERNAL, TORCH, \
    ALLOCATOR = range(13)
DEVICE, MANAGED, PINNED = range(3)
ADDRESS, KEY_REGISTERED, HANDLE, KEY_ARRAY, KEY_GRAPH, FRAMEWORK = range(6)
(COUNTERS, SPACE, SITE_STATE, HISTORY, BLOCK, MEMORY_STATE, POOL_STATE, OOM_STATE, SHARE, LAYOUT, LAYOUT_SEGMENT,
 PINNER, SEGMENTS, FRAMEWORK_STATE, FULLEST, SEGMENT, KEPT_BLOCK, PHASE, RANGE, PHASE_SITE, STEPS, WHOLE, SUMMITS,
 SUMMIT) = range(1, 25)


def number(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value):
    return number(value * 2 if value >= 0 else -value * 2 - 1)


class Recording:
    """Records in the order they are put. What defines something returns its number."""

    def __init__(self):
        self.records = bytearray()
        self.strings = {}
        self.counts = dict.fromkeys((MODULE, NATIVE, STACK, SITE), 0)
        self.previous = {}
        self.time = 0

    def put(self, tag, *fields):
        self.records += bytes([tag])
        for field in fields:
            self.records += field if isinstance(field, bytes) else number(field)

    def string(self, text):
        text = text.encode(errors="surrogatepass") if isinstance(text, str) else text
        if text not in self.strings:
            self.strings[text] = len(self.strings)
            self.put(STRING, len(text), text)
        return self.strings[text]

    def _define(self, tag, *fields, kind=None):
        self.put(tag, *fields)
        self.counts[kind or tag] += 1
        return self.counts[kind or tag] - 1

    def module(self, path, bias=0x7F0000000000, start=0x7F0000001000, bytes=0x5000, size=0, mtime=0, build_id=b""):
        return self._define(MODULE, self.string(path), bias, start, bytes, size, mtime, len(build_id), build_id)

    def native(self, module, offset):
        return self._define(NATIVE, 0 if module is None else module + 1, offset)

    def python(self, function, file, line):
        return self._define(PYTHON, self.string(function), self.string(file), line, kind=NATIVE)

    def stack(self, *frames):
        steps = [signed(frame - before) for before, frame in zip((0,) + frames, frames)]
        return self._define(STACK, len(frames), *steps)

    def site(self, stack=None, api="cuMemAlloc", family=PLAIN, space=DEVICE, device=0):
        return self._define(SITE, 0 if stack is None else stack + 1, self.string(api), family, space, device + 1)

    def process(self, exe="/bin/train", host="host", rank="", *arguments):
        ids = [self.string(text) for text in (exe, host, rank, *arguments)]
        self.put(PROCESS, len(ids), *ids)

    def note(self, text):
        self.put(NOTE, self.string(text))

    def event(self, tag, *fields, time=1000):
        self.time += time
        self.put(tag, signed(time), *fields)

    def key(self, value, space=ADDRESS):
        step = signed(value - self.previous.get(space, 0))
        self.previous[space] = value
        return number(space) + step

    def alloc(self, site, address, size, context=1, space=ADDRESS, time=1000):
        self.event(ALLOC, site, self.key(address, space), size, context, time=time)

    def free(self, address, space=ADDRESS, time=1000):
        self.event(FREE, self.key(address, space), time=time)

    def state(self, kind, *values):
        self.put(STATE, kind, len(values), *values)

    def file(self, **header):
        """The whole file. `header`: fields that are not to be what a good one has."""
        fields = {"magic": b"GPUMTRC\0", "version": 1, "header_size": HEADER_BYTES,
                  "committed": HEADER_BYTES + len(self.records), "state": 1, "pid": 4711, "ppid": 4710, "reserved": 0,
                  "start_realtime_ns": 1700000000 * 10**9, "start_monotonic_ns": 5, "process_start_ticks": 0,
                  "end_ns": max(self.time, 0) + 1000, "dropped_events": 0, "boot_id": b"no boot of this machine",
                  "session": b"", "half_bytes": 0, "begun": 0, **header}
        page = struct.pack("<8sIIQIIIIQQQQQ40s40sQQ", *fields.values())
        return page.ljust(HEADER_BYTES, b"\0") + bytes(self.records)

    def write(self, path, **header):
        path.write_bytes(self.file(**header))
        return path


def example(made=None):
    """A little of everything, in order."""
    made = made or Recording()
    made.process("/bin/train", "host", "3", "--fast")
    module = made.module("/lib/a.so", size=99999, mtime=1700000000123456789, build_id=b"\1\2\3")
    native = made.native(module, 0x1234)
    jit = made.native(None, 0x7F1200000000)
    inner, outer = made.python("Trainer.step", "/src/a.py", 300), made.python("<module>", "/src/main.py", 7)
    stack = made.stack(native, jit, inner, outer)
    plain = made.site(stack)
    pinned = made.site(None, "cuMemAllocHost", PINNED_FAMILY, PINNED, -1)
    torch = made.site(made.stack(inner, outer), "torch", TORCH)
    vmm = made.site(made.stack(outer), "cuMemCreate", VMM)
    made.note("a note")
    made.event(SAMPLE, 0, 7 << 30, 8 << 30, 0, 1)
    made.event(CONTEXTS, 256 << 20, 0, 1, 0)
    made.event(MEMORY, 7 << 30, 8 << 30, 0)
    made.event(PHASE_BEGIN, made.string("epoch"), 1)
    made.event(MAP, vmm, made.key(0x7F5000000000), 2 << 20)
    for step in range(12):
        address = 0x7F1234000000 + (step << 22)
        made.alloc(plain, address, 4 << 20)
        made.alloc(torch, address + 512, 1 << 20, space=FRAMEWORK)
        made.alloc(pinned, 0x7E0000000000 + step * 4096, 4096)
        made.event(STEP, step)
        if step % 3 == 0:
            made.free(address + 512, FRAMEWORK)
    made.event(RETAIN, made.key(0x7F1234000000))
    made.free(0x7F1234000000)
    made.free(0x7F1234000000)
    made.event(UNFREE, plain, made.key(0x7F1234000000), 4 << 20, 1, 1000)
    made.event(FAILED, plain, 10, 1)
    made.event(POOL, made.key(77, 13), 0, 1 << 20, 4 << 20, 0)
    made.event(OOM, plain, 1 << 40, 2, 1 << 20, 8 << 30)
    made.event(FOREIGN_FREE, made.key(0x7FFF00000000))
    made.event(UNMAP, made.key(0x7F5000000000))
    made.event(PHASE_END, 1)
    made.event(CODE, 5 << 20, 0, 1, 0)
    made.event(PROCESSES, 300 << 20, 900 << 20, 0)
    made.alloc(vmm, 99, 2 << 20, space=HANDLE)
    made.event(RESIZE, made.key(99, HANDLE), 4 << 20)
    made.event(TEARDOWN, 1)
    made.alloc(plain, 0x7F7700000000, 1 << 20)
    made.put(200, 3, b"abc")
    return made


def checkpointed(made=None):
    """A checkpoint with an item of every kind, then events."""
    made = made or Recording()
    made.process()
    stack = made.stack(made.python("step", "/src/a.py", 3), made.native(None, 4096))
    plain, torch = made.site(stack), made.site(stack, "torch", TORCH)
    epoch = made.string("epoch")
    made.put(CHECKPOINT, 5000)
    made.state(COUNTERS, 10, 4, 0, 1, 0, 0, 30)
    for layer in (0, 1):
        made.state(SPACE, layer, DEVICE, 1, 3 << 20, 3, 10, 7, 0, 20 << 20, 8 << 20, 2000, 0)
    for site in (plain, torch):
        made.state(SITE_STATE, site, 3 << 20, 3, 10, 7, 0, 20 << 20, 8 << 20, 2000, 1, 100, 4000, 2 << 20, 2, site)
        made.state(HISTORY, site, 100, 20, 20, *range(0, 21 << 16, 1 << 16))
    for block in range(3):
        made.state(BLOCK, 0x7F0000000000 + (block << 21), 1 << 20, 50, plain, 1, 1, block)
        made.state(BLOCK, FRAMEWORK << 60 | 0x7F0000000000 + (block << 21), 4096, 50, torch, 0, 1, block)
    sample = [0, 100, 7 << 30, 8 << 30, 1 << 20, 0, 0, 0, 0]
    made.state(MEMORY_STATE, 1, 1, 256 << 20, 0, 1, 5 << 20, 0, 100, 300 << 20, 900 << 20, *sample * 9)
    made.state(POOL_STATE, 77, 1, 100, 4 << 20, 1 << 20, 0, 5 << 20)
    made.state(OOM_STATE, 1500, plain, 2, 1 << 40, 1 << 20, 8 << 30, 3 << 20, 0, 2, 1)
    made.state(SHARE, plain, 3 << 20, 3)
    made.state(SHARE, torch, 12288, 3)
    made.state(LAYOUT, made.strings[b"torch"], 1, 1500, 6 << 20, 12288, 1 << 20, 2 << 20, 1 << 20, 3, 0, 1, 1, 1)
    made.state(LAYOUT_SEGMENT, 0x7F0000000000, 2 << 20, 4096, 0, 1 << 20, 1 << 20, 1, 0xFFFF, 7)
    made.state(PINNER, torch, 1 << 20, 1, 1)
    made.state(SEGMENTS, 1, 0, 0, 0)
    made.state(FRAMEWORK_STATE, made.strings[b"torch"])
    made.state(FULLEST, 1, 3 << 20, 12288, 1500, 9, 0, 0)
    for block in range(3):
        made.state(SEGMENT, 0, 0x7F0000000000 + (block << 21), 1 << 20, plain, 1, 0, 1, 1, 9, block)
    made.state(SEGMENT, 1, 0x7F3000000000, 1 << 20, plain, 1, 0, 1, 1, 9, 2)
    made.state(KEPT_BLOCK, 1, FRAMEWORK << 60 | 0x7F3000000000, 4096, 50, torch, 0, 1, 2)
    made.state(PHASE, epoch, 0, 3, 1, 3, 100, 900, 8 << 20, 1 << 20, 0, 0, 3000, 1 << 20, 0)
    made.state(RANGE, 5, 0)
    made.state(PHASE_SITE, 0, plain, 1 << 20, 1 << 20, 3, 0)
    made.state(STEPS, 21, 100, 20, 20, *range(21))
    made.state(SUMMITS, 0, 64, 1 << 20, 1, 4000)
    made.state(SUMMIT, plain + 1, 2 << 20, 0, 2001, plain + 1, (1 << 20) - 1, 0, 3001)
    for step in range(20):
        made.alloc(plain, 0x7F4000000000 + (step << 21), 1 << 20, time=6000 if step == 0 else 1000000)
        made.event(STEP, 21 + step)
    return made
