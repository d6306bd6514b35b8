"""Names of native frames for recordings made elsewhere: other roots, folders of debug files, debug links."""
import os
import re
import shutil
import subprocess

import pytest
from named_program import (GROW, MIXED, NAMELESS, WHOLE, box, build_id, needs_objcopy, places, record,
                           render, split_debug, whys)


def test_files_are_found_below_another_root(gmt, box):
    path = box()
    recording = record(gmt, path)
    root = gmt.folder / "root"
    (root / path.parent.relative_to("/")).mkdir(parents=True)
    # As a container may have it: a link that is right only inside.
    (root / "opt").mkdir()
    shutil.move(path, root / "opt" / "box")
    (root / path.relative_to("/")).symlink_to("/opt/box")
    assert places(render(gmt, recording)) == NAMELESS
    report = render(gmt, recording, "--sysroot", root)
    assert places(report) == WHOLE
    assert not any(str(path) in note for note in report["notes"])
    # Every command that names functions takes it.
    assert "take_one" in gmt.tool("diff", "--json", "--sysroot", root, recording, recording).stdout


def test_another_file_below_the_root_is_noticed_and_not_misread(gmt, box):
    path = box()
    recording = record(gmt, path)
    shutil.move(path, gmt.folder / "box.first")
    root = gmt.folder / "root"
    inside = root / path.relative_to("/")
    inside.parent.mkdir(parents=True)
    shutil.move(box("-O1", "-DOTHER"), inside)
    report = render(gmt, recording, "--sysroot", root)
    assert places(report) == NAMELESS
    assert whys(report) == {"has changed since the recording"}
    assert f"{inside} has changed since the recording: its functions are shown as offsets." in report["notes"]
    text = gmt.tool("report", "--full", "--sysroot", root, recording).stdout
    assert re.search(r"box\+0x[0-9a-f]+ \(has changed since the recording\)\n", text)


def test_file_that_is_here_counts_also_when_the_root_lacks_it(gmt, box):
    """A root that holds only a part: the build-id proves the rest."""
    recording = record(gmt, box())
    (gmt.folder / "root").mkdir()
    assert places(render(gmt, recording, "--sysroot", gmt.folder / "root")) == WHOLE


def test_lines_of_source_come_from_the_other_root_too(gmt):
    done = gmt.python("import cuda\ncuda.init()\nkept = cuda.allocate(4096)  # inside\n")
    root = gmt.folder / "root"
    inside = root / done.script.relative_to("/")
    inside.parent.mkdir(parents=True)
    shutil.move(done.script, inside)
    done.script.write_text("one\ntwo\nthree, outside\n")
    os.utime(done.script, (1, 1))
    text = gmt.tool("report", "--sysroot", root, done.recording).stdout
    assert "kept = cuda.allocate(4096)  # inside\n" in text
    assert "outside" not in text
    assert "outside" in gmt.tool("report", done.recording).stdout


def by_build_id(folder, path):
    identity = build_id(path)
    split_debug(path, folder / ".build-id" / identity[:2] / f"{identity[2:]}.debug")


def by_build_id_directly(folder, path):
    identity = build_id(path)
    split_debug(path, folder / identity[:2] / f"{identity[2:]}.debug")


def under_any_name(folder, path):
    shutil.copy(path, folder / "whatever")
    subprocess.run(["objcopy", "--strip-all", path], check=True)
    shutil.copy(path, folder / "stripped")


def by_path(folder, path):
    (folder / path.parent.relative_to("/")).mkdir(parents=True)
    shutil.copy(path, folder / path.relative_to("/"))


@needs_objcopy
@pytest.mark.parametrize("is_here", [True, False], ids=["stripped", "gone"])
@pytest.mark.parametrize("put", [by_build_id, by_build_id_directly, under_any_name, by_path])
def test_debug_files_are_found_in_named_folders(gmt, box, put, is_here):
    path = box()
    folders = [gmt.folder / "empty", gmt.folder / "debug"]
    for folder in folders:
        folder.mkdir()
    put(folders[1], path)
    recording = record(gmt, path)
    if not is_here:
        os.unlink(path)
    elif put is by_path:
        return
    arguments = [word for folder in folders for word in ("--debug-dir", folder)]
    assert places(render(gmt, recording))[0][1:] == (None, None)
    report = render(gmt, recording, *arguments)
    assert places(report) == WHOLE
    assert whys(report) <= {None, "no symbol there"}
    os.chdir(gmt.folder)
    assert places(render(gmt, recording, "--debug-dir", "debug")) == WHOLE


@needs_objcopy
def test_stripped_file_says_so(gmt, box):
    path = box()
    subprocess.run(["objcopy", "--strip-all", path], check=True)
    report = render(gmt, record(gmt, path))
    assert whys(report) == {"stripped, no debug file found"}
    assert report["notes"] == []


def test_copy_of_a_file_without_build_id_is_known_by_size_and_time(gmt, box):
    path = box("-Wl,--build-id=none")
    recording = record(gmt, path)
    folder = gmt.folder / "copies"
    folder.mkdir()
    shutil.move(path, folder / "box")
    status = (folder / "box").stat()
    assert places(render(gmt, recording, "--debug-dir", folder)) == WHOLE
    os.utime(folder / "box", (status.st_atime, int(status.st_mtime)))  # as archives keep it
    assert places(render(gmt, recording, "--debug-dir", folder)) == WHOLE
    os.utime(folder / "box", (status.st_atime, int(status.st_mtime) + 1))
    assert places(render(gmt, recording, "--debug-dir", folder)) == NAMELESS


@needs_objcopy
@pytest.mark.parametrize("folder", [".", ".debug", "elsewhere"])
@pytest.mark.parametrize("flag", ["-Wl,--build-id", "-Wl,--build-id=none"])
def test_debug_link_is_followed_and_checked(gmt, box, folder, flag):
    path = box(flag)
    debug = path.parent / folder / "box.dbg"
    split_debug(path, debug)
    stripped = shutil.copy2(path, gmt.folder / "stripped")
    recording = record(gmt, path)
    arguments = ["--debug-dir", debug.parent] if folder == "elsewhere" else []
    assert places(render(gmt, recording, *arguments)) == WHOLE
    # Another one's debug file, under the same name.
    other = gmt.folder / "other"
    shutil.copy(box("-O0", flag), other)
    shutil.copy2(stripped, path)
    subprocess.run(["objcopy", "--only-keep-debug", other, debug], check=True)
    report = render(gmt, recording, *arguments)
    assert places(report)[0][1:] == (None, None)
    assert whys(report) == {"stripped, no debug file found"}


@pytest.mark.parametrize("option", ["--sysroot", "--debug-dir"])
def test_folder_that_is_none_is_named(gmt, option):
    (gmt.folder / "file").write_text("")
    for value in (gmt.folder / "missing", gmt.folder / "file"):
        done = gmt.tool("report", option, value, "x.gmt", status=2)
        assert re.fullmatch(f"gpumemtrace: {value}: [^\n]+\n", done.stderr)


def test_recording_of_another_host_says_how_to_go_on(gmt, box):
    path = box()
    recording = record(gmt, path)
    host = os.uname().nodename
    other = "x" * len(host)
    os.unlink(path)
    hint = "--sysroot or --debug-dir can say where they are here"
    assert not any(hint in note for note in render(gmt, recording)["notes"])
    data = recording.read_bytes()
    recording.write_bytes(data.replace(bytes([1, len(host)]) + host.encode(), bytes([1, len(host)]) + other.encode()))
    assert any(hint in note and f"({other})" in note for note in render(gmt, recording)["notes"])
    assert not any(hint in note for note in render(gmt, recording, "--debug-dir", gmt.folder)["notes"])


@needs_objcopy
@pytest.mark.skipif(not shutil.which("dwz"), reason="dwz is not here")
def test_debug_information_shared_by_several_files_is_found(gmt, compiled):
    """Distributions move what debug files have in common to a file of its own, named by a link and a build-id."""
    library = shutil.copy(compiled(MIXED / "attention.cc", "-fPIC", "-shared", "-Wl,--build-id"), gmt.folder / "a.so")
    debug, common = gmt.folder / "debug", gmt.folder / "common"
    split_debug(library, debug / "a.debug")
    common.mkdir()
    shutil.copy(debug / "a.debug", debug / "b.debug")
    subprocess.run(["dwz", "-m", common / "shared", "-M", "../common/shared", debug / "a.debug", debug / "b.debug"],
                   check=True)
    if not (common / "shared").exists():
        pytest.skip("this dwz shares nothing of so little")
    recording = gmt.run("/usr/bin/python3", MIXED / "train.py", library).recording

    def innermost():
        return render(gmt, recording, "--debug-dir", debug)["sites"][0]["frames"][0]["function"]

    assert innermost() == GROW
    shutil.move(common / "shared", debug / "whatever")  # known by its build-id alone
    assert innermost() == GROW
    os.unlink(debug / "whatever")
    assert innermost() != GROW
