"""`gpumemtrace report --html`: one page that needs nothing else, in a real browser."""
import base64
import hashlib
import json
import os
import re
import sys

import browser
import pytest
import stand_in
from conftest import ROOT, SIMGPU
from recording_writer import Recording

MIB = 1 << 20

# Weights that stay, activations that come and go, one block kept in each step, and a peak in the middle.
TRAINING = """
import cuda
import time

def weights():
    return cuda.allocate(64 << 20)

def activations(step):
    return cuda.allocate((8 if step != 20 else 100) << 20)

def log_loss(kept):
    kept.append(cuda.allocate(1 << 20))

def step(number, kept):
    held = activations(number)
    time.sleep(0.004)
    cuda.release(held)
    log_loss(kept)

def train():
    kept = []
    model = weights()
    for number in range(40):
        step(number, kept)
    cuda.release(model)

cuda.init()
train()
"""
PEAK = {"weights": 64 * MIB, "activations": 100 * MIB, "log_loss": 20 * MIB}


def played(steps=40, unit=1_000_000):
    """The same as a recording with times of our own: weights at 1; in each step of 10 units activations from 2 to 6, and
    the log at 9."""
    made = Recording()
    made.process("/usr/bin/python3", "node", "", "program.py")
    outer = made.python("train", "/home/me/program.py", 29), made.python("<module>", "/home/me/program.py", 34)
    weights, activations, log_loss = (made.site(made.stack(made.python(name, "/home/me/program.py", line), *outer))
                                      for name, line in (("weights", 6), ("activations", 9), ("log_loss", 12)))
    made.alloc(weights, 0x7F0000000000, 64 * MIB, time=unit)
    for number in range(steps):
        made.alloc(activations, 0x7F1000000000, (8 if number != steps // 2 else 100) * MIB, time=(3 if number else 1) * unit)
        made.free(0x7F1000000000, time=4 * unit)
        made.alloc(log_loss, 0x7F2000000000 + number * MIB, MIB, time=3 * unit)
    made.free(0x7F0000000000, time=unit)
    return made


def size(number):
    """As the reports word it: binary units, one digit behind the point below a GiB, two from there on."""
    units = [("KiB", 10, 1), ("MiB", 20, 1), ("GiB", 30, 2)]
    unit, bits, digits = max((row for row in units if number >= 1 << row[1]), key=lambda row: row[1])
    return f"{number / (1 << bits):.{digits}f} {unit}"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if not browser.find():
        pytest.skip("no Chromium is here: apt-get install chromium")
    opened = browser.Browser(tmp_path_factory.mktemp("chromium"))
    yield opened
    opened.close()


def write_page(gmt, recording):
    page = gmt.folder / "page.html"
    gmt.tool("report", "--html", "-o", page, recording)
    return page


class Page:
    """A page in the browser, and the JSON report of the same recording."""

    def __init__(self, chromium, path, report):
        self.browser, self.path, self.report = chromium, path, report
        self.open()

    def open(self, width=1280, dark=False):
        self.browser.trouble.clear()
        self.browser.show(width, dark=dark)
        return self.browser.open(self.path)

    def site(self, function):
        (found,) = [site for site in self.report["sites"] if site["title"].endswith(f" in {function}")]
        return found

    def frames(self):
        """The graph as {title: (text of the value, level)}; the widest of equal titles."""
        shown = {}
        for label, level in self.browser.evaluate(
                "[...document.querySelectorAll('#graph .frame')].map((one) => [one.ariaLabel, one.ariaLevel])"):
            title, value, _ = label.rsplit(", ", 2)
            shown.setdefault(title, (value, int(level)))
        return shown

    def value_of(self, function):
        """What the graph says went through a function of the program, once; None: it is not in it."""
        found = [value for title, (value, _) in self.frames().items() if title.endswith(f" in {function}")]
        return found[0] if found else None

    def measure(self, name):
        self.browser.click(f"#measures input[value={name}]")

    def rows(self, table):
        return [[cell.split("\n")[0] for cell in row] for row in self.browser.evaluate(
            f"[...document.querySelectorAll('#{table} tbody tr')].map((row) => [...row.cells].map((cell) => cell.innerText))")]

    def moment_at(self, time_ns):
        """Clicks there on the timeline."""
        start, end = self.browser.evaluate("""(() => {
            const report = JSON.parse(document.getElementById("recording").textContent);
            return [report.timeline.origin_ns, report.process.duration_ns]; })()""")
        self.browser.click("#timeline .catcher", (time_ns - start) / (end - start))

    def no_trouble(self):
        assert self.browser.trouble == []


@pytest.fixture
def training(gmt, chromium):
    done = gmt.python(TRAINING)
    return Page(chromium, write_page(gmt, done.recording), gmt.rendered(done.recording))


@pytest.fixture
def played_page(gmt, chromium):
    recording = played().write(gmt.folder / "played.gmt")
    return Page(chromium, write_page(gmt, recording), gmt.rendered(recording))


def test_tables_have_the_figures_of_the_json_report(training):
    spaces = training.rows("spaces")
    (device,) = [row for row in training.report["spaces"] if row["space"] == "device"]
    assert spaces[0][0] == "device 0" and spaces[0][1] == size(device["peak_bytes"]) == size(sum(PEAK.values()))
    assert spaces[0][3] == f"{size(40 * MIB)} in 40 blocks" and spaces[0][4:] == ["81", "41"]
    shown = {row[0]: row for row in training.rows("sites-table")}
    assert set(shown) == {site["title"] for site in training.report["sites"]}
    for site in training.report["sites"]:
        expected = [site["live_bytes"], site["bytes_at_peak"], site["allocated_bytes"]]
        assert shown[site["title"]][2:5] == [size(number) if number else "0 B" for number in expected]
        assert shown[site["title"]][5] == str(site["allocs"])
    training.no_trouble()


def test_peaks_say_what_they_would_be_without_each_line(training):
    (peak,) = [row for row in training.report["peaks"] if row["space"] == "device"]
    shown = {row[0]: row[1:] for row in training.rows("peaks-table")}
    for line in peak["lines"]:
        without = line["without"]
        assert shown[training.report["sites"][line["site"]]["title"]] == [
            size(line["bytes"]), f"{100 * line['bytes'] / peak['bytes']:.1f}%", str(line["blocks"]),
            ("" if without["exact"] else "at most ") + size(without["peak_bytes"])]
    text = training.browser.text("#peaks-table")
    for fall in peak["falls"]:
        assert f"{fall['percent']}% lower without" in text and size(fall["peak_bytes"]) in text


def test_device_memory_is_shared_out_as_in_the_json_report(training):
    (row,) = training.report["memory_map"]
    shown = {cells[0]: cells[1:] for cells in training.rows("device-memory")}
    of_the_end = row["untracked_bytes"] is not None
    for name, at_peak, at_end in [("allocations, recorded here", "tracked_bytes", "tracked_bytes"), ("free", "free_bytes", "free_bytes"),
                                  ("not known", "rest_bytes", "untracked_bytes"), ("the whole device", "total_bytes", "total_bytes")]:
        figures = [row["peak"][at_peak], row[at_end]] if of_the_end else [row["peak"][at_peak]]
        assert shown.get(name) == ([size(one) if one else "0 B" for one in figures] if any(figures) else None), name


def test_what_grows_is_told_by_line_of_code(played_page):
    """All that the log has after its first step."""
    page = played_page
    risen = {page.report["sites"][row["site"]]["title"]: row["risen_bytes"] for row in page.report["growth_lines"]}
    assert list(risen) == [page.site("log_loss")["title"]]
    assert {row[0]: row[3] for row in page.rows("growth-table")} == {title: size(bytes) for title, bytes in risen.items()}


def test_summary_names_the_leaking_line_and_its_code(training):
    summary = training.browser.text("#findings")
    assert training.site("log_loss")["title"] in summary and "kept.append(cuda.allocate(1 << 20))" in summary
    assert f"Still allocated at exit: {size(40 * MIB)} in 40 blocks" in summary
    assert f"Peak of device 0: {size(sum(PEAK.values()))}" in summary


def test_graph_switches_between_its_measures(training):
    expected = {"live": (None, None, size(40 * MIB)), "peak": tuple(map(size, PEAK.values())),
                "allocated": (size(64 * MIB), size((39 * 8 + 100) * MIB), size(40 * MIB)),
                "calls": ("1 call", "40 calls", "40 calls")}
    for name, values in expected.items():
        training.measure(name)
        assert tuple(map(training.value_of, PEAK)) == values, name
    training.no_trouble()


def test_click_on_the_timeline_shows_who_held_memory_then(played_page):
    page = played_page
    assert page.browser.evaluate("document.querySelector('#measures input[value=moment]').disabled")
    page.moment_at(394_000_000)  # in the last of 40 steps, with its activations, before its log
    assert page.browser.text("#reading").startswith(f"At 392 ms: {size((64 + 39 + 8) * MIB)}, most by ")
    assert [page.value_of(name) for name in PEAK] == [size(64 * MIB), size(8 * MIB), size(39 * MIB)]
    page.moment_at(1_500_000)
    assert page.value_of("log_loss") is None and page.value_of("weights") == size(64 * MIB)
    page.no_trouble()


def test_a_click_without_a_pointer_chooses_a_moment(played_page):
    """As assistive technology clicks: in the middle of the run."""
    page = played_page
    page.browser.evaluate("""(() => {
        const catcher = document.querySelector("#timeline .catcher"), box = catcher.getBoundingClientRect();
        const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
        catcher.dispatchEvent(new MouseEvent("click", { bubbles: true, ...at })); })()""")
    assert not page.browser.evaluate("document.querySelector('#measures input[value=moment]').disabled")
    assert page.browser.text("#reading").startswith("At ")
    page.no_trouble()


def shown_stretch(page):
    return page.browser.text("#span-shown")


def test_a_stretch_dragged_over_is_shown_larger_and_moments_in_it_can_be_chosen(played_page):
    page, b = played_page, played_page.browser
    assert shown_stretch(page) == ""
    end = page.report["process"]["duration_ns"]
    b.drag("#timeline .catcher", 100e6 / end, 200e6 / end)
    (start, stop) = map(int, re.match(r"(\d+) ms to (\d+) ms, ", shown_stretch(page)).groups())
    assert abs(start - 100) <= 1 and abs(stop - 200) <= 1  # to a pixel
    assert page.value_of("log_loss") == size(40 * MIB), "a drag chooses no moment"
    b.click("#timeline .catcher", (154 - start) / (stop - start))  # with the activations of step 15
    assert [page.value_of(name) for name in PEAK] == [size(64 * MIB), size(8 * MIB), size(15 * MIB)]
    b.click("#whole-run")
    assert shown_stretch(page) == ""
    page.no_trouble()


def test_the_stretch_is_changed_by_buttons_and_keys(played_page):
    page, b = played_page, played_page.browser

    def disabled():
        return b.evaluate("[...document.querySelectorAll('#span button')].filter((one) => one.disabled).map((one) => one.id).join()")

    assert disabled() == "zoom-out,earlier,later,whole-run"
    b.click("#zoom-in")
    assert shown_stretch(page).endswith(", 33.3% of the run") and disabled() == ""
    b.click("#earlier")
    b.click("#earlier")
    b.click("#earlier")
    assert shown_stretch(page).startswith("0.0 ms to ") and disabled() == "earlier"
    b.click("#later")
    b.click("#zoom-out")
    assert disabled() == "zoom-out,earlier,later,whole-run"
    b.evaluate("document.querySelector('#timeline .catcher').focus()")
    b.press("p", "+", "+")  # around the peak
    assert shown_stretch(page).endswith(", 11.1% of the run")
    start, stop = map(float, re.match(r"([\d.]+) ms to ([\d.]+) ms, ", shown_stretch(page)).groups())
    assert start < 202 < stop
    b.press("Home")  # out of sight: the stretch moves there
    assert b.evaluate("document.activeElement.ariaValueNow") == "0" and shown_stretch(page).startswith("0.0 ms to ")
    b.press("0")
    assert shown_stretch(page) == "" and b.evaluate("document.activeElement.getAttribute('role')") == "slider"
    for _ in range(12):
        b.press("+")
    assert "zoom-in" in disabled()
    page.no_trouble()


def test_times_of_a_long_run_are_told_apart_when_it_is_zoomed(gmt, chromium):
    """Six hours of 2,160 steps of ten seconds."""
    recording = played(2160, 10**9).write(gmt.folder / "long.gmt")
    page = Page(chromium, write_page(gmt, recording), gmt.rendered(recording))
    for _ in range(4):
        ticks = chromium.evaluate("[...document.querySelector('#timeline .axis').querySelectorAll('text')]"
                                  ".map((one) => one.textContent)")
        assert len(ticks) >= 2 and len(set(ticks)) == len(ticks)
        chromium.click("#zoom-in")
    assert re.match(r"2:5\d:\d\d(\.\d+)? to 3:0\d:\d\d", shown_stretch(page))
    page.no_trouble()


def test_the_peak_is_on_the_timeline_with_its_holders(training):
    (peak,) = [row for row in training.report["peaks"] if row["space"] == "device"]
    training.browser.evaluate("document.querySelector('#timeline .catcher').focus()")
    training.browser.press("p")
    assert f": {size(peak['bytes'])}, most by" in training.browser.text("#reading")
    for row in peak["sites"]:
        title = training.report["sites"][row["site"]]["title"]
        assert training.value_of(title.split(" in ")[1]) == size(row["bytes"])
    training.browser.press("ArrowRight")
    assert training.value_of("activations") in (None, size(8 * MIB))  # given back; the next step may have begun


def test_keys_move_through_the_timeline(training):
    b = training.browser
    b.evaluate("document.querySelector('#timeline .catcher').focus()")
    b.press("Home")
    assert b.evaluate("document.activeElement.ariaValueNow") == "0"
    b.press("ArrowRight", "ArrowRight")
    assert b.evaluate("document.activeElement.ariaValueNow") == "2"
    b.press("End")
    assert b.evaluate("document.activeElement.ariaValueText").startswith(f"At ")
    assert training.value_of("log_loss") == size(40 * MIB)


def test_search_says_how_much_matched(training):
    b = training.browser
    training.measure("peak")
    b.click("#wanted")
    b.type("activ")
    assert b.text("#matched") == f"{100 * 100 / 184:.1f}% ({size(100 * MIB)}) matched"
    assert {label.split(",")[0].split(" in ")[1] for label in b.evaluate(
        "[...document.querySelectorAll('#graph .hit')].map((one) => one.ariaLabel)")} == {"activations"}
    b.evaluate("document.querySelector('#wanted').value = ''")
    b.click("#wanted")
    b.type("/(weights|log_loss)$/")
    assert b.text("#matched") == f"{100 * 84 / 184:.1f}% ({size(84 * MIB)}) matched"
    b.type("(")
    assert "no regular expression" in b.text("#matched")
    training.no_trouble()


def test_zoom_by_click_and_by_keys(training):
    b = training.browser
    training.measure("peak")
    whole = training.frames()
    title = training.site("activations")["title"]
    b.click(f"#graph .frame[aria-label^='{title}']")
    assert training.value_of("weights") is None and training.value_of("activations") == size(100 * MIB)
    assert b.evaluate("document.activeElement.style.width") == "100%"
    b.press("Escape")
    assert training.frames() == whole
    b.press("ArrowDown", "ArrowDown", "ArrowDown")
    assert b.evaluate("document.activeElement.ariaLevel") == "4"
    b.press("ArrowRight", "Enter")
    zoomed = b.evaluate("document.activeElement.ariaLabel")
    assert b.evaluate("document.activeElement.style.width") == "100%" and zoomed.split(",")[0] in whole
    b.click("#whole-graph")
    assert training.frames() == whole
    training.no_trouble()


def test_what_is_too_narrow_to_draw_stands_together_in_one_box(gmt, chromium):
    done = gmt.python("""
        import cuda
        cuda.init()
        spaces = {"cuda": cuda}
        for number in range(1000):
            exec(f"def small_{number}():\\n    return cuda.allocate(4096)", spaces)
        for number in range(1000):
            spaces[f"small_{number}"]()
        """)
    page = Page(chromium, write_page(gmt, done.recording), gmt.rendered(done.recording))
    (title,) = [title for title in page.frames() if title.endswith(" narrower")]
    assert page.frames()[title][0] == size(1000 * 4096) and title == "1,000 narrower"
    assert page.value_of("small_7") is None
    chromium.evaluate("document.querySelector('#wanted').focus()")
    chromium.type("small_7")
    share = sum(str(number).startswith("7") for number in range(1000)) / 1000
    assert chromium.text("#matched").startswith(f"{100 * share:.1f}% ")
    assert "narrower" in chromium.evaluate("document.querySelector('#graph .hit').ariaLabel")
    chromium.click("#graph .hit")
    assert chromium.evaluate("document.activeElement.style.width") == "100%"
    page.no_trouble()


def test_printed_it_is_light_and_without_controls(training):
    b = training.browser
    training.open(1280, dark=True)
    b.send("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    ground = b.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert min(int(number) for number in re.findall(r"\d+", ground)) > 200
    assert not b.evaluate("document.querySelector('.controls').offsetHeight || document.querySelector('#theme').offsetHeight")
    assert b.evaluate("document.querySelector('#sites-table th button').offsetHeight")
    b.send("Emulation.setEmulatedMedia", media="")


def test_tables_sort_by_any_column(training):
    b = training.browser
    for column, name in ((3, "bytes_at_peak"), (4, "allocated_bytes")):
        heading = f"#sites-table th:nth-child({column + 1}) button"
        for order in ("descending", "ascending"):
            b.click(heading)
            assert b.evaluate(f"document.querySelector('{heading}').parentNode.ariaSort") == order
            values = sorted((site[name] for site in training.report["sites"]), reverse=order == "descending")
            assert [row[column] for row in training.rows("sites-table")] == [size(v) if v else "0 B" for v in values]


def test_click_on_a_site_marks_it_in_the_graph(training):
    b = training.browser
    b.click(f"#sites-table tr[data-row='{training.site('weights')['id']}'] button")
    assert b.text("#sites-table tr.chosen").startswith(training.site("weights")["title"])
    hit = b.evaluate("[...document.querySelectorAll('#graph .hit')].map((one) => one.ariaLabel)")
    assert any(label.startswith(training.site("weights")["title"]) for label in hit)
    assert training.browser.text("#matched").startswith(f"{training.site('weights')['title']}: ")
    assert "weights" in b.text("#node")


def test_all_frames_can_be_shown(training):
    b = training.browser
    assert any(title.startswith("… ") for title in training.frames())
    b.click("#every-frame")
    titles = training.frames()
    assert not any(title.startswith("… ") for title in titles)
    assert any("ffi_call" in title or "ctypes" in title for title in titles)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_fits_the_screen_in_light_and_dark(training, width, dark):
    training.open(width, dark)
    b = training.browser
    assert b.evaluate("document.documentElement.scrollWidth") == width
    ground = [int(number) for number in re.findall(r"\d+", b.evaluate("getComputedStyle(document.documentElement).backgroundColor"))]
    assert (sum(ground) < 384) == dark
    b.click("#theme")
    other = [int(number) for number in re.findall(r"\d+", b.evaluate("getComputedStyle(document.documentElement).backgroundColor"))]
    assert (sum(other) < 384) != dark
    training.no_trouble()


def test_every_control_has_a_name_and_is_reached_by_keyboard(training):
    b = training.browser
    nameless = b.evaluate("""[...document.querySelectorAll("button, input, select, [tabindex]")].filter((one) =>
        !(one.innerText || "").trim() && !one.ariaLabel && !(one.labels || []).length && !one.getAttribute("aria-labelledby"))
        .map((one) => one.outerHTML)""")
    assert nameless == []
    reached = set()
    b.evaluate("document.activeElement.blur()")
    for _ in range(200):
        b.press("Tab")
        reached.add(b.evaluate("(document.activeElement.id || document.activeElement.className.baseVal || document.activeElement.className)"))
    assert {"theme", "group", "catcher", "wanted", "every-frame"} <= reached
    assert any(str(name).startswith("frame") for name in reached)


def test_is_one_file_that_asks_for_nothing(training):
    text = training.path.read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert policy.startswith("default-src 'none'; ")
    for tag in ("script", "style"):
        (source,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        assert f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'" in policy
    assert not re.search(r"<(link|img|iframe|object|embed)\b|\bsrc=|@import|url\(", text.split('<script type="application/json"')[0])
    assert "Redistribution and use in source and binary forms" in text
    entries = training.browser.evaluate("performance.getEntriesByType('resource').length")
    assert entries == 0


HOSTILE = ["</script <!--<script ", "</script><script>window.broken = 1</script>", "<!--<script>", "<img src=x onerror=window.broken=2>",
           "\u2028window.broken=3\u2029", "]]>{{constructor}}&lt;b&gt;", "\"'`${window.broken=4}\\"]


def test_names_in_a_recording_cannot_run_as_script(gmt, chromium):
    done = gmt.python("""
        import sys
        sys.path.insert(0, %r)
        import cuda
        import gpumemtrace
        cuda.init()
        for name in %r:
            spaces = {"cuda": cuda}
            exec(compile("def f(): return cuda.allocate(1 << 20)", "/tmp/" + name.replace("/", "|") + ".py", "exec"), spaces)
            f = spaces["f"]
            f.__code__ = f.__code__.replace(co_name=name, **({"co_qualname": name} if sys.version_info >= (3, 11) else {}))
            with gpumemtrace.phase(name):
                f()
        """ % (str(ROOT / "python"), HOSTILE))
    page = Page(chromium, write_page(gmt, done.recording), gmt.rendered(done.recording))
    assert chromium.evaluate("window.broken") is None
    assert chromium.evaluate("document.scripts.length") == 2 and chromium.evaluate("document.images.length") == 0
    assert [row["name"] for row in page.report["phases"]] == HOSTILE
    texts = [re.sub(r"\s", "", text) for text in chromium.texts("#phases-table td:first-child")]
    assert texts == [re.sub(r"\s", "", name) for name in HOSTILE]
    sites = "".join(re.sub(r"\s", "", text) for text in chromium.texts("#sites-table td:first-child"))
    assert all(re.sub(r"\s", "", name) in sites for name in HOSTILE[:3])
    chromium.click("#sites-table tbody button")
    page.no_trouble()
    # What got in all the same would be stopped by the policy.
    chromium.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.broken=5\">')")
    chromium.evaluate("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.broken=6'}))")
    assert chromium.evaluate("new Promise((done) => setTimeout(() => done(window.broken), 100))") is None


def test_tensors_fragments_and_an_out_of_memory_are_shown(gmt, chromium):
    done = gmt.python("""
        from caching import Allocator
        allocator = Allocator()
        def keep():
            return allocator.malloc(0, 2 << 20, 0)
        def pass_by():
            return allocator.malloc(0, 6 << 20, 0)
        def huge():
            return allocator.malloc(0, 900 << 20, 0)
        kept = []
        for _ in range(10):
            temporary = [pass_by() for _ in range(3)]
            kept.append(keep())
            for one in temporary:
                allocator.free(one)
        huge()
        """, env=stand_in.environment(SIMGPU_MEMORY="512M", SIMGPU_CONTEXT="16M"), status=None)
    page = Page(chromium, write_page(gmt, done.recording), gmt.rendered(done.recording))
    oom = page.report["ooms"][-1]
    summary = chromium.text("#findings")
    assert "Out of memory" in summary and size(900 * MIB) in summary and oom["verdict"] in summary
    assert oom["advice"] is None or oom["advice"] in summary
    assert [row[2] for row in page.rows("ooms-table")] == [size(row["requested_bytes"]) for row in page.report["ooms"]]
    assert len(chromium.texts("#timeline .oom")) == len(page.report["ooms"])
    (device,) = page.report["fragmentation"]
    (framework,) = device["frameworks"]
    layouts = [framework["at_peak"], framework]
    assert len(chromium.texts("#fragmentation .segments svg")) == sum(len(row["segments"]) for row in layouts if row["reserved_bytes"])
    assert size(framework["stranded_bytes"]) in chromium.text("#fragmentation")
    assert "keep" in chromium.text("#fragmentation table")
    assert chromium.evaluate("document.querySelector('#group').selectedOptions[0].text").startswith("tensors on device 0")
    page.no_trouble()


# Of how many events; the whole measure is 10 million.
EVENTS = int(os.environ.get("PAGE_EVENTS") or 1_000_000)


def test_long_recordings_give_small_pages_that_open_at_once(gmt, chromium, compiled):
    churn = compiled("churn.c", SIMGPU / "libcuda.so.1", "-lpthread", "-rdynamic")
    done = gmt.run(churn, EVENTS, 1, env={"SIMGPU_MEMORY": "64G"}, timeout=1200)
    path = write_page(gmt, done.recording)
    assert path.stat().st_size < 8 << 20
    page = Page(chromium, path, done.report)
    seconds = min(page.open() for _ in range(3))
    print(f"{EVENTS} events: {path.stat().st_size} bytes, opened in {seconds:.2f} s")
    assert seconds < 2
    (peak,) = page.report["peaks"]
    chromium.evaluate("document.querySelector('#timeline .catcher').focus()")
    chromium.press("p")
    assert size(peak["bytes"]) in chromium.text("#reading")
    moments = json.loads(re.search(r'<script type="application/json" id="recording">(.*?)</script>', path.read_text(), re.S).group(1))[
        "timeline"]["spaces"][0]["moments"]
    assert max(row[1] for row in moments) == peak["bytes"] and len(moments) <= 4096
    page.no_trouble()


def test_a_bounded_recording_says_where_its_picture_begins(gmt, chromium, compiled):
    churn = compiled("churn.c", SIMGPU / "libcuda.so.1", "-lpthread", "-rdynamic")
    done = gmt.run(churn, 1_000_000, 1, env={"SIMGPU_MEMORY": "64G", "GPUMEMTRACE_MAX_TRACE": "2M"})
    page = Page(chromium, write_page(gmt, done.recording), done.report)
    assert "Older events were dropped from the recording: the picture begins at" in chromium.text("#timeline-notes")
    assert page.rows("spaces")[0][1] == size(page.report["spaces"][0]["peak_bytes"])
    chromium.evaluate("document.querySelector('#timeline .catcher').focus()")
    chromium.press("End")
    assert f": {size(page.report['spaces'][0]['live_bytes'])}, most by" in chromium.text("#reading")
    page.no_trouble()


def test_a_program_whose_every_request_failed_has_a_page(gmt, chromium):
    done = gmt.python("""
        import cuda
        cuda.init()
        try:
            cuda.allocate(1 << 40)
        except cuda.CudaError:
            pass
        """)
    page = Page(chromium, write_page(gmt, done.recording), gmt.rendered(done.recording))
    assert "Out of memory" in chromium.text("#findings") and "1.00 TiB" in chromium.text("#findings")
    assert not chromium.evaluate("document.querySelector('#graphs').offsetHeight")
    page.no_trouble()


def test_page_to_standard_output_is_the_same(gmt):
    done = gmt.run(sys.executable, ROOT / "tests" / "cases" / "cache_per_shape.py", env={"GPUMEMTRACE_QUIET": "1"})
    assert gmt.tool("report", "--html", done.recording).stdout == write_page(gmt, done.recording).read_text()
