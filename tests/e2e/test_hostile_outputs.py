"""Every command and every format gets damaged recordings and reports, and names that would do something in it: each gives
a whole answer or one clear line, in little memory and time."""
import csv
import gzip
import io
import json
import os
import pickletools
import pty
import random
import re
import select
import sqlite3
import subprocess
import tempfile
import xml.etree.ElementTree

import pytest
import recording_writer as w
from conftest import TIMEOUT, TOOL
from hostile import NAMES, ROUNDS, ask, changed_json, damaged, harmless, named, saved
from test_export import FORMATS

NAMES = [*NAMES, "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "</script><script>broken()</script>", "<!--", "]]>", "a|b`c`[d](e)"]
SMALL = max(ROUNDS // 12, 1)


def whole_text(data):
    harmless(data)


def whole_json(data):
    harmless(data)
    json.loads(data)


def whole_csv(data):
    harmless(data.replace(b"\r\n", b"\n"))
    head, *rows = csv.reader(io.StringIO(data.decode(), newline=""), strict=True)
    assert all(len(row) == len(head) for row in rows)
    # What a spreadsheet would take for a formula; numbers of ours are never negative.
    assert not [cell for row in rows for cell in row if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]


def whole_database(data):
    with tempfile.NamedTemporaryFile(suffix=".db") as file:
        file.write(data)
        file.flush()
        connection = sqlite3.connect(file.name)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        for title, api in connection.execute("SELECT title, api FROM sites"):
            harmless((title + api).encode())
        connection.close()


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def whole_profile(data):
    """By the message's fields; number 6 are its texts, of which the first is empty."""
    profile, at, texts = gzip.decompress(data), 0, []
    while at < len(profile):
        tag, at = varint(profile, at)
        value, at = varint(profile, at)
        if tag & 7:
            assert tag & 7 == 2
            texts += [profile[at:at + value]] if tag >> 3 == 6 else []
            at += value
    assert at == len(profile) and texts[0] == b""
    for text in texts:
        harmless(text)


def whole_pickle(data):
    """Of texts and numbers only, so that it runs nothing when it is read."""
    for opcode, argument, _ in pickletools.genops(data):
        assert opcode.name not in ("GLOBAL", "STACK_GLOBAL", "REDUCE", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "BUILD")
        if isinstance(argument, str):
            harmless(argument.encode())


def whole_page(data):
    harmless(data)
    text = data.decode()
    (stored,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.S)
    json.loads(stored)
    assert text.count("</script") == 2 and "<!--" not in stored and "<script" not in stored


def whole_metrics(data):
    harmless(data)
    assert data.endswith(b"# EOF\n")
    for line in data.decode().splitlines():
        assert re.fullmatch(r'#.*|\w+\{(?:\w+="(?:[^"\\]|\\[n"\\])*",?)*\} \S+', line), line


def whole_xml(data):
    harmless(data)
    xml.etree.ElementTree.fromstring(data)


def whole_markdown(data):
    """Outside of code, nothing that a name could have brought."""
    harmless(data)
    for line in data.decode().splitlines():
        outside = re.sub(r"(`+).*?(?<!`)\1(?!`)", "", line)
        assert not re.search(r"<(?!/?(details|summary)>)|\]\(|@|`", outside), line


EXPORTS = {"folded": whole_text, "speedscope": whole_json, "pprof": whole_profile, "perfetto": whole_json,
           "torch": whole_pickle, "csv": whole_csv, "sqlite": whole_database, "openmetrics": whole_metrics}
assert sorted(EXPORTS) == sorted(FORMATS)
GATE = "--fail-on=peak>1000G"
# The words before the file, whether it is named twice, what the answer has to be, and whether it goes to a file.
COMMANDS = {
    **{name: (["export", "--format", name], False, check, True) for name, check in EXPORTS.items()},
    "tensors": (["export", "--format", "csv", "--layer", "framework", "--value", "allocated"], False, whole_csv, True),
    "page": (["report", "--html"], False, whole_page, True),
    "top": (["top", "--once", "-d", "0.01"], False, whole_text, False),
    "top_json": (["top", "--once", "--json", "-d", "0.01", "--sort", "growth"], False, whole_json, False),
    "merge": (["merge"], False, whole_text, False),
    "merge_json": (["merge", "--json"], False, whole_json, False),
    "markdown": (["diff", "--markdown", GATE], True, whole_markdown, False),
    "junit": (["diff", GATE], True, whole_xml, True),
}


def answer(gmt, name, path, good=None):
    """The command's whole answer, checked; None where it was one line of complaint. `good`: the file beside."""
    words, twice, check, to_file = COMMANDS[name]
    out = gmt.folder / "out"
    out.unlink(missing_ok=True)
    option = [] if not to_file else [f"--junit={out}"] if name == "junit" else ["-o", out]
    text, complaint = ask(gmt, *words, *option, path, *([good or path] if twice else []))
    if complaint:
        return None
    data = out.read_bytes() if to_file else text.encode()
    check(data)
    return data


@pytest.mark.parametrize("name", COMMANDS)
def test_good_recordings_are_answered_by_every_command(gmt, name):
    for make in (w.example, w.checkpointed):
        assert answer(gmt, name, saved(gmt, make()))


@pytest.mark.parametrize("name", COMMANDS)
def test_damaged_recordings_give_a_whole_answer_or_one_line(gmt, name):
    choose = random.Random(name)
    path = gmt.folder / "damaged.gmt"
    answered = 0
    for number in range(SMALL):
        path.write_bytes(damaged(choose, number))
        answered += answer(gmt, name, path) is not None
    assert answered > 0


@pytest.mark.parametrize("name", ["merge", "merge_json", "markdown", "junit"])
def test_damaged_reports_give_a_whole_answer_or_one_line(gmt, name):
    choose = random.Random(name)
    good, path = gmt.folder / "good.json", gmt.folder / "damaged.json"
    good.write_text(ask(gmt, "report", "--json", saved(gmt, w.example()))[0])
    for _ in range(2 * SMALL):
        path.write_bytes(changed_json(choose, good.read_bytes()))
        answer(gmt, name, path, good)


@pytest.mark.parametrize("name", COMMANDS)
def test_names_do_nothing_in_any_output(gmt, name):
    for bad in NAMES:
        assert answer(gmt, name, saved(gmt, named(bad)), saved(gmt, w.example()))


def test_names_do_nothing_to_the_terminal_that_is_watched_on(gmt):
    path = saved(gmt, named("\x1b]0;evil\a\x9b31m\u202e"))
    try:
        child, terminal = pty.fork()
    except OSError as error:
        pytest.skip(f"no terminal to be had: {error}")
    if child == 0:
        try:
            os.execve(TOOL, [str(TOOL), "top", str(path)],
                      gmt.environment(traced=False, TERM="xterm", COLUMNS="120", LINES="30", LC_ALL="C.UTF-8"))
        finally:
            os._exit(127)
    output = b""
    while b"evil" not in output:
        assert select.select([terminal], [], [], TIMEOUT)[0], output
        output += os.read(terminal, 10000)
    os.write(terminal, b"q")
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0
    for bad in (b"\x1b]", b"\a", "\x9b".encode(), "\u202e".encode()):
        assert bad not in output


# Where in an item of a checkpoint its site stands.
SITE_OF = {w.BLOCK: 3, w.OOM_STATE: 1, w.SHARE: 0, w.PINNER: 0, w.SEGMENT: 4, w.KEPT_BLOCK: 4, w.PHASE_SITE: 1}


class NamingAnEmptySite(w.Recording):
    """In its checkpoint, the items of one kind name a site that never had a block."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def put(self, tag, *fields):
        if tag == w.CHECKPOINT:
            self.empty = self.site(None, "never", w.TORCH)
        super().put(tag, *fields)

    def state(self, kind, *values):
        if kind == self.kind:
            place = SITE_OF[kind]
            values = (*values[:place], self.empty, *values[place + 1:])
        super().state(kind, *values)
        if kind == w.SPACE and values[0] == 1:
            super().state(w.SITE_STATE, self.empty)


def pinners(report):
    layouts = [layout for oom in report["ooms"] for layout in oom["frameworks"]]
    assert [[row["site"] for row in layout["pinned"]] for layout in layouts] == [layout["pinners"] for layout in layouts]
    return [site for layout in layouts for site in layout["pinners"]]


@pytest.mark.parametrize("kind", [None, *SITE_OF])
def test_a_checkpoint_may_name_a_site_without_figures(gmt, kind):
    """As a damaged one does, for what strands memory, for example: no list tells of what is in no list of sites."""
    path = saved(gmt, w.checkpointed(NamingAnEmptySite(kind)))
    report = json.loads(ask(gmt, "report", "--json", path)[0])
    count = len(report["sites"])
    assert count == 2 and len(report["ooms"]) == (kind != w.OOM_STATE)
    assert len(pinners(report)) == (kind not in (w.OOM_STATE, w.PINNER)) and all(site < count for site in pinners(report))
    for oom in report["ooms"]:
        assert all(row["site"] < count for row in oom["sites"])
    for words in (["report", "--full"], ["report", "--html"], ["export", "-f", "torch"], ["merge"]):
        out = ["-o", gmt.folder / "out"] if words[0] == "export" else []
        assert not ask(gmt, *words, *out, path)[1]
