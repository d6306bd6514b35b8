"""The README keeps to the truth: variables, folders, commands and make targets that it names exist."""
import re
import subprocess

import pytest
from conftest import ROOT

README = (ROOT / "README.md").read_text()
# Set by `gpumemtrace run` for the library, and no business of a person's.
INTERNAL = {"GPUMEMTRACE_SESSION"}


def test_names_every_variable_that_the_library_reads():
    table = set(re.findall(r"^\| `(GPUMEMTRACE_\w+)` \|", README, re.M))
    read = set(re.findall(r'X\("(GPUMEMTRACE_\w+)"', (ROOT / "src/preload/variables.h").read_text()))
    assert read - INTERNAL == table


# Told of folder by folder.
DIVIDED = {"src", "tools", "tests"}


def test_folders_of_the_layout_are_there_and_none_is_left_out():
    layout = README[README.index("## What is where"):README.index("## Limits")]
    rows = "\n".join(line for line in layout.splitlines() if line.startswith("|"))
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout of git")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [name.split("/") for name in tracked.stdout.split("\0") if "/" in name]
    wanted = {path[0] for path in paths} - DIVIDED
    wanted |= {f"{path[0]}/{path[1]}" for path in paths if path[0] in DIVIDED and len(path) > 2}
    named = set(re.findall(r"`(\.?[\w/]+)`", rows))
    assert wanted <= named, wanted - named
    assert all((ROOT / path).is_dir() for path in named if "/" in path), named


def test_commands_it_shows_are_those_of_the_tool(gmt):
    shown = set(re.findall(r"^    gpumemtrace (\w+)", README, re.M)) - {"report:"}
    help_text = gmt.tool("--help").stdout
    offered = set(re.findall(r"^  (\w+)  +[A-Z]", help_text, re.M))
    assert shown == offered


def test_make_targets_it_names_exist():
    makefiles = "".join(path.read_text() for path in [ROOT / "Makefile", *ROOT.glob("*/*.mk"), *ROOT.glob("*/*/*.mk")])
    for target in set(re.findall(r"`make (\w[\w-]*)", README)):
        assert re.search(rf"^(\w+ )*{target}( \w+)*:", makefiles, re.M), target


def test_line_of_the_sample_report_is_the_demos():
    source = (ROOT / "tools/demo/train.py").read_text().splitlines()
    sample = README.split("## A real report")[1].split("\n## ")[0]
    for number, text in re.findall(r"train\.py:(\d+) in train\n +(\S.*)\n", sample):
        assert source[int(number) - 1].strip() == text
