"""Manual pages, completions and doctor: made from the tool's own tables, and right about the programs they look at."""
import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import CC, ROOT, SANITIZE

COMMANDS = ["run", "report", "diff", "merge", "export", "top", "doctor", "completion"]


def needs(name):
    return shutil.which(name) or pytest.skip(f"{name} is not installed")


def options(gmt, command):
    return re.findall(r"^ +(?:-\w, )?(--[\w-]+)", gmt.tool(command, "--help").stdout, re.M)


def test_every_command_of_the_help_is_listed_for_the_manual(gmt):
    assert gmt.tool("help-man", "--list").stdout.split() == re.findall(r"^  (\w+)  +[A-Z]", gmt.tool("--help").stdout, re.M)
    assert sorted(gmt.tool("help-man", "--list").stdout.split()) == sorted(COMMANDS)


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_manual_pages_are_rendered_without_a_complaint(gmt, tmp_path, command):
    page = tmp_path / "page.1"
    page.write_text(gmt.tool("help-man", *([command] if command else [])).stdout)
    done = subprocess.run([needs("mandoc"), "-T", "lint", "-W", "warning", page], capture_output=True, text=True)
    complaints = [line for line in done.stdout.splitlines() if "missing date" not in line]
    assert complaints == []
    text = subprocess.run(["mandoc", "-T", "ascii", page], capture_output=True, text=True, check=True).stdout
    text = re.sub(r".\x08", "", text)
    for option in options(gmt, command) if command else []:
        assert option in text
    assert "EXIT STATUS" in text


def test_the_manual_names_every_variable_that_the_library_reads(gmt):
    source = (ROOT / "src/preload/variables.h").read_text()
    read = set(re.findall(r'X\("(GPUMEMTRACE_\w+)"', source)) - {"GPUMEMTRACE_SESSION"}
    assert "GPUMEMTRACE_OUTPUT" in read
    assert set(re.findall(r"^\.BR (GPUMEMTRACE_\w+)", gmt.tool("help-man").stdout, re.M)) == read
    assert set(re.findall(r"^\.BR (GPUMEMTRACE_\w+)", gmt.tool("help-man", "--environment").stdout, re.M)) == read


def script(gmt, shell):
    path = gmt.folder / f"completion.{shell}"
    path.write_text(gmt.tool("completion", shell).stdout)
    return path


def bash(gmt, *words):
    """What bash offers for the last of `words`."""
    program = ('source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gpumemtrace; printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run([needs("bash"), "-c", program, script(gmt, "bash"), *words], capture_output=True, text=True,
                          check=True, cwd=gmt.folder)
    return done.stdout.split("\n")[:-1]


def fish(gmt, line):
    done = subprocess.run([needs("fish"), "--no-config", "-c", f"source {script(gmt, 'fish')}; complete -C '{line}'"],
                          capture_output=True, text=True, check=True, env={**os.environ, "HOME": str(gmt.folder)})
    assert done.stderr == ""
    return [row.split("\t")[0] for row in done.stdout.splitlines()]


def test_bash_completes_commands_options_values_and_files(gmt):
    (gmt.folder / "train.gmt").touch()
    assert sorted(bash(gmt, "gpumemtrace", "")) == sorted([*COMMANDS, "--help", "--version"])
    assert bash(gmt, "gpumemtrace", "exp") == ["export"]
    for command in COMMANDS:
        assert sorted(bash(gmt, "gpumemtrace", command, "--")) == sorted(options(gmt, command))
    assert bash(gmt, "gpumemtrace", "export", "--format", "sp") == ["speedscope"]
    assert bash(gmt, "gpumemtrace", "export", "-f", "sq") == ["sqlite"]
    assert bash(gmt, "gpumemtrace", "run", "--stacks", "=", "mi") == ["mixed"]
    assert bash(gmt, "gpumemtrace", "report", "trai") == ["train.gmt"]
    assert bash(gmt, "gpumemtrace", "run", "--", "prog", "--f") == [""]


def test_fish_completes_commands_options_and_values(gmt):
    assert set(COMMANDS) <= set(fish(gmt, "gpumemtrace "))
    assert set(options(gmt, "diff")) - {"--help"} <= set(fish(gmt, "gpumemtrace diff --"))
    assert fish(gmt, "gpumemtrace export --format spee") == ["speedscope"]


def section_of(zsh_script, command):
    """What it says of one command."""
    (section,) = re.findall(rf"^    {command}\)\n(.*?)^        ;;", zsh_script, re.M | re.S)
    return section


def test_zsh_accepts_its_script(gmt):
    path = script(gmt, "zsh")
    subprocess.run([needs("zsh"), "-n", path], check=True)
    done = subprocess.run(["zsh", "-f", "-c", f"autoload -U compinit; compinit -D -u; source {path}; "
                           "print -r -- $_comps[gpumemtrace]"], capture_output=True, text=True, check=True,
                          env={**os.environ, "HOME": str(gmt.folder)})
    assert (done.stdout, done.stderr) == ("_gpumemtrace\n", "")
    for command in COMMANDS:
        for option in options(gmt, command):
            assert option in section_of(path.read_text(), command)


class Doctor:
    def __init__(self, gmt):
        self.gmt = gmt

    def __call__(self, *program, status=None, **env):
        done = self.gmt.tool("doctor", *(["--", *program] if program else []), status=status, env=env)
        assert done.stderr == ""
        rows = [line.split(None, 2) for line in done.stdout.splitlines()]
        return done.returncode, {name: (finding, text) for finding, name, text in rows}


@pytest.fixture
def doctor(gmt):
    if SANITIZE:
        pytest.skip("what a sanitizer's runtime says at a start is no finding")
    return Doctor(gmt)


def test_all_is_well_with_a_driver(doctor):
    status, found = doctor()
    assert status == 0
    assert {finding for finding, _ in found.values()} == {"ok"}
    assert found["driver"][1].endswith("1 device")


def test_without_a_driver_the_simulated_one_is_named(doctor):
    status, found = doctor(LD_LIBRARY_PATH="/nowhere")
    assert status == 0 and found["driver"][0] == "note" and "--simulate" in found["driver"][1]


def test_a_driver_that_refuses_is_quoted(doctor):
    _, found = doctor(SIMGPU_DEVICES=0)
    assert found["driver"][0] == "note" and ("0 devices" in found["driver"][1] or "cuInit gives" in found["driver"][1])


@pytest.mark.parametrize("env, name, words", [
    ({"GPUMEMTRACE_LIBRARY": "/nowhere.so"}, "library", "GPUMEMTRACE_LIBRARY"),
    ({"GPUMEMTRACE_OUTPUT": "/no/such/folder/x.%p"}, "output", "/no/such/folder: No such file"),
    ({"GPUMEMTRACE_DISABLE": "1"}, "settings", "Unset it")])
def test_what_is_bad_is_said_with_what_to_do(doctor, env, name, words):
    status, found = doctor(status=1, **env)
    assert found[name][0] == "BAD" and words in found[name][1]


def test_a_library_that_does_not_load_is_found(doctor, tmp_path):
    broken = tmp_path / "libgpumemtrace.so"
    broken.write_text("not a library")
    _, found = doctor(status=1, GPUMEMTRACE_LIBRARY=str(broken))
    assert found["preload"][0] == "BAD" and str(broken) in found["preload"][1]


def test_an_ordinary_program_is_reached(doctor):
    status, found = doctor("/bin/ls")
    assert status == 0
    assert found["reach"] == ("ok", "LD_PRELOAD reaches it") and found["linking"][0] == "ok" and "rights" not in found


@pytest.fixture
def build(compiled, tmp_path):
    """build(flags): a program that does nothing."""
    def make(*flags):
        source = tmp_path / "main.c"
        source.write_text("int main(void) { return 0; }\n")
        return compiled(source, *flags)

    return make


@pytest.mark.parametrize("flag, part", [("-static", "libc.a"), ("-static-pie", "rcrt1.o")])
def test_a_static_program_is_found_out(doctor, build, flag, part):
    where = subprocess.run([CC, f"-print-file-name={part}"], capture_output=True, text=True, check=True).stdout.strip()
    if where == part:
        pytest.skip(f"the C library has no {part}")
    _, found = doctor(build(flag), status=1)
    assert found["linking"][0] == "BAD" and "static" in found["linking"][1] and "reach" not in found


def test_a_program_of_musl_is_found_out(doctor, build):
    _, found = doctor(build("-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"), status=1)
    assert found["linking"][0] == "BAD" and "musl" in found["linking"][1]


@pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer's own runtime is preloaded too, and made for glibc")
def test_a_program_of_musl_runs_unharmed_and_is_told_of(gmt, tmp_path):
    """The library would end it at the start."""
    if not shutil.which("musl-gcc"):
        pytest.skip("no musl here")
    source, output = tmp_path / "main.c", tmp_path / "program"
    source.write_text("int puts(const char *);\nint main(void) { puts(\"unharmed\"); return 3; }\n")
    subprocess.run(["musl-gcc", str(source), "-o", str(output)], check=True)
    done = gmt.tool("run", "--", output, status=3)
    assert done.stdout == "unharmed\n"
    assert done.stderr.splitlines()[0] == \
        f"gpumemtrace: {output}: uses musl, and the library is made for glibc: it runs unrecorded"


@pytest.mark.parametrize("mode", [0o4755, 0o2755])
def test_a_setuid_program_is_found_out(doctor, build, mode):
    program = build()
    program.chmod(mode)
    _, found = doctor(program, status=1)
    assert found["rights"][0] == "BAD" and "setuid" in found["rights"][1] and "reach" not in found


def test_a_program_that_is_not_there_is_said(doctor):
    _, found = doctor("no-such-program", status=1)
    assert found["program"] == ("BAD", "no-such-program: not found. Give its path, or set PATH.")
    _, found = doctor(str(ROOT / "README.md"), status=1)
    assert found["program"][0] == "BAD" and "neither" in found["program"][1]


def test_a_wrapper_that_leaves_us_behind_is_named(doctor, tmp_path):
    wrapper = tmp_path / "docker"
    wrapper.write_bytes(open("/bin/true", "rb").read())
    wrapper.chmod(0o755)
    _, found = doctor(wrapper, "run", "image", status=1)
    assert found["wrapper"][0] == "BAD" and "behind it" in found["wrapper"][1]


def test_a_script_is_looked_through_to_its_interpreter(doctor, tmp_path):
    script_path = tmp_path / "train"
    script_path.write_text(f"#!/usr/bin/env -S {sys.executable} -u\nraise SystemExit(9)\n")
    script_path.chmod(0o755)
    status, found = doctor(script_path)
    assert status == 0 and f"a script for {sys.executable}" in found["program"][1]
    version = ".".join(map(str, sys.version_info[:3]))
    assert found["python"] == ("ok", f"CPython {version}: its stacks can be read")


def test_each_supported_python_is_recognised(doctor, interpreter):
    _, found = doctor(interpreter, "x.py")
    assert found["python"][0] == "ok", found


def test_the_program_is_not_run(doctor, compiled, tmp_path):
    touched = tmp_path / "touched"
    source = tmp_path / "main.c"
    source.write_text(f'#include <fcntl.h>\nint main(void) {{ return open("{touched}", O_CREAT, 0600) < 0; }}\n')
    status, found = doctor(compiled(source))
    assert status == 0 and not touched.exists()
