"""Growth in a recording: the place that grows is named, and no other; per second, and per step where there are steps."""
import re

import pytest
import recording_writer

KIB, MIB = 1 << 10, 1 << 20
KEPT = 256 * KIB
TURN_NS = 3 * 10**6


class Program(recording_writer.Recording):
    """A recording of a program whose turns are equally long: places by the functions' names, and what each of them keeps."""

    def __init__(self):
        super().__init__()
        self.process()
        self.module_frame = self.python("<module>", "/src/serve.py", 99)
        self.frames, self.sites = {}, {}
        self.kept = {}
        self.next_address = 0x7F0000000000

    def frame(self, function):
        if function not in self.frames:
            self.frames[function] = self.python(function, "/src/serve.py", len(self.frames) + 1)
        return self.frames[function]

    def keep(self, size, *functions, time=0):
        """The functions that are on the stack, the innermost first."""
        if functions not in self.sites:
            frames = [self.frame(function) for function in functions]
            self.sites[functions] = self.site(self.stack(*frames, self.module_frame))
        self.kept.setdefault(functions, []).append(self.next_address)
        self.alloc(self.sites[functions], self.next_address, size, time=time)
        self.next_address += (size + 2 * MIB - 1) // (2 * MIB) * 2 * MIB

    def give_back(self, *functions):
        self.free(self.kept[functions].pop(), time=0)


def test_only_the_place_that_keeps_a_block_in_every_third_turn_is_said_to_grow(gmt):
    """The others do what programs do: load weights, fill a cache of plans, gather an epoch's results and give them back."""
    turns = 150
    made = Program()
    for _ in range(20):
        made.keep(4 * MIB, "load")
    plans = set()
    for turn in range(turns):
        made.keep(2 * MIB, "turn", time=TURN_NS)
        if turn * 7 % 24 not in plans:
            plans.add(turn * 7 % 24)
            made.keep(64 * KIB, "plan", "turn")
        made.keep(MIB, "gather", "turn")
        if turn % 3 == 0:
            made.keep(KEPT, "remember", "turn")
        made.give_back("turn")
        if turn % 25 == 24:
            for _ in range(25):
                made.give_back("gather", "turn")
    report = gmt.rendered(made.write(gmt.folder / "serve.gmt"))
    (growing,) = report["growth"]
    site = report["sites"][growing["site"]]
    assert site["title"] == f"serve.py:{made.frame('remember')} in remember" and site["live_bytes"] == turns // 3 * KEPT
    assert growing["bytes_per_second"] == pytest.approx(KEPT / 3 / (TURN_NS / 1e9), rel=0.02)
    assert 0.5 < growing["confidence"] <= 1 and growing["bytes_per_step"] is None


def test_line_that_fifty_handlers_reach_is_said_to_grow_as_one(gmt):
    """Each seldom. Another line puts back what it took, and some of the plans are made once for each handler."""
    handlers, rounds = 50, 6
    made = Program()
    made.keep(64 * MIB, "load")
    plans = set()
    for turn in range(rounds * handlers):
        handler = turn * 7 % handlers
        if handler % 8 not in plans:
            plans.add(handler % 8)
            made.keep(64 * KIB, "plan", f"handle_{handler}")
        made.keep(2 * MIB, "scratch", f"handle_{handler}", time=TURN_NS)
        made.keep(KEPT, "remember", f"handle_{handler}")
        made.give_back("scratch", f"handle_{handler}")
    recording = made.write(gmt.folder / "serve.gmt")
    report = gmt.rendered(recording)
    (line,) = report["growth_lines"]
    sites = [report["sites"][number] for number in line["sites"]]
    assert len(sites) == handlers and line["site"] in line["sites"]
    assert all(site["title"].endswith(" in remember") for site in sites)
    assert sum(site["live_bytes"] for site in sites) == rounds * handlers * KEPT
    assert line["bytes_per_second"] == pytest.approx(KEPT / (TURN_NS / 1e9), rel=0.02)
    assert {row["site"] for row in report["growth"]} <= set(line["sites"])
    text = gmt.tool("report", recording).stdout
    assert "in remember, site" in text and "and 49 more of this line" in text


def test_growth_of_a_program_that_counts_its_steps_is_told_by_the_step(gmt):
    made = Program()
    for step in range(200):
        made.keep(MIB, "remember", time=TURN_NS)
        made.event(recording_writer.STEP, step, time=0)
    recording = made.write(gmt.folder / "train.gmt")
    (growing,) = gmt.rendered(recording)["growth"]
    assert growing["bytes_per_step"] == pytest.approx(MIB, rel=0.02)
    assert re.search(r"^Growing by \S+ [KM]iB a step \(\S+ MiB/s\)", gmt.tool("report", recording).stdout, re.M)
