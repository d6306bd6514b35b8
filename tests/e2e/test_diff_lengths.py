"""`gpumemtrace diff` of runs of different length: what the length alone makes of a figure is no change."""
import json
import re
import resource

import pytest
from conftest import ROOT
from test_cli_diff import MIB, python, report, site

TRAIN = """
    import contextlib, sys
    sys.path.insert(0, {modules!r})
    import cuda, gpumemtrace
    cuda.init()
    def weights():
        return [cuda.allocate(4 << 20) for _ in range(12)]
    def load():
        return cuda.allocate(3 << 20)
    def forward():
        return [cuda.allocate(2 << 20) for _ in range({activations})]
    def log():
        return cuda.allocate({logged})
    def validate():
        cuda.release(cuda.allocate(5 << 20))
    def normalize():
        cuda.release(cuda.allocate(1 << 20))
    def optimizer():
        return cuda.allocate(6 << 20)
    model, logs = weights(), []
    for number in range(int(sys.argv[1])):
        with {around}:
            batch = load()
            activations = forward()
            normalize()
            if number == 0:
                state = optimizer()
            logs.append(log())
            if number % 8 == 7:
                validate()
            for one in [batch] + activations:
                cuda.release(one)
        {after}
    """
MARKS = {
    "steps": dict(around="contextlib.nullcontext()", after="gpumemtrace.step()"),
    "phase": dict(around="gpumemtrace.phase('train | step')", after=""),
    "calls": dict(around="contextlib.nullcontext()", after=""),
}
N = 40


def train(gmt, marks, steps, activations=4, logged=1 << 20):
    return gmt.python(TRAIN.format(modules=str(ROOT / "python"), activations=activations, logged=logged, **MARKS[marks]),
                      steps).recording


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Each kind of program with N, 2 N and 3 N steps, and with twice as many and another change: {(marks, name): run}."""
    from conftest import Gpumemtrace
    made = {}
    for marks in MARKS:
        gmt = Gpumemtrace(tmp_path_factory.mktemp(marks))
        for name, given in {"once": (N,), "twice": (2 * N,), "thrice": (3 * N,), "bigger": (2 * N, 4, 11 << 17),
                            "oftener": (2 * N, 5)}.items():
            made[marks, name] = train(gmt, marks, *given)
    return made


def changed(gmt, *arguments):
    result = json.loads(gmt.tool("diff", "--json", *arguments).stdout)
    return [(row["change"], row["title"].split(" in ")[1].split(".")[0]) for row in result["sites"]
            if row["change"] != "none"], result


@pytest.mark.parametrize("marks", MARKS)
@pytest.mark.parametrize("first, second, ratio", [("once", "twice", 2), ("twice", "once", 0.5), ("once", "thrice", 3)])
def test_a_run_of_another_length_differs_in_its_totals_alone(gmt, runs, marks, first, second, ratio):
    """Each step leaves 1 MiB in its log."""
    before, after = runs[marks, first], runs[marks, second]
    for pair in ([before, after], [before.with_suffix(".json"), after], [before, after.with_suffix(".json")]):
        places, result = changed(gmt, *pair)
        assert places == []
        length = result["before"]["length"]
        assert (length["basis"], length["ratio"]) == (marks, ratio)
        (device,) = result["spaces"]
        assert device["after"]["live_bytes"] - device["before"]["live_bytes"] == (ratio - 1) * \
            (N if first == "once" else 2 * N) * MIB
    text = gmt.tool("diff", before, after).stdout
    assert f"{ratio:.1f} times as long as {before}" in text
    assert "no place changed; 6 as before; 1 that adds up" in text and "by the length of the run alone: still allocated" in text
    assert "still allocated at the end" in text


def test_the_basis_is_said_in_text_and_markdown(gmt, runs):
    for marks, words in {"steps": "(40 → 80 steps)", "phase": "(phase train | step: 40 → 80 times)",
                         "calls": "4 of 4 places allocate so much more often"}.items():
        pair = runs[marks, "once"], runs[marks, "twice"]
        assert words in gmt.tool("diff", *pair).stdout
        markdown = gmt.tool("diff", "--markdown", *pair).stdout
        assert words.replace("|", "\\|") in markdown and "changed</summary>" not in markdown
        assert "differ" not in markdown


@pytest.mark.parametrize("marks", MARKS)
@pytest.mark.parametrize("name, place, before, expected, after", [
    ("bigger", "log", N * MIB, 2 * N * MIB, 2 * N * (11 << 17)), ("oftener", "forward", 0, 0, 0)])
def test_one_place_that_changed_is_told_of_a_run_of_another_length(gmt, runs, marks, name, place, before, expected, after):
    """A tenth and more bytes at one place; five activations for four at another."""
    pair = runs[marks, "once"], runs[marks, name]
    places, result = changed(gmt, *pair)
    assert places == [("changed", place)]
    (row,) = [row for row in result["sites"] if row["change"] != "none"]
    assert [row[run]["live_bytes"] for run in ("before", "expected", "after")] == [before, expected, after]
    markdown = gmt.tool("diff", "--markdown", *pair).stdout
    text = gmt.tool("diff", *pair).stdout
    assert "1 place changed" in text and "1 place changed" in markdown
    if name == "bigger":
        assert "+30.0 MiB" in text and "40.0 MiB → 110.0 MiB, 80.0 MiB expected, in 40 → 80 blocks" in text
    else:
        assert "+2.0 MiB at peak" in text and "160 → 400 allocations, 320 expected" in text


def test_counts_are_compared_as_they_are_on_request(gmt, runs):
    pair = runs["calls", "once"], runs["calls", "twice"]
    assert sorted(place for _, place in changed(gmt, "--length=1", *pair)[0]) == ["forward", "load", "log", "normalize", "validate"]
    assert changed(gmt, "--length", "2", *pair)[0] == []
    assert "load" in dict(map(reversed, changed(gmt, "--length=3", *pair)[0]))


@pytest.mark.parametrize("value", ["0", "-1", "x", "nan", "inf", "", "1e9", "2x"])
def test_a_length_that_is_none_is_refused(gmt, value):
    done = gmt.tool("diff", f"--length={value}", "a.json", "b.json", status=2)
    assert "--length" in done.stderr and done.stderr.count("\n") == 1


def test_runs_before_may_have_other_lengths_each(gmt, runs):
    before = [runs["steps", "once"], runs["steps", "twice"], runs["steps", "once"]]
    places, result = changed(gmt, *before, runs["steps", "thrice"])
    assert places == [] and [run["length"]["ratio"] for run in result["baselines"]] == [3, 1.5, 3]
    assert changed(gmt, *before, runs["steps", "bigger"])[0] == [("changed", "log")]


def test_conditions_are_decided_on_what_a_run_had(gmt, runs):
    pair = runs["steps", "once"], runs["steps", "twice"]
    gmt.tool("diff", "--fail-on", "leak>+0", *pair, status=1)
    gmt.tool("diff", "--fail-on", "leak>+40M", "--", *pair)


def busy(function, allocs, **more):
    """A place that goes on from the first to the last moment of a run."""
    return site([python(function)], allocs=allocs, title=function, first_time_ns=1, last_time_ns=1000, **more)


def test_one_layer_more_is_a_change_and_no_longer_run(gmt):
    """Every place of a network of 13 layers for 12 has a twelfth more of everything."""
    written = []
    for layers in (12, 13):
        whole = report(*[busy(name, 100 * layers, live=0, peak=layers * MIB) for name in ("forward", "norm", "act")],
                       site([python("weights")], layers * MIB, peak=layers * MIB, blocks=layers, allocs=layers,
                            title="weights"))
        written.append(gmt.folder / f"{layers}.json")
        written[-1].write_text(json.dumps(whole))
    result = json.loads(gmt.tool("diff", "--json", *written).stdout)
    assert result["before"]["length"]["ratio"] == 1
    assert {row["title"] for row in result["sites"] if row["change"] == "changed"} == {"forward", "norm", "act", "weights"}


@pytest.mark.parametrize("before, after, same", [(5, 11, True), (5, 9, True), (5, 13, False), (5, 8, False)])
def test_what_happens_every_few_steps_may_happen_once_more_or_less(gmt, before, after, same):
    """Every seventh step of 40 and 80: 5 and 11 times, or 9 where it began later."""
    written = []
    for times in (before, after):
        whole = report(busy("forward", 400 if times == before else 800), busy("validate", times))
        whole["counters"] = {"steps": 40 if times == before else 80}
        written.append(gmt.folder / f"{times}.json")
        written[-1].write_text(json.dumps(whole))
    result = json.loads(gmt.tool("diff", "--json", *written).stdout)
    assert [row["title"] for row in result["sites"] if row["change"] != "none"] == ([] if same else ["validate"])


def test_what_is_set_up_once_does_not_follow_the_length(gmt):
    """Twice the weights in a run of twice the steps."""
    written = []
    for times in (1, 2):
        weights = site([python("weights")], times * MIB, peak=times * MIB, blocks=times, allocs=times, title="weights",
                       first_time_ns=1, last_time_ns=2)
        whole = report(busy("forward", 100 * times), weights)
        whole["counters"] = {"steps": 100 * times}
        written.append(gmt.folder / f"{times}.json")
        written[-1].write_text(json.dumps(whole))
    result = json.loads(gmt.tool("diff", "--json", *written).stdout)
    assert [row["title"] for row in result["sites"] if row["change"] != "none"] == ["weights"]


@pytest.mark.parametrize("kept, same", [(100, False), (50, True)])
def test_a_leak_that_doubled_for_each_step_is_no_matter_of_length(gmt, kept, same):
    """100 blocks kept of 100 steps; and of 50 steps."""
    written = []
    for steps, blocks in ((100, 100), (50, kept)):
        whole = report(busy("forward", 4 * steps), busy("log", blocks, live=blocks * MIB, blocks=blocks))
        whole["counters"] = {"steps": steps}
        written.append(gmt.folder / f"{steps}.json")
        written[-1].write_text(json.dumps(whole))
    result = json.loads(gmt.tool("diff", "--json", *written).stdout)
    changed = [(row["title"], row["expected"]["live_bytes"]) for row in result["sites"] if row["change"] != "none"]
    assert changed == ([] if same else [("log", 50 * MIB)])


def test_a_run_of_another_length_is_not_said_to_be_the_same(gmt):
    written = []
    for steps in (50, 100):
        whole = report(busy("forward", 4 * steps))
        whole["counters"] = {"steps": steps}
        written.append(gmt.folder / f"{steps}.json")
        written[-1].write_text(json.dumps(whole))
    text = gmt.tool("diff", *written).stdout
    assert "no change beyond the length of the run at the same 1 place" in text and "the same memory" not in text


def pair_of(gmt, *wholes):
    written = []
    for number, whole in enumerate(wholes):
        written.append(gmt.folder / f"run{number}.json")
        written[-1].write_text(json.dumps(whole))
    return written


def with_phases(whole, **phases):
    whole["phases"] = [{"name": name, "count": count, "first_time_ns": 1} for name, count in phases.items()]
    return whole


@pytest.mark.parametrize("before, after, ratio", [
    (dict(train=10, alloc=20), dict(train=10, alloc=80), None),
    (dict(train=10, forward=10, alloc=20), dict(train=10, forward=10, alloc=80), 1),
    (dict(train=40, forward=40, validate=5), dict(train=80, forward=80, validate=11), 2),
    (dict(train=40, setup=1), dict(train=80, setup=1), 2),
    (dict(train=1), dict(train=3), None)])
def test_phases_tell_the_length_where_most_of_them_agree(gmt, before, after, ratio):
    """A phase inside of each step may come oftener in a run of the same steps."""
    places = [busy(name, 100) for name in "abcde"], [busy(name, 400) for name in "abcde"]
    files = pair_of(gmt, with_phases(report(*places[0]), **before), with_phases(report(*places[1]), **after))
    length = json.loads(gmt.tool("diff", "--json", *files).stdout)["before"]["length"]
    unknown = "calls" if before == dict(train=1) else "unknown"
    assert (length["basis"], length["ratio"]) == (("phase", ratio) if ratio else (unknown, 4 if unknown == "calls" else 1))
    assert ("unknown, for their phases do not agree" in gmt.tool("diff", *files).stdout) == (unknown == "unknown" and not ratio)


@pytest.mark.parametrize("names, ratio", [("abcd", 2), ("abc", 1)])
@pytest.mark.parametrize("odd, most", [(2, True), (3, False)])
def test_calls_tell_the_length_where_two_thirds_of_four_places_agree(gmt, names, ratio, odd, most):
    """`odd` places more go on as before; one that keeps its memory has no say."""
    if len(names) < 4:
        odd = 0
    runs = [report(*[busy(name, 100 * times) for name in names], *[busy(f"odd{number}", 50) for number in range(odd)],
                   *[busy(f"keeps{number}", 30 * times * times, live=MIB, blocks=30 * times * times) for number in range(9)])
            for times in (1, 2)]
    result = json.loads(gmt.tool("diff", "--json", *pair_of(gmt, *runs)).stdout)
    assert result["before"]["length"]["ratio"] == (ratio if most or len(names) < 4 else 1)


@pytest.mark.parametrize("before, after, words", [
    (100, 101, "is 1.010 times as long as"), (100000, 100001, "almost as long as"), (1000, 20, "0.020 times"),
    (50, 75, "is 1.5 times"), (1, 2**63 - 1, None), (2**63 - 1, 1, None), (1, 1001, None), (1, 1000, "1000.0 times")])
def test_the_ratio_is_said_as_exactly_as_needed_and_only_where_it_can_be(gmt, before, after, words):
    runs = [report(busy("forward", 100)) for _ in range(2)]
    for whole, steps in zip(runs, (before, after)):
        whole["counters"] = {"steps": steps}
    files = pair_of(gmt, *runs)
    text = gmt.tool("diff", *files).stdout
    assert words in text if words else "as long as" not in text
    length = json.loads(gmt.tool("diff", "--json", *files).stdout)["before"]["length"]
    assert (length["basis"], length["ratio"]) == (("steps", round(after / before, 3)) if words else ("unknown", 1))


@pytest.mark.parametrize("top, listed", [(None, "cab"), (2, "ca"), (0, "cab")])
def test_every_place_that_adds_up_is_listed_the_biggest_first(gmt, top, listed):
    """Each keeps so many MiB of each step."""
    runs = [report(busy("forward", 4 * steps), *[busy(name, steps, live=size * steps * MIB, blocks=steps)
                                                 for name, size in (("a", 2), ("b", 1), ("c", 3))]) for steps in (10, 20)]
    for whole, steps in zip(runs, (10, 20)):
        whole["counters"] = {"steps": steps}
    options = [] if top is None else [f"--top={top}"]
    files = pair_of(gmt, *runs)
    text = gmt.tool("diff", *options, *files).stdout
    assert "no place changed; 1 as before; 3 that add up" in text
    assert re.findall(r"alone: still allocated \S+ MiB → \S+ MiB at (\w), which adds up", text) == list(listed)
    markdown = gmt.tool("diff", "--markdown", *options, *files).stdout
    assert "3 places add up by the length of the run alone" in markdown and "changed</summary>" not in markdown
    assert re.findall(r"^\| `(\w)` \| \S+ MiB → \S+ MiB \|$", markdown, re.M) == list(listed)
    assert ("and 1 more" in text) == ("and 1 more" in markdown) == (top == 2)


@pytest.mark.parametrize("what", ["phases", "spaces"])
def test_many_phases_and_spaces_take_time_in_proportion(gmt, what):
    """Ten times as many take about ten times the processor time, and not a hundred times."""
    taken = []
    for count in (3000, 30000):
        whole = report(busy("forward", 100))
        if what == "phases":
            whole["phases"] = [{"name": f"phase {number}", "count": 2, "first_time_ns": 1} for number in range(count)]
        else:
            whole["spaces"] = [{**whole["spaces"][0], "space": f"space {number}"} for number in range(count)]
        files = pair_of(gmt, whole, whole)
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        gmt.tool("diff", *files)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(end.ru_utime - begin.ru_utime)
    assert taken[1] < max(40 * taken[0], 0.5)
