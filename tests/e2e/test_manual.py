"""The manual pages that are written by hand, as `make install` makes them: readable without a complaint, and true to the
sources. gpumemtrace-trace(5) is tried by a reader of recordings that is made of nothing but the page."""
import re
import shutil
import struct
import subprocess

import pytest
from conftest import BUILD, ROOT, SANITIZE
from test_install import make

pytestmark = pytest.mark.skipif(bool(SANITIZE), reason="what is installed is the plain build")

PAGES = ["libgpumemtrace.7", "gpumemtrace-trace.5"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    make("install", f"DESTDIR={folder}", "PREFIX=/usr", "libdir=/usr/lib/x86_64-linux-gnu")
    return folder / "usr/share/man"


def page_of(pages, name):
    return pages / f"man{name[-1]}" / name


def entries(text):
    """The tagged paragraphs of a page: {what stands in bold: (the rest of the tag, what follows)}."""
    found = {}
    for name, rest, body in re.findall(r'^\.TP\n\.BR? (\w+)(?: "([^"\n]*)")?.*\n((?:(?!\.TP|\.SH).*\n)*)', text, re.M):
        found.setdefault(name, (rest, body))
    return found


@pytest.fixture(scope="module")
def trace_page(pages):
    return page_of(pages, PAGES[1]).read_text()


def section(page, title):
    return page.split(f"\n.SH {title}\n")[1].split("\n.SH ")[0] + "\n"


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_rendered_without_a_complaint(pages, name):
    page = page_of(pages, name)
    assert re.findall(r"@\w+@", page.read_text()) == []
    if shutil.which("mandoc"):
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True)
        assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-ww", "-Kutf8", "-Tutf8", page], capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == ""


def test_variables_of_the_library_are_in_its_page(pages):
    page = page_of(pages, PAGES[0]).read_text()
    source = (ROOT / "src/preload/variables.h").read_text()
    variables = dict(re.findall(r'X\("(GPUMEMTRACE_\w+)", \w+, "[^"]*",\s+("[^"]*"|OUTPUT_DEFAULT)', source))
    assert variables.pop("GPUMEMTRACE_SESSION")
    told = {name: rest for name, (rest, _) in entries(section(page, "ENVIRONMENT")).items() if name.startswith("GPUMEM")}
    assert told == {name: f" ({default.strip(chr(34))})".replace("OUTPUT_DEFAULT", "gpumemtrace.%p")
                    for name, default in variables.items()}
    assert "/usr/lib/x86_64\\-linux\\-gnu/libgpumemtrace.so" in page


def table(file, macro):
    """The rows X(…) of a macro: [[word, …]]."""
    text = (ROOT / file).read_text().split(f"#define {macro}(X)")[1]
    rows = []
    while match := re.match(r"[\s\\]*X\(((?:[^()]|\([^()]*\))*)\)[\s\\]*(?:/\*.*?\*/)?", text, re.S):
        rows.append([word.strip() for word in re.sub(r"/\*.*?\*/|\\\n", " ", match[1], flags=re.S).split(",")])
        text = text[match.end():]
    assert rows
    return rows


def test_every_event_has_its_code_and_fields(trace_page):
    wanted = {}
    order = re.findall(r"FIELD_(\w+) = 1", (ROOT / "src/ledger/event.h").read_text())
    for symbol, code, fields in table("src/ledger/event.h", "EVENTS"):
        has = set(re.findall(r"FIELD_(\w+)", fields))
        wanted[symbol] = f" ({code}) " + " ".join(field for field in sorted(has, key=stored_order(trace_page).index))
        assert has <= set(order)
    found = entries(section(trace_page, "EVENTS"))
    assert {name: rest for name, (rest, _) in found.items() if re.match(r" \(\d", rest)} == wanted


def stored_order(page):
    """The fields of events as the page lists them."""
    listed = section(page, "EVENTS").split(".PP\nThe events")[0]
    tags = re.findall(r"^\.TP\n\.BR? (.*)\n", listed, re.M)
    return [word for tag in tags for word in re.findall(r"[A-Z_]+", tag)]


def test_fields_are_in_the_order_that_the_header_tells(trace_page):
    told = re.search(r"An event is its tag.*?COUNT u, DETAIL u", (ROOT / "include/gpumemtrace/trace.h").read_text(), re.S)[0]
    assert stored_order(trace_page) == re.findall(r"\b([A-Z_]{3,})(?:: u key| u\b)", told)


def test_every_tag_limit_and_header_field_is_there(trace_page):
    header = (ROOT / "include/gpumemtrace/trace.h").read_text()
    told = entries(trace_page)
    for name, code in re.findall(r"^    TRACE_(\w+) = (\d+),$", header.split("enum trace_tag {")[1], re.M):
        if name == "TAG_FIRST_EVENT":
            continue
        assert f"({code})" in told[name][0] if name != "TAG_SKIPPABLE" else f"from {code} (TRACE_{name})" in trace_page
    for name, value in re.findall(r"^#define TRACE_(VERSION|HEADER_SIZE|STRING_MAX|FRAMES_MAX|NOTES_MAX) +(\d+)$", header, re.M):
        assert f"{value} (TRACE_{name})" in trace_page
    for name, value in re.findall(r"(TRACE_RUNNING|TRACE_EXITED) = (\d)", header):
        assert f"{value} ({name})" in trace_page
    struct_text = re.sub(r"/\*.*?\*/", "", header.split("struct trace_header {")[1].split("};")[0], flags=re.S)
    fields, offset = [], 0
    for kind, names in re.findall(r"(\w+) ([^;]+);", struct_text):
        for name, count in re.findall(r"(\w+)(?:\[(\d+)\])?", names):
            size = {"char": 1, "uint32_t": 4, "uint64_t": 8}[kind] * int(count or 1)
            fields.append((name, offset, f"{kind}[{count}]" if count else kind))
            offset += size
    for name, at, kind in fields:
        line = re.search(rf"^\.BR (?:\w+ \", \" )?{name}\b.*$", section(trace_page, "HEADER"), re.M)
        assert line and re.search(rf"\b{at}, (?:\d+, )?{re.escape(kind)}\)", line[0].replace("(", "")  + ")"), (name, at)


def test_numbers_of_kinds_are_there(trace_page):
    flat = " ".join(trace_page.split())
    for file, macro, at in [("src/catalog/catalog.h", "FAMILIES", 1), ("src/catalog/catalog.h", "SPACES", 1),
                            ("src/ledger/event.h", "SAMPLE_REASONS", 1), ("src/ledger/event.h", "BASES", 1)]:
        names = [row[at].strip('"') for row in table(file, macro)]
        assert ", ".join(f"{number} {name}" for number, name in enumerate(names)) in flat
    for symbol, code in table("src/ledger/state.h", "LEDGER_STATES"):
        assert f"{symbol} ({code})" in flat or f'{symbol} " ({code})"' in flat


class Reader:
    """Reads a recording by what the page says: its example, and its lists of fields."""

    def __init__(self, page, path):
        example = re.search(r"^\.RS 4\n(.*?)^\.RE", page, re.M | re.S)[1]
        names = {}
        exec(example.replace("train.gmt", str(path)).replace("\\-", "-").replace("\\e", "\\"), names)
        self.records, self.at = names["records"], 0
        self.generation = names["generation"]
        events = entries(section(page, "EVENTS"))
        self.events = {int(rest[2:].split(")")[0]): (name, rest.split(")")[1].split())
                       for name, (rest, _) in events.items() if re.match(r" \(\d", rest)}
        self.definitions = {int(rest[2:-1]): name for name, (rest, _) in entries(section(page, "DEFINITIONS")).items()}

    def u(self):
        value = shift = 0
        while True:
            byte = self.records[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def s(self):
        value = self.u()
        return value >> 1 ^ -(value & 1)

    def define(self, name):
        if name == "STRING":
            length = self.u()
            self.at += length
        elif name == "MODULE":
            for _ in range(6):
                self.u()
            length = self.u()
            self.at += length
        elif name == "STACK":
            return [self.s() for _ in range(self.u())]
        elif name == "PROCESS":
            return [self.u() for _ in range(self.u())]
        else:
            return [self.u() for _ in range({"NATIVE": 2, "PYTHON": 3, "SITE": 5, "NOTE": 1}[name])]
        return None

    def read(self):
        """(events, items of the checkpoint); an event is its name and {field: value}."""
        events, items, last, time = [], [], {}, 0
        while self.at < len(self.records):
            tag = self.records[self.at]
            self.at += 1
            if tag in self.definitions:
                self.define(self.definitions[tag])
            elif tag == 10:
                items.append(("time", self.u()))
            elif tag == 9:
                items.append((self.u(), [self.u() for _ in range(self.u())]))
            else:
                name, fields = self.events[tag]
                time += self.s()
                event = {"time": time}
                for field in fields:
                    if field == "KEY":
                        space = self.u()
                        last[space] = last.get(space, 0) + self.s()
                        event[field] = (space, last[space])
                    else:
                        event[field] = self.u()
                events.append((name, event))
        return events, items


CHURN = """
    import cuda
    cuda.init()
    kept = [cuda.allocate(1 << 20) for _ in range(5)]
    for turn in range({turns}):
        cuda.release(cuda.allocate(4096 + turn))
"""


@pytest.mark.parametrize("turns, bound", [(50, None), (120000, "2M")], ids=["whole", "bounded"])
def test_a_reader_made_of_the_page_finds_what_the_report_tells(gmt, trace_page, turns, bound):
    done = gmt.python(CHURN.format(turns=turns), env={"GPUMEMTRACE_QUIET": "1", "GPUMEMTRACE_MAX_TRACE": bound})
    reader = Reader(trace_page, done.recording)
    assert (reader.generation > 0) == bool(bound)
    events, items = reader.read()
    counters = next((values for kind, values in items if kind == 1), [0] * 8)
    living = {(key >> 60, key & (1 << 60) - 1): size for kind, (key, size, *_) in
              ((kind, values) for kind, values in items if kind == 5)}
    for name, event in events:
        if name == "ALLOC":
            living[event["KEY"]] = event["SIZE"]
        elif name == "FREE":
            living.pop(event["KEY"], None)
    names = [name for name, _ in events]
    report = done.report["counters"]
    assert counters[1] + names.count("ALLOC") == report["allocs"] == turns + 5
    assert counters[2] + names.count("FREE") == report["frees"] == turns
    assert sum(living.values()) == done.report["leaks"]["live_bytes"] == 5 << 20
    (end,) = struct.unpack_from("<Q", done.recording.read_bytes(), 64)
    assert end >= events[-1][1]["time"] >= events[0][1]["time"] >= dict(items).get("time", 1)
