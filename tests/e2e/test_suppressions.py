"""Suppressions: named by the environment in the traced program, by an option in the tool, with the same answer."""
import json

PROGRAM = """
    import os, cuda
    cuda.init()

    def cache():
        return cuda.allocate(3 << 20)

    def leak():
        return cuda.allocate(5 << 20)

    kept = [cache(), leak()]
    os.chdir("/")
"""


def test_the_library_and_the_tool_leave_out_the_same(gmt):
    rules = gmt.folder / "my.supp"
    rules.write_text("# of this program\nleak:^cache$  # by design\n")
    done = gmt.python(PROGRAM, env={"GPUMEMTRACE_SUPPRESSIONS": "my.supp"}, cwd=gmt.folder)
    leaks = done.report["leaks"]
    assert (leaks["live_bytes"], leaks["suppressed_bytes"], leaks["suppressed_blocks"]) == (5 << 20, 3 << 20, 1)
    (row,) = leaks["suppressed"]
    assert (row["pattern"], row["reason"], row["file"], row["line"]) == ("^cache$", "by design", str(rules), 2)
    assert "suppressed: 3.0 MiB in 1 block" in done.text and "at my.supp:2: by design" in done.text
    by_option = json.loads(gmt.tool("report", "--json", "--suppressions", "my.supp", done.recording, cwd=gmt.folder).stdout)
    by_variable = json.loads(gmt.tool("report", "--json", done.recording, env={"GPUMEMTRACE_SUPPRESSIONS": rules}).stdout)
    assert by_option["leaks"] == by_variable["leaks"] == leaks
    without = gmt.rendered(done.recording)["leaks"]
    assert (without["live_bytes"], without["suppressed_bytes"], without["suppressed"]) == (8 << 20, 0, [])


def test_a_bad_line_is_named_once_and_the_others_count(gmt):
    rules = gmt.folder / "my.supp"
    rules.write_text("leak:cache\nthread:cache\n")
    done = gmt.python(PROGRAM, env={"GPUMEMTRACE_SUPPRESSIONS": rules, "GPUMEMTRACE_QUIET": "1"})
    sentence = f"{rules}:2 is no suppression: not of the form leak:PATTERN"
    assert done.err == f"gpumemtrace: {sentence}\n"
    assert done.report["leaks"]["suppressed_bytes"] == 3 << 20
    assert sentence in done.report["notes"]
    tool = gmt.tool("report", "--json", "--suppressions", rules, done.recording)
    assert tool.stderr == f"gpumemtrace: {sentence}\n"
    assert json.loads(tool.stdout)["leaks"] == done.report["leaks"]


def test_a_file_that_is_not_there_is_named_and_hides_nothing(gmt):
    done = gmt.python(PROGRAM, env={"GPUMEMTRACE_SUPPRESSIONS": "/nowhere/x", "GPUMEMTRACE_QUIET": "1"})
    assert done.err == "gpumemtrace: cannot read suppressions from /nowhere/x: No such file or directory\n"
    assert done.report["leaks"]["live_bytes"] == 8 << 20
    assert gmt.tool("report", "--suppressions", "/nowhere/x", done.recording, status=2).stderr == \
        "gpumemtrace: /nowhere/x: No such file or directory\n"
