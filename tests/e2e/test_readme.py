"""The README keeps to the truth: variables, folders, commands and make targets that it names exist."""
import re

from conftest import ROOT

README = (ROOT / "README.md").read_text()
# Set by `gpumemtrace run` for the library, and no business of a person's.
INTERNAL = {"GPUMEMTRACE_SESSION"}


def test_names_every_variable_that_the_library_reads():
    table = set(re.findall(r"^\| `(GPUMEMTRACE_\w+)` \|", README, re.M))
    read = set(re.findall(r'^\s*\{"(GPUMEMTRACE_\w+)"', (ROOT / "src/preload/config.c").read_text(), re.M))
    assert read - INTERNAL == table


def test_folders_of_the_layout_are_there_and_none_is_left_out():
    layout = README[README.index("## What is where"):README.index("## Limits")]
    named = {path for path in re.findall(r"`((?:src|tools|include|tests)[\w/.]*)`", layout)}
    assert all((ROOT / path).exists() for path in named), named
    inside = {f"{top}/{path.name}" for top in ("src", "tools") for path in (ROOT / top).iterdir() if path.is_dir()}
    assert inside <= named, inside - named


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
