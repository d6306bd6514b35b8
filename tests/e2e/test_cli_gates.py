"""`gpumemtrace diff --fail-on`: exit status 1 and one line that says why when a run is over what it may be."""
import json
import xml.etree.ElementTree

import pytest
from test_cli_diff import LOAD, MIB, STEP, python, report, site

GIB = 1 << 30


class Gate:
    def __init__(self, gmt):
        self.gmt = gmt

    def write(self, name, content):
        path = self.gmt.folder / name
        path.write_text(json.dumps(content))
        return path

    def run(self, conditions, before, after, *options, status=None):
        befores = before if isinstance(before, list) else [before]
        paths = [self.write(f"before{number}.json", one) for number, one in enumerate(befores)]
        paths.append(self.write("after.json", after))
        given = [word for condition in conditions for word in ("--fail-on", condition)]
        return self.gmt.tool("diff", *options, *given, *paths, status=status)

    def fails(self, condition, before, after):
        done = self.run([condition], before, after)
        assert done.returncode in (0, 1), done.stderr
        assert bool(done.stderr) == (done.returncode == 1)
        if done.returncode:
            assert done.stderr.startswith(f"gpumemtrace: {condition} failed: ") and done.stderr.count("\n") == 1
        return done.returncode == 1


@pytest.fixture
def gate(gmt):
    return Gate(gmt)


def run_of(step, load=MIB, growth=0, **more):
    whole = report(site(STEP, step, peak=step, **more), site(LOAD, load, peak=load))
    if growth:
        whole["growth"] = [{"site": 0, "bytes_per_second": growth}]
    return whole


@pytest.mark.parametrize("condition, before, after, fails", [
    ("peak>+5%", 100, 104, False),
    ("peak>+5%", 100, 120, True),
    ("peak>+5%", 100, 50, False),
    ("peak>+20%", 100, 120, False),
    ("peak>+20.5%", 100, 120, False),
    ("peak>+10M", 100, 110, False),
    ("peak>+10M", 100, 111, True),
    ("peak>+0", 100, 100, False),
    ("peak>+0", 100, 101, True),
    ("peak>111M", 500, 110, False),
    ("peak>111M", 5, 111, True),
    ("peak>0.1G", 5, 101, False),
    ("peak>9e30", 5, 101, False),
    ("peak>+9e30", 5, 101, False),
    ("peak>+9e30%", 5, 101, False),
    ("peak>0.1G", 5, 102, True),
    ("peak>104857600", 5, 99, False),
    ("peak>104857599", 5, 99, True),
    ("peak>1MiB", 5, 99, True),
    ("device:peak>+10M", 100, 111, True),
    ("device:0:peak>+10M", 100, 111, True),
    ("device:1:peak>+10M", 100, 111, False),
    ("pinned:peak>+10M", 100, 111, False),
    ("leak>0", 100, 100, True),
    ("leak>+0", 100, 100, False),
    ("leak>+9M", 100, 110, True),
    ("site:train.py:peak>+64M", 100, 164, False),
    ("site:train.py:peak>+64M", 100, 165, True),
    ("site:train.py:10:peak>+64M", 100, 165, True),
    ("site:tr*.py*step:peak>+64M", 100, 165, True),
    ("site:tr*.py*stop:peak>+64M", 100, 165, False),
    ("site:data.py:peak>+64M", 100, 165, False),
    ("site:train.py:leak>+64M", 100, 165, True),
])
def test_conditions_are_decided_by_arithmetic(gate, condition, before, after, fails):
    """One site has `before` and then `after` MiB at the peak and at the end; another has 1 MiB in both."""
    assert gate.fails(condition, run_of(before * MIB), run_of(after * MIB)) is fails


def test_each_device_is_judged_by_itself(gate):
    before = report(site(STEP, 100, peak=100), site(LOAD, 900, peak=900, device=1))
    after = report(site(STEP, 150, peak=150), site(LOAD, 850, peak=850, device=1))
    done = gate.run(["peak>+5%"], before, after, status=1)
    assert "device 0: 100 B → 150 B (+50.0%)" in done.stderr
    assert not gate.fails("device:1:peak>+5%", before, after)


def test_the_line_names_the_place_that_rose_most(gate):
    done = gate.run(["peak>+5%"], run_of(100 * MIB), run_of(120 * MIB), status=1)
    assert done.stderr == ("gpumemtrace: peak>+5% failed: device 0: 101.0 MiB → 121.0 MiB (+19.8%); "
                           "most at /home/a/train.py:10 in Trainer.step: +20.0 MiB\n")


def test_several_failures_are_one_line(gate):
    done = gate.run(["peak>+5%", "leak>0", "growth>0"], run_of(100 * MIB), run_of(120 * MIB), status=1)
    assert done.stderr.count("\n") == 1
    assert "peak>+5% failed: " in done.stderr and "; leak>0 failed: " in done.stderr
    assert "growth" not in done.stderr and "good:   growth>0" in done.stdout


def test_growth_is_told_in_bytes_per_second_so_runs_may_differ_in_length(gate):
    before, after = run_of(MIB, growth=1000.4), run_of(50 * MIB, growth=1000.2)
    assert gate.fails("growth>0", before, after)
    assert not gate.fails("growth>+10%", before, after)
    assert gate.fails("growth>+10%", run_of(MIB), after)
    assert not gate.fails("growth>1K", before, after)


def test_runs_of_different_length_are_pointed_out(gate):
    before, after = run_of(MIB), run_of(2 * MIB)
    before["process"]["duration_ns"], after["process"]["duration_ns"] = 10 * 10**9, 20 * 10**9
    assert "note: the runs took 10.0 s and 20.0 s: if that is more work, --length=TIMES" in gate.run([], before, after).stdout
    after["process"]["duration_ns"] = 11 * 10**9
    assert "the runs took" not in gate.run([], before, after).stdout


def test_a_sum_of_places_does_not_wrap(gate):
    """2^63-1, 2^63-1 and 2 bytes: 2^64 in all."""
    kept = report(*[site([python(name)], size, title=name) for name, size in (("a", 2**63 - 1), ("b", 2**63 - 1), ("c", 2))])
    for space in kept["spaces"]:
        space.update(live_bytes=0, allocated_bytes=0)
    assert gate.fails("leak>0", kept, kept)
    assert not gate.fails("leak>+0", kept, kept)
    assert gate.fails("leak>+0", report(), kept)


@pytest.mark.parametrize("condition, driver, framework, fails", [
    ("leak>0", 0, 5, True), ("leak>0", 5, 0, True), ("leak>0", 0, 0, False), ("leak>4", 4, 4, False), ("leak>4", 3, 5, True)])
def test_a_site_is_judged_by_the_worse_of_its_layers_and_not_their_sum(gate, condition, driver, framework, fails):
    kept = report(site(STEP, driver), site(STEP, framework, layer="framework", api="torch"))
    kept["leaks"]["sites"] = [number for number, bytes in enumerate((driver, framework)) if bytes]
    assert gate.fails("site:train.py:" + condition, kept, kept) is fails


def test_suppressed_memory_is_no_leak(gate):
    before = report(site(STEP, MIB, suppressed=True))
    assert not gate.fails("leak>0", before, before)


def test_what_is_new_is_more_than_any_percentage_of_nothing(gate):
    assert gate.fails("peak>+500%", report(), run_of(MIB))


@pytest.mark.parametrize("after, fails", [(104, False), (108, False), (109, True), (90, False)])
def test_the_spread_of_several_runs_before_is_tolerated(gate, after, fails):
    """100 and 104 before: 104, and their spread of 4 beyond it."""
    befores = [run_of(100 * MIB), run_of(104 * MIB)]
    assert gate.fails("site:train.py:peak>+0", befores, run_of(after * MIB)) is fails


@pytest.mark.parametrize("lengths, condition, words", [
    ((40, 80, 80), "leak>+0", None), ((40, 80, 80), "leak>+5M", "without 1 run before of another length"),
    ((40, 160, 80), "leak>+19M", None), ((40, 160, 80), "leak>+20M", "their spread is not tolerated"),
    ((40, 40, 80), "leak>+0", "the runs before spread over 60.0 MiB"), ((40, 160, 80), "growth>+0", "0 B/s")])
def test_what_runs_before_differ_in_by_their_length_is_not_tolerated(gate, lengths, condition, words):
    """40 and 100 MiB before, 105 MiB of the one that is as long or 120 MiB after."""
    *befores, after = [run_of(size * MIB, load=0) for size in (40, 100, 120 if lengths[1] == 160 else 105)]
    for whole, steps in zip((*befores, after), lengths):
        whole["counters"] = {"steps": steps}
    done = gate.run([condition], befores, after, status=0 if words else 1)
    assert not words or words in done.stdout


def test_what_several_runs_before_spread_over_is_no_change(gate):
    befores = [run_of(size * MIB) for size in (100, 104, 102)]
    result = json.loads(gate.run([], befores, run_of(107 * MIB), "--json", status=0).stdout)
    assert result["same"] is True and len(result["baselines"]) == 3
    result = json.loads(gate.run([], befores, run_of(109 * MIB), "--json", status=0).stdout)
    (row,) = [row for row in result["sites"] if row["change"] != "none"]
    assert (row["before"]["peak_bytes"], row["after"]["peak_bytes"]) == (102 * MIB, 109 * MIB)


def test_baselines_may_be_given_by_option(gate):
    before, after = gate.write("b.json", run_of(MIB)), gate.write("a.json", run_of(2 * MIB))
    assert gate.gmt.tool("diff", "--baseline", before, "--baseline", before, after).returncode == 0
    gate.gmt.tool("diff", "--baseline", before, "--fail-on=peak>+0", after, status=1)


def test_several_conditions_may_follow_one_option(gate):
    before, after = gate.write("b.json", run_of(MIB)), gate.write("a.json", run_of(2 * MIB))
    done = gate.gmt.tool("diff", "--fail-on", "peak>+5%", "leak>+1K", "site:train.py:peak>+1G", before, after, status=1)
    assert "peak>+5% failed" in done.stderr and "leak>+1K failed" in done.stderr
    assert "good:   site:train.py:peak>+1G" in done.stdout


def test_a_file_named_like_a_condition_is_a_file(gate):
    path = gate.write("leak>0", run_of(MIB))
    done = gate.gmt.tool("diff", "--fail-on", "peak>+5%", "leak>0", gate.write("a.json", run_of(MIB)),
                         cwd=path.parent)
    assert "leak>0 → " in done.stdout


@pytest.mark.parametrize("condition", ["", "peak", "peak>", "peak>x", "peak>-1", "peak>5%", "peak>+5%x", "top>5", "peak<5",
                                       "site:x>4", "nowhere:peak>4", "device:x:peak>4", "device::peak>4", "peak>inf",
                                       "peak>nan", "peak>+", "peak>1Q", "peak>1e999", ":peak>0", "site::peak>0"])
def test_what_is_no_condition_is_refused_with_the_form(gate, condition):
    done = gate.run([condition], run_of(1), run_of(1))
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"'{condition}'" in done.stderr and "diff --help" in done.stderr


def test_no_change_passes_every_relative_condition(gate):
    whole = run_of(100 * MIB, growth=10)
    conditions = ["peak>+0", "leak>+0", "growth>+0", "site:train.py:peak>+0%", "device:peak>+0"]
    done = gate.run(conditions, whole, whole, status=0)
    assert done.stdout.count("good: ") == 5


EVIL = [python("f|`x`\x1b[2J@everyone </td><script>", "/a/[b](http://c)_d_*e*.py")]


def test_markdown_for_a_pull_request(gate):
    done = gate.run(["peak>+5%"], run_of(100 * MIB), run_of(120 * MIB), "--markdown", status=1)
    assert done.stdout.startswith("### GPU memory: 1 of 1 conditions failed\n\n- ❌ `peak>+5%` ")
    assert "| device 0: peak | 101.0 MiB | 121.0 MiB | +20.0 MiB (+19.8%) |\n" in done.stdout
    assert "| `/home/a/train.py:10 in Trainer.step` | 100.0 MiB → 120.0 MiB | " in done.stdout
    assert "data.py" not in done.stdout
    assert gate.run([], run_of(1), run_of(1), "--markdown").stdout.startswith("### GPU memory: no change\n")


def test_markdown_shows_names_as_they_are(gate):
    done = gate.run([], report(), report(site(EVIL, MIB, title="f|`x`\x1b[2J@all </td><script>")), "--markdown")
    (row,) = [line for line in done.stdout.splitlines() if "@all" in line]
    assert row.startswith("| new: `` f\\|`x`\\x1B[2J@all </td><script> `` | ")
    assert row.count("|") - row.count("\\|") == 5


def test_junit_lists_the_conditions(gate, tmp_path):
    path = tmp_path / "gates.xml"
    after = report(site(EVIL, 2 * MIB, peak=2 * MIB, title='<&"\'>\x01\x1b]]>'))
    gate.run(["leak>1M", "leak>8G"], run_of(MIB), after, f"--junit={path}", status=1)
    suite = xml.etree.ElementTree.parse(path).getroot()
    assert (suite.tag, suite.get("tests"), suite.get("failures")) == ("testsuite", "2", "1")
    failed, good = suite.findall("testcase")
    assert (failed.get("name"), good.get("name")) == ("leak>1M", "leak>8G")
    assert failed.find("failure").get("message") == "2.0 MiB; most at <&\"'>\\x01\\x1B]]>: 2.0 MiB"
    assert good.find("failure") is None


def test_junit_without_conditions_is_refused(gate):
    assert "--fail-on" in gate.run([], run_of(1), run_of(1), "--junit=x.xml", status=2).stderr


def test_recordings_are_judged_like_reports(gmt):
    source = """
        import cuda, sys
        cuda.init()
        def keep(size):
            return cuda.allocate(size)
        kept = [keep(1 << 20) for _ in range(int(sys.argv[1]))]
        """
    before, after = gmt.python(source, 10), gmt.python("\n" * 200 + source, 11)
    (saved,) = after.folder.glob("*.json")
    for last in (after.recording, saved):
        gmt.tool("diff", "--fail-on", "peak>+11%", before.recording, last)
        done = gmt.tool("diff", "--fail-on", "peak>+9%", before.recording, last, status=1)
        assert "10.0 MiB → 11.0 MiB (+10.0%); most at program.py:205 in keep: +1.0 MiB" in done.stderr


@pytest.mark.parametrize("gates, status", [(["peak>+5%"], 1), (["peak>+50%"], 0)])
def test_the_other_outputs_have_the_same_status(gate, gates, status):
    for option in ("--json", "--markdown"):
        done = gate.run(gates, run_of(100 * MIB), run_of(120 * MIB), option, status=status)
        if option == "--json":
            (row,) = json.loads(done.stdout)["gates"]
            assert row["failed"] == bool(status) and row["condition"] == gates[0]
