"""`gpumemtrace diff`: places are matched by what people call them, and what changed is said, the biggest first."""
import copy
import itertools
import json
import shutil

import pytest
from conftest import PROGRAMS, interpreters

MIB = 1 << 20


def native(function, module="/usr/lib/libwork.so.1", offset=0x1000, file=None, line=None, **more):
    return {"kind": "native", "function": function, "file": file, "line": line, "module": module, "offset": offset,
            **more}


def python(function, file="/home/a/train.py", line=10):
    return {"kind": "python", "function": function, "file": file, "line": line, "module": None, "offset": None}


def site(frames, live=0, blocks=None, peak=0, allocs=1, title=None, **more):
    blocks = (1 if live else 0) if blocks is None else blocks
    last = frames[-1] if frames else {"file": None, "line": None, "function": None}
    return {"layer": "driver", "space": "device", "device": 0, "family": "plain", "api": "cuMemAlloc",
            "title": title or f"{last['file']}:{last['line']} in {last['function']}",
            "allocs": allocs, "frees": allocs - blocks, "allocated_bytes": max(live, peak), "live_bytes": live,
            "live_blocks": blocks, "bytes_at_peak": peak, "blocks_at_peak": 1 if peak else 0, "suppressed": False,
            "frames": frames, **more}


def report(*sites, end="exited", exe="/usr/bin/python3"):
    spaces = {}
    for one in sites:
        key = (one["space"], one["device"])
        space = spaces.setdefault(key, {"space": key[0], "device": key[1], "live_bytes": 0, "live_blocks": 0,
                                        "peak_bytes": 0, "allocs": 0, "frees": 0, "allocated_bytes": 0})
        for name in ("live_bytes", "live_blocks", "allocs", "frees", "allocated_bytes"):
            space[name] += one[name]
        space["peak_bytes"] += one["bytes_at_peak"]
    return {"schema": "gpumemtrace.report/1", "version": "0", "spaces": list(spaces.values()),
            "process": {"exe": exe, "end": end, "complete": True, "duration_ns": 10},
            "sites": [{"id": number, **one} for number, one in enumerate(sites)],
            "leaks": {"sites": [number for number, one in enumerate(sites)
                                if one["live_bytes"] and one["layer"] == "driver" and not one["suppressed"]]},
            "growth": [], "ooms": []}


class Diff:
    def __init__(self, gmt):
        self.gmt = gmt

    def run(self, before, after, *options):
        paths = []
        for name, content in (("before.json", before), ("after.json", after)):
            paths.append(self.gmt.folder / name)
            paths[-1].write_text(json.dumps(content))
        return self.gmt.tool("diff", *options, *paths).stdout

    def json(self, before, after):
        return json.loads(self.run(before, after, "--json"))

    def changes(self, before, after):
        return [(row["change"], row["title"]) for row in self.json(before, after)["sites"] if row["change"] != "none"]


@pytest.fixture
def diff(gmt):
    return Diff(gmt)


STEP = [native("cuMemAlloc_v2", "/usr/lib/libcuda.so.1"), native("grow(int)"), python("Trainer.step")]
LOAD = [native("read", offset=0x2000), python("load", "/home/a/data.py", 3)]


def test_a_run_and_itself_have_no_change(diff):
    whole = report(site(STEP, 10 * MIB, peak=12 * MIB), site(LOAD, 1 * MIB))
    assert diff.json(whole, whole)["same"] is True
    assert "no change" in diff.run(whole, whole)


def test_one_site_that_grew_by_a_tenth_and_nothing_else(diff):
    before = report(site(STEP, 10 * MIB, peak=10 * MIB), site(LOAD, 1 * MIB))
    after = report(site(STEP, 11 * MIB, peak=11 * MIB), site(LOAD, 1 * MIB))
    (row,) = [row for row in diff.json(before, after)["sites"] if row["change"] != "none"]
    assert row["change"] == "changed" and row["title"] == "/home/a/train.py:10 in Trainer.step"
    assert (row["before"]["live_bytes"], row["after"]["live_bytes"]) == (10 * MIB, 11 * MIB)
    text = diff.run(before, after)
    assert "10.0 MiB → 11.0 MiB, +1.0 MiB (+10.0%)" in text
    assert "still allocated 10.0 MiB → 11.0 MiB (+10.0%) in 1 block" in text
    assert "data.py" not in text


def moved(frames):
    """As after an edit above, another build, and another checkout."""
    frames = copy.deepcopy(frames)
    for frame in frames:
        if frame["line"]:
            frame["line"] += 200
        if frame["offset"]:
            frame["offset"] += 0x5a0
        if frame["file"]:
            frame["file"] = frame["file"].replace("/home/a", "/builds/7/src")
        if frame["module"]:
            frame["module"] = frame["module"].replace("/usr/lib", "/opt/lib").replace(".so.1", ".so.2.3")
    return frames


def test_moved_lines_rebuilt_modules_and_other_folders_are_no_change(diff):
    before, after = report(site(STEP, MIB), site(LOAD, 5)), report(site(moved(STEP), MIB), site(moved(LOAD), 5))
    assert diff.json(before, after)["same"] is True


def test_another_python_is_no_change(diff):
    """Qualified names from 3.11 on, comprehensions without a frame from 3.12 on, and the interpreter's own frames."""
    old = [native("grow(int)", "/w/grow.cpython-310-x86_64-linux-gnu.so"),
           native("_PyEval_Vector", "/usr/bin/python3.10"), python("<listcomp>"), python("step"),
           python("run", "/usr/lib/python3.10/threading.py", 910)]
    new = [native("grow(int)", "/w/grow.cpython-312-x86_64-linux-gnu.so"),
           native("_PyEval_EvalFrameDefault", "/usr/bin/python3.12"), native("cfunction_call", "/usr/bin/python3.12"),
           python("Trainer.step", line=12), python("Thread.run", "/usr/lib/python3.12/threading.py", 1012)]
    assert diff.json(report(site(old, MIB)), report(site(new, MIB)))["same"] is True


def test_methods_of_one_name_are_told_apart_where_both_runs_can(diff):
    one, two = [python("Actor.step")], [python("Critic.step")]
    assert diff.changes(report(site(one, 1)), report(site(two, 1))) == [
        ("gone", "/home/a/train.py:10 in Actor.step"), ("new", "/home/a/train.py:10 in Critic.step")]


def test_packages_are_told_apart_by_their_folder(diff):
    one, two = [python("f", "/a/one/__init__.py")], [python("f", "/a/two/__init__.py")]
    assert {change for change, _ in diff.changes(report(site(one, 1)), report(site(two, 1)))} == {"new", "gone"}


def test_names_from_debug_information_match_names_from_symbol_tables(diff):
    """The report at exit has no inlined calls and no static functions; the one rendered from the recording has both."""
    at_exit = [native("grow(int)", offset=0x1000), native(None, offset=0x2000), native("main", offset=0x3000)]
    rendered = [native("std::vector::resize()", offset=0x1000, inlined=True, file="/usr/include/vector", line=3),
                native("grow(int)", offset=0x1000, file="grow.cc", line=7),
                native("hidden_helper", offset=0x2000, file="grow.cc", line=20),
                native("main", offset=0x3000, file="grow.cc", line=30)]
    assert diff.json(report(site(at_exit, 1)), report(site(rendered, 1)))["same"] is True
    assert diff.json(report(site(rendered, 1)), report(site(at_exit, 1)))["same"] is True


def test_equal_addresses_of_other_builds_are_not_taken_for_equal_functions(diff):
    before = report(site([native("a", offset=1), native("b", offset=2), native("c", offset=3)], 1))
    after = report(site([native("c", offset=1), native("a", offset=2), native("d", offset=3)], 1))
    assert {change for change, _ in diff.changes(before, after)} == {"new", "gone"}


@pytest.mark.parametrize("before, after", [("f", "f.cold"), ("f", "f.constprop.0"), ("f(int)", "f(int) [clone .part.0]"),
                                           ("ns::f()", "_ZN2ns1fEv")])
def test_copies_that_compilers_make_are_the_function(diff, before, after):
    assert diff.json(report(site([native(before)], 1)), report(site([native(after, offset=5)], 1)))["same"] is True


def test_new_and_gone_places_are_said_with_their_figures(diff):
    before = report(site(STEP, 2 * MIB, blocks=4, allocs=6))
    after = report(site(LOAD, 64 * MIB, blocks=1, peak=64 * MIB))
    text = diff.run(before, after)
    assert "2 places changed, 1 of them new and 1 gone; 0 as before" in text
    assert "+64.0 MiB" in text and "new: /home/a/data.py:3 in load" in text
    assert "gone: /home/a/train.py:10 in Trainer.step" in text
    assert "2.0 MiB still allocated in 4 blocks; 0 B at the peak; 6 allocations" in text


def test_sites_of_one_place_are_added_up(diff):
    line_1, line_2 = [python("f", line=1)], [python("f", line=2)]
    before = report(site(line_1, 3), site(line_2, 4))
    assert diff.json(before, report(site(line_1, 7, blocks=2, allocs=2)))["sites"][0]["before"]["live_bytes"] == 7
    assert diff.json(before, before)["same"] is True


def test_biggest_change_first_and_no_more_than_asked_for(diff):
    frames = [[python(f"f{number}")] for number in range(30)]
    before = report(*[site(stack, 1000) for stack in frames])
    after = report(*[site(stack, 1000 + number * (-1) ** number) for number, stack in enumerate(frames)])
    titles = [title for _, title in diff.changes(before, after)]
    assert titles == [f"/home/a/train.py:10 in f{number}" for number in range(29, 0, -1)]
    text = diff.run(before, after)
    assert "f29" in text and text.count("train.py") == 20 and "… and 9 smaller changes" in text
    assert diff.run(before, after, "--top", "3").count("train.py") == 3
    assert diff.run(before, after, "--top=0").count("train.py") == 29


def test_spaces_and_devices_are_compared_apart(diff):
    host = dict(space="pinned", device=None, family="pinned", api="cuMemHostAlloc")
    before = report(site(STEP, MIB, peak=MIB), site(STEP, 5 * MIB, **host))
    after = report(site(STEP, MIB, peak=MIB, device=1), site(STEP, 5 * MIB, **host))
    spaces = {(row["space"], row["device"]): row["change"] for row in diff.json(before, after)["spaces"]}
    assert spaces == {("device", 0): "gone", ("device", 1): "new", ("pinned", None): "none"}
    text = diff.run(before, after)
    assert "device 1" in text and "pinned host memory" in text


def test_text_of_a_report_cannot_drive_the_terminal(diff):
    evil = [python("f\x1b]0;owned\x07", "/home/a/\x1b[2Jtrain.py")]
    text = diff.run(report(), report(site(evil, MIB, title="\x1b[31mred")))
    assert "\x1b" not in text and "\\x1B[31mred" in text


def test_killed_and_running_processes_are_pointed_out(diff):
    text = diff.run(report(site(STEP, 1), end="killed"), report(site(STEP, 2), end="running"))
    assert "before.json is of a process that was killed" in text and "after.json is of a process that still" in text


def changes_of_runs(gmt, before, after, where=""):
    """What changed between two runs, which must be the same of recordings, of reports and of one and the other: places
    whose titles have `where` in them."""
    found = []
    for pair in itertools.product((before.recording, before.recording.with_suffix(".json")),
                                  (after.recording, after.recording.with_suffix(".json"))):
        result = json.loads(gmt.tool("diff", "--json", *pair).stdout)
        rows = [row for row in result["sites"] if row["change"] != "none"]
        assert result["same"] is (rows == []), pair
        assert all(where in row["title"] for row in rows), [row["title"] for row in rows]
        found.append([(row["change"], row["before"]["live_bytes"], row["after"]["live_bytes"]) for row in rows])
    assert found == found[:1] * 4
    return found[0]


def test_recordings_and_reports_of_one_run_have_no_change(gmt):
    done = gmt.python("""
        import cuda

        class Trainer:
            def step(self, size):
                self.kept = [cuda.allocate(size) for _ in range(3)]

        cuda.init()
        Trainer().step(1 << 20)
        """)
    assert changes_of_runs(gmt, done, done) == []


def test_two_runs_of_a_program_that_was_edited_between(gmt):
    source = """
        import cuda
        cuda.init()
        def keep(size):
            return cuda.allocate(size)
        def step(count):
            return [keep(1 << 20) for _ in range(count)]
        kept = step(10)
        other = keep(4 << 20)
        """
    edited = ("\n" * 200 + source).replace("step(10)", "step(11)")
    before, after = gmt.python(source), gmt.python(edited)
    assert changes_of_runs(gmt, before, gmt.python("\n" * 200 + source)) == []
    assert changes_of_runs(gmt, before, after, "step") == [("changed", 10 << 20, 11 << 20)]


WORK = """
#include <dlfcn.h>
#include <stddef.h>
{before}
static int (*allocate)(unsigned long long *, size_t);
static void *keep(size_t bytes)
{{
    unsigned long long address = 0;
    allocate(&address, bytes);
    return (void *)address;
}}
void *load_weights(size_t bytes)
{{
    void *kept = keep(bytes);
    __asm__("");
    return kept;
}}
void start(void)
{{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
    int (*use)(void *) = (int (*)(void *))dlsym(driver, "cuCtxSetCurrent");
    void *context = NULL;
    allocate = (int (*)(unsigned long long *, size_t))dlsym(driver, "cuMemAlloc_v2");
    init(0);
    retain(&context, 0);
    use(context);
}}
"""
MAIN = """
#include <stddef.h>
#include <stdlib.h>
void start(void);
void *load_weights(size_t bytes);
int main(int argc, char **argv)
{
    start();
    for (int i = 0; argc > 1 && i < atoi(argv[1]); i++)
        load_weights(1 << 20);
    return load_weights(4 << 20) == NULL;
}
"""


def native_program(compiled, folder, before):
    folder.mkdir()
    (folder / "work.c").write_text(WORK.format(before=before))
    (folder / "main.c").write_text(MAIN)
    built = compiled(folder / "work.c", "-shared", "-fPIC", "-ldl")
    library = folder / "libwork.so"
    library.write_bytes(built.read_bytes())
    program = folder / "program"
    shutil.copy(compiled(folder / "main.c", f"-L{folder}", "-lwork", f"-Wl,-rpath,{folder}"), program)
    return program


def test_a_library_that_was_edited_and_built_anew_is_no_change(gmt, compiled, tmp_path):
    """200 lines and a function more before the code that allocates: other lines, other addresses."""
    one = native_program(compiled, tmp_path / "one", "")
    more = "\n" * 200 + "int unused(int x) { volatile int y = x; while (y > 3) y /= 2; return y; }"
    two = native_program(compiled, tmp_path / "two", more)
    before, eleven = gmt.run(one, 10), gmt.run(two, 11)
    assert changes_of_runs(gmt, before, gmt.run(two, 10)) == []
    assert changes_of_runs(gmt, before, eleven, "main") == [("changed", 14 << 20, 15 << 20)]
    gmt.tool("diff", "--fail-on", "peak>+5%", before.recording, eleven.recording, status=1)


def test_another_python_is_no_change_of_a_real_run(gmt):
    found = [path for _, path in interpreters()]
    if len(found) < 2:
        pytest.skip("there is one Python only")
    script = gmt.folder / "train.py"
    script.write_text(f"import sys\nsys.path.insert(0, {str(PROGRAMS)!r})\nimport cuda\ncuda.init()\n"
                      "class Trainer:\n    def step(self, count):\n"
                      "        self.kept = [cuda.allocate(1 << 20) for _ in range(count)]\n"
                      "    def weights(self):\n        self.weight = cuda.allocate(4 << 20)\n"
                      "trainer = Trainer()\ntrainer.step(int(sys.argv[1]))\ntrainer.weights()\n")
    before = gmt.run(found[0], script, 10)
    for path in found[1:]:
        assert changes_of_runs(gmt, before, gmt.run(path, script, 10)) == [], path
    assert changes_of_runs(gmt, before, gmt.run(found[-1], script, 11), "train.py:7 ") == [("changed", 10 << 20, 11 << 20)]
