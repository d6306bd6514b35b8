"""`gpumemtrace report`: what the library writes at exit, and names, files and lines from debug information besides."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest
from conftest import CC, SANITIZE, SIMGPU

CPP = r"""
#include <cstddef>
#include <cstdio>
#include <cstdlib>
extern "C" int cuInit(unsigned);
extern "C" int cuDevicePrimaryCtxRetain(void **, int);
extern "C" int cuCtxSetCurrent(void *);
extern "C" int cuMemAlloc_v2(unsigned long long *, size_t);

namespace model {

template <typename T> struct Buffer {
    unsigned long long address = 0;
    __attribute__((always_inline)) void grow(size_t count)
    {
        if (cuMemAlloc_v2(&address, count * sizeof(T)) != 0) // grow
            abort();
    }
};

struct Layer {
    Buffer<float> weights;
    __attribute__((noinline)) void load(size_t count)
    {
        weights.grow(count); // load
        asm volatile("" ::: "memory");
    }
};

} // namespace model

__attribute__((noinline)) static void hidden(model::Layer &layer, size_t count)
{
    layer.load(count); // hidden
    asm volatile("" ::: "memory");
}

int main()
{
    void *context;
    model::Layer layer;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 1;
    hidden(layer, 1000); // main
    puts("worked");
    fflush(stdout);
    if (getenv("WAIT"))
        getchar();
    return 0;
}
"""

LINE = {mark: number for number, line in enumerate(CPP.splitlines(), 1)
        for mark in re.findall(r"// (grow|load|hidden|main)$", line)}


@pytest.fixture
def program(gmt, compiled):
    """program(*flags): the C++ program above, in a folder of this test."""
    def build(*flags, compiler=None):
        source = gmt.folder / "layers.cc"
        source.write_text(CPP)
        made = compiled(source, *flags, SIMGPU / "libcuda.so.1", compiler=compiler)
        return shutil.copy2(made, gmt.folder / "layers")
    return build


def places(report):
    """(function, file, line) of the program's own frames, innermost first."""
    (site,) = report["sites"]
    return [(frame["function"], frame["file"] and frame["file"].rsplit("/", 1)[-1], frame["line"])
            for frame in site["frames"] if frame["module"] and frame["module"].endswith("/layers")]


WHOLE = [("model::Buffer<float>::grow(unsigned long)", "layers.cc", LINE["grow"]),
         ("model::Layer::load(unsigned long)", "layers.cc", LINE["load"]),
         ("hidden(model::Layer&, unsigned long)", "layers.cc", LINE["hidden"]),
         ("main", "layers.cc", LINE["main"])]


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("flags", [["-O2"], ["-O2", "-gdwarf-4"], ["-O1", "-gdwarf-5", "-gz"], ["-O2", "-gsplit-dwarf"]],
                         ids=" ".join)
def test_functions_files_lines_and_inlined_calls(gmt, program, compiler, flags):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not here")
    if SANITIZE and compiler != (os.environ.get("CXX") or "g++"):
        pytest.skip("the other compiler's sanitizer")
    done = gmt.run(program(*flags, compiler=compiler))
    assert places(gmt.rendered(done.recording))[:4] == WHOLE
    text = gmt.tool("report", done.recording).stdout
    assert f"layers.cc:{LINE['grow']} in model::Buffer<float>::grow" in text


def test_report_at_exit_has_readable_functions_too(gmt, program):
    done = gmt.run(program())
    names = [place[0] for place in places(done.report)]
    assert names[:3] == ["model::Layer::load(unsigned long)", "hidden(model::Layer&, unsigned long)", "main"]


@pytest.mark.skipif(not shutil.which("objcopy"), reason="objcopy is not here")
def test_separate_debug_file(gmt, program):
    path = program()
    subprocess.run(["objcopy", "--only-keep-debug", path, f"{path}.debug"], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={path}.debug", path], check=True)
    done = gmt.run(path)
    assert places(gmt.rendered(done.recording))[:4] == WHOLE
    os.unlink(f"{path}.debug")
    report = gmt.rendered(done.recording)
    assert {place[1:] for place in places(report)} == {(None, None)}


def test_program_that_changed_since_is_noticed_and_not_misread(gmt, program):
    done = gmt.run(program("-Wl,--build-id"))
    path = program("-Wl,--build-id", "-O0")
    report = gmt.rendered(done.recording)
    assert set(places(report)) == {(None, None, None)}
    assert report["notes"] == [f"{path} has changed since the recording: its functions are shown as offsets."]
    assert f"{path} has changed" in gmt.tool("report", done.recording).stdout
    os.unlink(path)
    assert gmt.rendered(done.recording)["notes"] == [f"{path} cannot be opened: its functions are shown as offsets."]


def test_program_without_build_id_is_known_by_size_and_time(gmt, program):
    path = program("-Wl,--build-id=none")
    done = gmt.run(path)
    assert places(gmt.rendered(done.recording))[:4] == WHOLE
    os.utime(path, (1, 1))
    assert set(places(gmt.rendered(done.recording))) == {(None, None, None)}


def without_names(report):
    """What must be equal however frames are named."""
    report = json.loads(json.dumps(report))
    for site in report["sites"]:
        site["frames"] = [(frame["module"], frame["offset"], frame["kind"]) for frame in site["frames"]
                          if not frame.get("inlined")]
        site["title"] = None
    for oom in report["ooms"]:
        oom["frames"] = None
    return report


def test_recording_renders_to_what_was_written_at_exit(gmt, program):
    done = gmt.run(program())
    assert without_names(gmt.rendered(done.recording)) == without_names(done.report)
    script = """
        import cuda
        cuda.init()
        kept = [cuda.allocate(size << 10) for size in range(1, 50)]
        for block in kept[::2]:
            cuda.release(block)
        """
    done = gmt.python(script)
    assert without_names(gmt.rendered(done.recording)) == without_names(done.report)


def test_run_leaves_the_reports_of_a_program_that_ended_by_itself(gmt, program):
    """The library's own have no file for native frames; those that the tool renders do."""
    gmt.tool("run", "-o", gmt.folder / "own", "--", program())
    report = json.loads((gmt.folder / "own.json").read_text())
    assert {place[1:] for place in places(report)} == {(None, None)}


def test_output_goes_where_asked(gmt, program):
    recording = gmt.run(program()).recording
    text, file = gmt.tool("report", recording).stdout, gmt.folder / "out"
    assert gmt.tool("report", "-o", file, recording).stdout == ""
    assert file.read_text() == text
    assert gmt.tool("report", "--output=-", recording).stdout == text
    assert gmt.tool("report", "--json", "--text", recording).stdout == text
    done = gmt.tool("report", "-o", gmt.folder / "no" / "folder", recording, status=2)
    assert done.stderr == f"gpumemtrace: {gmt.folder}/no/folder: No such file or directory\n"


def test_process_that_still_runs_can_be_reported(gmt, program):
    folder = gmt.new_folder()
    process = subprocess.Popen([program()], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env=gmt.environment(folder / "gmt.%p", WAIT=1, GPUMEMTRACE_QUIET=1))
    try:
        assert process.stdout.readline() == b"worked\n"
        (recording,) = folder.glob("*.gmt")
        report = gmt.rendered(recording)
        assert report["process"]["end"] == "running" and report["leaks"]["live_bytes"] == 4000
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
    assert gmt.rendered(recording)["process"]["end"] == "killed"


def test_damaged_recordings_never_crash(gmt, program):
    """Bytes changed, cut and doubled at random: a report, or one line that says what is wrong."""
    good = bytearray(gmt.run(program()).recording.read_bytes())
    committed = int.from_bytes(good[16:24], "little")
    choose = random.Random(5)
    path, refused = gmt.folder / "damaged.gmt", 0
    for round_number in range(60 if not SANITIZE else 15):
        damaged = bytearray(good)
        for _ in range(choose.randint(1, 8)):
            damaged[choose.randrange(8, committed)] = choose.randrange(256)
        if round_number % 5 == 0:
            del damaged[choose.randrange(len(damaged)):]
        path.write_bytes(damaged)
        done = gmt.tool("report", "--json", path, status=None, timeout=60)
        assert done.returncode in (0, 2)
        if done.returncode == 2:
            assert re.fullmatch(r"gpumemtrace: [^\n]+\n", done.stderr)
            refused += 1
        else:
            json.loads(done.stdout)
    assert refused > 0


@pytest.mark.skipif(bool(SANITIZE), reason="measures time")
def test_ten_thousand_sites_take_seconds(gmt, compiled):
    """10,000 functions that allocate, each a site of its own with a line of its own."""
    count = 10000
    source = gmt.folder / "many.c"
    lines = ["int cuInit(unsigned);", "int cuDevicePrimaryCtxRetain(void **, int);", "int cuCtxSetCurrent(void *);",
             "int cuMemAlloc_v2(unsigned long long *, unsigned long);", "static unsigned long long kept;"]
    first = len(lines) + 1
    lines += [f"int f{i}(void) {{ return cuMemAlloc_v2(&kept, 512); }}" for i in range(count)]
    lines += ["static int (*const all[])(void) = {", *[f"f{i}," for i in range(count)], "};",
              "int main(void) {", "    void *context;", "    int sum = cuInit(0);",
              "    sum += cuDevicePrimaryCtxRetain(&context, 0) + cuCtxSetCurrent(context);",
              f"    for (int i = 0; i < {count}; i++)", "        sum += all[i]();", "    return sum;", "}"]
    source.write_text("\n".join(lines))
    program = compiled(source, "-O0", SIMGPU / "libcuda.so.1", compiler=CC)
    started = time.monotonic()
    recording = gmt.run(program).recording
    recorded = time.monotonic()
    report = gmt.rendered(recording)
    took = time.monotonic() - recorded
    print(f"{count} sites: run with its reports {recorded - started:.2f} s, rendered in {took:.2f} s")
    assert len(report["sites"]) == count
    for number, site in enumerate(sorted(report["sites"], key=lambda site: site["id"])):
        frame = next(frame for frame in site["frames"] if frame["file"] and frame["file"].endswith("/many.c"))
        assert (frame["function"], frame["line"]) == (f"f{number}", first + number)
    assert took < 10
    started = time.monotonic()
    assert f"at the same {count} places" in gmt.tool("diff", recording, recording).stdout
    print(f"compared in {time.monotonic() - started:.2f} s")
    assert time.monotonic() - started < 15
