"""docs/reading-a-report.md keeps to the truth: its examples are what the programs named there print, but for times."""
import re
import sys

import pytest
import stand_in
from conftest import PROGRAMS, ROOT

PAGE = (ROOT / "docs/reading-a-report.md").read_text()
EXAMPLES = re.findall(r"^<!-- (tests/cases/\w+\.py)(.*) -->\n((?:    .*\n|\n(?=    ))+)", PAGE, re.M)
TIME = r"[\d.]+ (ms|s|min|h|days?)( \d+ (s|min|h))?"


def plain(text):
    """The lines without what differs from run to run: times, rates, addresses; and without the columns."""
    for pattern, name in [(r"[\d.]+ [KMGT]?i?B/s", "RATE"), (r"[\d.]+ [KMGT]?i?B more since", "SIZE more since"),
                          (r"\d+% sure", "SURE"), (r"0x[0-9a-f]+", "ADDRESS"), (TIME, "TIME")]:
        text = re.sub(pattern, name, text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def settings(words, folder):
    found = dict(word.split("=") for word in words.split() if "=" in word)
    if "suppressed" in words:
        (rule,) = re.findall(r"`(leak:[^`]*)`", PAGE)
        (folder / "plans.supp").write_text(rule + "\n")
        found["GPUMEMTRACE_SUPPRESSIONS"] = str(folder / "plans.supp")
    return found


# A machine can be too busy for a few dozen turns to be even, and then nothing is told of growth.
TRIES = 5


@pytest.mark.parametrize("program", sorted({program for program, _, _ in EXAMPLES}))
def test_examples_are_what_the_program_prints(gmt, program, tmp_path):
    examples = [(words, text) for name, words, text in EXAMPLES if name == program]
    if sys.version_info >= (3, 12) and any("comp>" in text for _, text in examples):
        pytest.skip("the page's lines name comprehensions, which are no functions of their own since Python 3.12")
    asks_for_growth = any("RATE" in line for _, text in examples for line in plain(text))
    for _ in range(TRIES):
        done = gmt.run(sys.executable, ROOT / program, env={
            "PYTHONPATH": f"{PROGRAMS}:{ROOT / 'python'}", **stand_in.environment(), **settings(examples[0][0], tmp_path)})
        if done.report["growth"] or not asks_for_growth:
            break
    printed = plain(done.text)
    for _, text in examples:
        wanted = plain(text)
        starts = [at for at, line in enumerate(printed) if line == wanted[0]]
        assert any(printed[at:at + len(wanted)] == wanted for at in starts), \
            "\n".join(["wanted:", *wanted, "", "printed:", *printed])


def test_every_part_of_the_text_report_has_a_section():
    keys = {key for title in re.findall(r"^## .*\((.*)\)$", PAGE, re.M) for key in re.findall(r"`(\w+)`", title)}
    source = (ROOT / "src/report/json.c").read_text() + (ROOT / "src/report/json_peaks.c").read_text()
    assert {"ooms", "spaces", "growth", "growth_lines", "leaks", "peaks", "framework_peaks", "whole_peak", "fragmentation",
            "phases", "memory_map", "sites"} <= keys
    assert all(f'"{key}"' in source or key in ("fragmentation", "memory_map") for key in keys), keys
