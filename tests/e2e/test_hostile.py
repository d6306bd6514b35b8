"""Recordings, JSON reports and suppressions that somebody made to do harm: each gives an answer or one clear line, in
little memory and time, and nothing in what is printed controls a terminal."""
import json
import os
import random
import re
import subprocess

import pytest
import recording_writer as w
from conftest import SANITIZE, TIMEOUT, TOOL
from hostile import NAMES, ROUNDS, ask, changed_at_random, changed_json, limit, named, saved

OUTPUTS = (["report"], ["report", "--full", "--native"], ["report", "--json"], ["diff"], ["diff", "--json"])
# The old hash of block keys multiplied by this; these are keys that it put into one bucket.
OLD_FACTOR = 0x9E3779B97F4A7C15


def ask_all(gmt, path, outputs=OUTPUTS):
    answers = []
    for command in outputs:
        answers.append(ask(gmt, *command, path, *([path] if command[0] == "diff" else [])))
        if answers[-1][0] and "--json" in command:
            json.loads(answers[-1][0])
    return answers


@pytest.fixture(scope="module")
def report_text(tmp_path_factory):
    """A good JSON report, of which others are made."""
    path = w.example().write(tmp_path_factory.mktemp("good") / "good.gmt")
    return subprocess.run([str(TOOL), "report", "--json", path], capture_output=True, check=True).stdout


@pytest.mark.parametrize("make", [w.example, w.checkpointed])
def test_recordings_made_by_the_tests_are_understood(gmt, make):
    for answer, complaint in ask_all(gmt, saved(gmt, make())):
        assert answer and not complaint


@pytest.mark.parametrize("make", [w.example, w.checkpointed])
def test_bytes_changed_at_random_give_an_answer_or_one_line(gmt, make):
    whole = make().file()
    choose = random.Random(make.__name__)
    path = gmt.folder / "changed.gmt"
    for _ in range(ROUNDS):
        path.write_bytes(changed_at_random(choose, whole))
        ask_all(gmt, path, [choose.choice(OUTPUTS)])


def test_a_file_cut_anywhere_gives_one_line(gmt):
    whole = w.example().file()
    path = gmt.folder / "cut.gmt"
    for length in [*range(0, 200, 13), *range(w.HEADER_BYTES - 2, len(whole), 97)]:
        path.write_bytes(whole[:length])
        (answer, complaint), = ask_all(gmt, path, [["report"]])
        assert complaint and not answer


@pytest.mark.parametrize("header", [
    {"version": 0}, {"version": 2**32 - 1}, {"header_size": 0}, {"header_size": 2**32 - 1}, {"committed": 2**64 - 1},
    {"committed": 0}, {"half_bytes": 1}, {"half_bytes": 2**63, "committed": 2**63 + 5000}, {"half_bytes": 2**64 - 1},
    {"half_bytes": 5000, "committed": 2**64 - 1}, {"begun": 2**64 - 1, "half_bytes": 1 << 20},
    {"start_realtime_ns": 2**64 - 1}, {"end_ns": 2**64 - 1}, {"boot_id": b"x" * 40, "session": b"\xff" * 40},
    {"state": 2**32 - 1}, {"pid": 2**32 - 1, "state": 0}])
def test_headers_of_any_values(gmt, header):
    ask_all(gmt, saved(gmt, w.example(), **header))


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_are_harmless_wherever_they_are_printed(gmt, name):
    made = named(name)
    path = saved(gmt, made)
    for answer, complaint in ask_all(gmt, path):
        assert answer and not complaint
    report = gmt.folder / "report.json"
    report.write_text(ask(gmt, "report", "--json", path)[0])
    assert "no change" in ask(gmt, "diff", report, path)[0]


def test_names_of_files_and_of_suppressions_are_harmless(gmt):
    path = w.example().write(gmt.folder / "a\x1b[31m\u202e.gmt")
    rules = gmt.folder / "\x1b[32m.supp"
    rules.write_bytes(b"leak:\x1b[2Jstep \x1b#\nleak:step # \x9b\x1b]0;t\a\nno\x1b\n\xff\xfe")
    for command in OUTPUTS[:3]:
        assert ask(gmt, *command, "--suppressions", rules, path)[0]
    assert "no change" in ask(gmt, "diff", path, path)[0]
    ask(gmt, "report", gmt.folder / "\x1b[31m\n\n")


def many(count, each):
    made = w.Recording()
    site, torch = made.site(), made.site(None, "torch", w.TORCH)
    for number in range(count):
        each(made, number, site, torch)
    return made


def equal_hashes(made, number, site, _torch):
    key = number * pow(OLD_FACTOR, -1, 1 << 64) % (1 << 64)
    if key >> 60 < 13:
        made.alloc(site, key & ((1 << 60) - 1), 8, space=key >> 60)


def contexts_that_end_beside_many_blocks(made, number, site, _torch):
    made.alloc(site, (number + 1) * 512, 512, 1)
    made.alloc(site, 1 << 40, 512, 2)
    made.event(w.TEARDOWN, 2)


def blocks_that_overlap(made, number, site, torch):
    made.alloc(site, 8192 + number * 512, 1 << 30)
    made.alloc(torch, 8192 + number * 512, 1 << 30, space=w.FRAMEWORK)
    if number % 1000 == 999:
        made.event(w.OOM, site, 1 << 40, 2, 0, 0)


def sites_that_share_a_stack(made, number, _site, _torch):
    if number == 0:
        made.shared = made.stack(*[made.python("f" * 60000, "/" + "g" * 60000, 3)] * 4000)
    made.alloc(made.site(made.shared, f"api{number}"), (number + 1) * 512, 512)


def frames_of_one_long_name(made, number, _site, _torch):
    frame = made.python("f" * 15000, "/x.py", number)
    for stack in (made.stack(frame), made.stack(frame, frame)):
        made.alloc(made.site(stack), (2 * number + stack + 1) * 512, 512)


def notes(made, number, _site, _torch):
    made.note(f"{number:x}")


def phases_in_phases(made, number, site, _torch):
    made.event(w.PHASE_BEGIN, made.string(f"p{number % 2000}"), number)
    made.alloc(site, (number + 1) * 512, 512)


def growing_sites(made, number, _site, _torch):
    if number % 1000 == 0:
        made.growing = getattr(made, "growing", None) or [
            made.site(made.stack(made.python(f"f{i}", "/g.py", i))) for i in range(1000)]
    made.alloc(made.growing[number % 1000], (number + 1) * 512, 512, time=100000)


def modules_without_end(made, number, _site, _torch):
    module = made.module(f"/lib/m{number}.so", bias=number << 32, start=number << 32, build_id=b"%20d" % number)
    made.alloc(made.site(made.stack(made.native(module, 64))), (number + 1) * 512, 512)


def arguments(made, number, _site, _torch):
    if number % 1000 == 0:
        made.process("/bin/x", "h", "0", *["a" * 60000] * 1000)


def out_of_memory_with_many_holders(made, number, site, _torch):
    made.alloc(made.site(None, f"api{number}"), (number + 1) * 512, 512)
    if number % 100 == 0:
        made.event(w.OOM, site, 1 << 40, 2, 0, 0)


COSTLY = [(equal_hashes, 100000), (contexts_that_end_beside_many_blocks, 60000), (blocks_that_overlap, 20000),
          (sites_that_share_a_stack, 20000), (frames_of_one_long_name, 500), (notes, 100000), (phases_in_phases, 20000),
          (growing_sites, 20000), (modules_without_end, 2000), (arguments, 1000), (out_of_memory_with_many_holders, 5000)]


@pytest.mark.parametrize("each, count", COSTLY, ids=[each.__name__ for each, _ in COSTLY])
def test_time_and_memory_stay_in_proportion_to_the_file(gmt, each, count):
    path = saved(gmt, many(count // {"": 1, "address": 10, "thread": 40}[SANITIZE], each))
    for command in OUTPUTS:
        with open(gmt.folder / "out", "wb") as out:
            done = subprocess.run([str(TOOL), *command, path, *([path] if command[0] == "diff" else [])], stdout=out,
                                  env=gmt.environment(traced=False), stderr=subprocess.PIPE, text=True, timeout=TIMEOUT,
                                  preexec_fn=limit, check=False)
        assert done.returncode in (0, 2), (command, done.returncode, done.stderr[-2000:])
        assert done.returncode == 0 or done.stderr.count("\n") == 1


def test_sums_stop_at_a_limit_instead_of_wrapping(gmt):
    made = w.Recording()
    site = made.site()
    for number in range(100):
        made.alloc(site, (number + 1) << 50, 1 << 49)
        made.free((number + 1) << 50)
    made.alloc(site, 4096, 2**64 - 1)
    for number in range(20000):
        made.alloc(site, 1 << 55, 1 << 50)
        made.free(1 << 55)
    report = json.loads(ask(gmt, "report", "--json", saved(gmt, made))[0])
    (space,) = report["spaces"]
    assert (space["live_bytes"], space["peak_bytes"], space["allocated_bytes"]) == (0, 1 << 50, 2**63 - 1)
    assert report["counters"]["dropped_events"] == 1


def test_a_checkpoint_whose_figures_cannot_be_is_refused(gmt):
    made = w.Recording()
    site = made.site()
    made.put(w.CHECKPOINT, 1)
    made.state(w.SPACE, 0, 0, 1, 2**60)
    made.state(w.SITE_STATE, site, 2**63)
    (_, complaint), = ask_all(gmt, saved(gmt, made), [["report"]])
    assert "out of range" in complaint


UNREADABLE = ["/dev/zero", "/dev/tty", "/proc/kmsg", "/proc/self/mem", "/proc/self/maps", "/sys/kernel/uevent_helper",
              "/", "/nowhere", "relative"]


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_recording_makes_the_tool_read_nothing_but_files(gmt, name):
    """As source, as module, as recording, and as suppressions. A FIFO is among them."""
    fifo = gmt.folder / "fifo"
    os.mkfifo(fifo)
    made = w.Recording()
    for path in (name, str(fifo)):
        module = made.module(path)
        made.alloc(made.site(made.stack(made.native(module, 16), made.python("f", path, 1))), (module + 1) * 512, 512)
    path = saved(gmt, made)
    done = subprocess.run(["strace", "-f", "-y", "-e", "trace=read,pread64,mmap", "-o", gmt.folder / "calls", str(TOOL),
                           "report", path], env=gmt.environment(traced=False), capture_output=True, timeout=TIMEOUT,
                          check=False)
    if done.returncode == 0: # the sanitizers do not run under it
        read = re.findall(r"(?:read|pread64|mmap)\([^<]*<([^>]*)>", (gmt.folder / "calls").read_text())
        assert str(path) in read and not {name, str(fifo)} & set(read)
    ask_all(gmt, path)
    for given in (name, fifo):
        assert ask(gmt, "report", given)[1]
        assert ask(gmt, "diff", given, path)[1]
        ask(gmt, "report", "--suppressions", given, path)


def test_suppressions_that_match_slowly_do_not(gmt):
    made = w.Recording()
    for number in range(20):
        site = made.site(made.stack(made.python("a" * 60000 + str(number), "/a.py", 1)))
        made.alloc(site, (number + 1) * 512, 512)
    path = saved(gmt, made)
    rules = gmt.folder / "slow.supp"
    rules.write_text("leak:" + "*a" * 20000 + "*b\n" + "leak:" + "a" * 50000 + "*b$\n" + "leak:*aab*aab\n" * 40)
    assert ask(gmt, "report", "--suppressions", rules, path)[0]
    rules.write_text("leak:nothing\n" * 200000)
    assert "over 4096" in ask(gmt, "report", "--suppressions", rules, path)[1]
    rules.write_bytes(random.Random(1).randbytes(1 << 20))
    complaints = ask(gmt, "report", "--suppressions", rules, path)[1]
    assert complaints.count("\n") <= 22


def json_reports(good):
    """Reports that are none, or not of this kind, by name."""
    report = json.loads(good)
    def changed(**values):
        return json.dumps({**report, **values}).encode()
    site = report["sites"][0]
    def with_site(**values):
        return changed(sites=[{**site, **values}])
    yield from {
        "nested": b"[" * 10_000_000, "nested_objects": b'{"a":' * 2_000_000, "empty": b"", "nul": b"\0" * 100000,
        "not_utf8": good.replace(b"step", b"\xff\xfe"), "half_a_surrogate": good.replace(b"step", b"\\ud800"),
        "escaped_nul": good.replace(b"step", b"a\\u0000b"), "escaped_controls": good.replace(b"step", b"\\u001b[2J\\u202e"),
        "cut": good[:-20], "twice": good + good, "bom": b"\xef\xbb\xbf" + good, "number": b"1e999",
        "long_number": b'{"schema":"gpumemtrace.report/1","a":' + b"9" * 1_000_000 + b"}",
        "many_values": b'{"schema":"gpumemtrace.report/1","a":[' + b"0," * 1_000_000 + b"0]}",
        "many_keys": b'{"schema":"gpumemtrace.report/1",' + b",".join(b'"%d":0' % i for i in range(200000)) + b"}",
        "other_schema": changed(schema="gpumemtrace.report/2"), "no_process": changed(process=None),
        "sites_no_list": changed(sites={}), "null_site": changed(sites=[None]), "spaces_of_numbers": changed(spaces=[1, 2]),
        "negative": with_site(live_bytes=-1), "real": with_site(live_bytes=1.5), "text": with_site(live_bytes="1"),
        "too_big": with_site(live_bytes=2**64), "device": with_site(device=2**40), "frames": with_site(frames=[[]]),
        "big_sums": changed(sites=[{**site, "live_bytes": 2**63 - 1}] * 5),
        "same_names": with_site(frames=[{"kind": "native", "function": "_Z" + "1a" * 3000, "module": "/m"}] * 500),
        "deep_name": with_site(frames=[{"kind": "native", "function": "_Z" + "N" * 4000, "module": "/m"}]),
        "doubling_name": with_site(frames=[{"kind": "native", "module": "/m", "function":
                                            "_Z1fI1AIS_S_E" + "".join(f"1BIS{n:X}_S{n:X}_E" for n in range(30)) + "Ev"}]),
        "formats": with_site(title="%s%n%99999999d", layer="%n", space="%s", family="%s", api="%n"),
    }.items()


def test_json_reports_of_any_bytes_give_an_answer_or_one_line(gmt, report_text):
    good = gmt.folder / "good.json"
    good.write_bytes(report_text)
    for name, data in json_reports(report_text):
        path = gmt.folder / f"{name}.json"
        path.write_bytes(data)
        for command in (["diff", path, good], ["diff", good, path], ["diff", "--json", path, path]):
            ask(gmt, *command)


def test_bytes_of_a_json_report_changed_at_random(gmt, report_text):
    good, path = gmt.folder / "good.json", gmt.folder / "changed.json"
    good.write_bytes(report_text)
    choose = random.Random(5)
    for _ in range(ROUNDS):
        data = changed_json(choose, report_text)
        path.write_bytes(data)
        ask(gmt, "diff", *choose.choice(([path, good], [good, path], ["--json", path, path])))


def test_a_big_sum_is_held_at_its_limit(gmt, report_text):
    report = json.loads(report_text)
    one, two = gmt.folder / "one.json", gmt.folder / "two.json"
    site = {**report["sites"][0], "live_bytes": 2**63 - 1}
    one.write_text(json.dumps({**report, "sites": [site] * 3}))
    two.write_text(json.dumps({**report, "sites": [{**site, "live_bytes": 5}]}))
    place = json.loads(ask(gmt, "diff", "--json", one, two)[0])["sites"][0]
    assert (place["before"]["live_bytes"], place["after"]["live_bytes"]) == (2**63 - 1, 5)
