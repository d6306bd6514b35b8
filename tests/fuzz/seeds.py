#!/usr/bin/env python3
"""Writes the part of the corpus that is made and not found: small inputs of each kind, to begin from."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import recording_writer as w  # noqa: E402


def save(target, name, data):
    folder = ROOT / "tests" / "fuzz" / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def recordings():
    save("recording", "example", bytes(w.example().records))
    save("recording", "checkpoint", bytes(w.checkpointed().records))
    save("recording", "file", w.example().file())
    odd = w.Recording()
    odd.process("/bin/\x1b[2J", "h\u202eost\n", "9" * 30, b"\xff\xfe", "%s%n")
    frame = odd.python("f\x9b31m\r", "/proc/kmsg", 2**31 - 1)
    odd.alloc(odd.site(odd.stack(frame), "api\0"), 2**60 - 1, 2**64 - 1)
    save("recording", "odd_names", bytes(odd.records))
    save("exports", "example", bytes(w.example().records))
    save("exports", "checkpoint", bytes(w.checkpointed().records))
    save("exports", "odd_names", bytes(odd.records))


def report():
    site = {"id": 0, "title": "step", "layer": "driver", "space": "device", "device": 0, "family": "plain",
            "api": "cuMemAlloc", "frames": [{"kind": "python", "function": "A.step", "file": "/src/a.py", "line": 3},
                                            {"kind": "native", "function": "_ZN1a1bEv", "module": "/lib/a.so.1",
                                             "offset": 4660, "inlined": True}],
            "allocs": 3, "frees": 1, "allocated_bytes": 300, "live_bytes": 200, "live_blocks": 2,
            "bytes_at_peak": 200, "blocks_at_peak": 2, "suppressed": False}
    space = {"space": "device", "device": 0, "live_bytes": 200, "live_blocks": 2, "peak_bytes": 300, "allocs": 3,
             "frees": 1, "allocated_bytes": 300}
    whole = {"schema": "gpumemtrace.report/1", "process": {"exe": "/bin/train", "end": "exited", "complete": True,
                                                           "duration_ns": 9}, "spaces": [space], "sites": [site],
             "leaks": {"sites": [0]}, "growth_lines": [{"site": 0, "bytes_per_second": 1.5}],
             "ooms": [{"verdict": "full"}]}
    text = json.dumps(whole).encode()
    whole["sites"][0]["live_bytes"] = 2**63 - 1
    whole["process"]["end"] = "killed"
    save("saved_report", "one", text)
    save("saved_report", "two", text + b"\0" + json.dumps(whole).encode())
    save("saved_report", "nested", b"[" * 3000)


def others():
    save("suppressions", "some", b"# mine\nleak:a*b$\nleak:^libx  # reason\nleak:*a*a*a*b\nnoleak\n\0"
                                 b"aXb\nlibxyz\naaaaaaaaaaaaaa")
    save("settings", "usual", b"run.%p.%h.%r.%e\x0064M\x0032\0text,json\0mixed\0/tmp/s\x003\0token")
    save("settings", "odd", b"%%%p%\x0018446744073709551616T\x00-1\0,\0\0relative\x0099999999999\0" + b"t" * 50)
    for kind, table in enumerate([bytes([6, 1, 44, 5, 255, 0, 45, 127, 0, 73, 11, 1]),
                                  bytes([6, 0, 44, 1, 254, 5, 46, 0, 10, 128, 16, 1, 0, 127, 4, 73]),
                                  bytes([0xD0, 0, 0, 0xEB, 0x7F, 3, 0xF5, 0x41, 2, 1, 1, 0xFF])]):
        save("python_lines", f"layout{kind}", bytes([kind]) + struct.pack("<ii", 1, 8) + table)


def call_frames():
    """The segment that a small program's tables would be in."""
    cie = struct.pack("<IIB", 0, 0, 1)[4:] + b"zR\0" + bytes([1, 0x78, 16, 1, 0x1B, 12, 7, 8, 0x90, 1, 0, 0])
    cie = struct.pack("<I", len(cie)) + cie
    code = bytes([0x41, 0x0E, 16, 0x86, 2, 0x43, 0x0D, 6, 0x0A, 0x42, 0x0C, 7, 8, 0x0B, 0])
    header_bytes = 20
    fde_at = header_bytes + len(cie)
    function = 4000  # of the header
    fde = struct.pack("<IiIB", fde_at + 4 - header_bytes, function - (fde_at + 8), 400, 0) + code
    fde = struct.pack("<I", len(fde)) + fde
    header = struct.pack("<BBBBiIii", 1, 0x1B, 3, 0x3B, header_bytes - 4, 1, function, fde_at)
    save("call_frames", "ordinary", struct.pack("<HH", 0, function + 10) + header + cie + fde)


def elf():
    """A file with one function in its symbol table and a build-id."""
    names = b"\0_ZN1a1bEv\0.text\0"
    note = struct.pack("<III", 4, 4, 3) + b"GNU\0" + b"\1\2\3\4"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 1, 5000)
    parts, at = [], 64
    for data in (names, note, symbols):
        parts.append((at, data))
        at += len(data)
    (names_at, _), (note_at, _), (symbols_at, _) = parts
    sections = [bytes(64), struct.pack("<IIQQQQIIQQ", 11, 1, 6, 0, 64, 0, 0, 0, 1, 0),
                struct.pack("<IIQQQQIIQQ", 11, 2, 0, 0, symbols_at, len(symbols), 3, 1, 8, 24),
                struct.pack("<IIQQQQIIQQ", 11, 3, 0, 0, names_at, len(names), 0, 0, 1, 0),
                struct.pack("<IIQQQQIIQQ", 11, 7, 2, 0, note_at, len(note), 0, 0, 4, 0)]
    header = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, at, 0, 64, 56, 0, 64, 5, 3)
    save("elf_symbols", "one_function", header + b"".join(data for _, data in parts) + b"".join(sections))


PROGRAM = """static inline int twice(int x) { return x + x; }
namespace a {
struct box { int kept; int grow(int by); };
__attribute__((noinline)) int box::grow(int by)
{
    kept = twice(kept) + by;
    return kept;
}
}
extern "C" void _start()
{
    a::box one = {2};
    one.grow(3);
    __asm__ volatile("hlt");
}
"""


def debug_info():
    """A program of two functions and an inlined call with debug information in three versions, for x86-64."""
    for version in (2, 4, 5):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a.cc").write_text(PROGRAM)
            subprocess.run(["g++", "-Os", f"-gdwarf-{version}", "-gno-record-gcc-switches", f"-ffile-prefix-map={folder}=/src",
                            "-fno-asynchronous-unwind-tables", "-fno-exceptions", "-nostdlib", "-static", "-Wl,--build-id=none",
                            "-Wl,-z,norelro", "-Wl,-z,noseparate-code", "-Wl,-N", "-w", "-o", "a", "a.cc"], cwd=folder, check=True,
                           stderr=subprocess.DEVNULL)
            subprocess.run(["objcopy", "-R", ".comment", "a"], cwd=folder, check=True)
            save("debug_info", f"dwarf{version}", (pathlib.Path(folder) / "a").read_bytes())


for make in (recordings, report, others, call_frames, elf, debug_info):
    make()
