"""The files that -o and --junit name: whole or as they were, and nothing else is touched."""
import os
import resource
import signal
import stat
import subprocess

import pytest
import recording_writer
from conftest import TOOL

COMMANDS = {"report": ["report", "--json", "RECORDING", "-o"],
            "export": ["export", "-f", "csv", "RECORDING", "-o"],
            "diff": ["diff", "REPORT", "REPORT", "--fail-on", "peak>900T", "--junit"]}


@pytest.fixture(params=COMMANDS)
def write(gmt, request):
    """write(path) writes to it, and is told the status to expect."""
    recording = recording_writer.example().write(gmt.folder / "train.gmt")
    report = gmt.folder / "train.json"
    report.write_text(gmt.tool("report", "--json", recording).stdout)
    words = [{"RECORDING": recording, "REPORT": report}.get(word, word) for word in COMMANDS[request.param]]

    def to(path, status=0, **options):
        return gmt.tool(*words, path, status=status, **options)

    return to


@pytest.fixture
def folder(gmt):
    """Where nothing is but what the test puts there."""
    return gmt.new_folder()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_the_rights_that_the_umask_leaves(write, folder):
    write(folder / "out", preexec_fn=lambda: os.umask(0o027))
    assert stat.S_IMODE((folder / "out").stat().st_mode) == 0o640
    assert names(folder) == ["out"]


def test_a_file_that_is_there_keeps_its_rights(write, folder):
    (folder / "out").write_text("before")
    (folder / "out").chmod(0o604)
    write(folder / "out")
    assert (folder / "out").read_text() != "before"
    assert stat.S_IMODE((folder / "out").stat().st_mode) == 0o604


def no_room():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))


def test_what_cannot_be_written_whole_leaves_what_was_there(write, folder):
    (folder / "out").write_text("before")
    done = write(folder / "out", status=2, preexec_fn=no_room)
    assert done.stderr == f"gpumemtrace: {folder}/out: File too large\n"
    assert (folder / "out").read_text() == "before" and names(folder) == ["out"]


def test_what_cannot_be_written_whole_leaves_what_a_link_leads_to(write, folder):
    (folder / "deep").mkdir()
    (folder / "deep" / "file").write_text("before")
    (folder / "deep" / "link").symlink_to("file")
    (folder / "out").symlink_to("deep/link")
    write(folder / "out", status=2, preexec_fn=no_room)
    assert (folder / "deep" / "file").read_text() == "before" and names(folder / "deep") == ["file", "link"]


def test_a_file_of_two_names_stays_one(write, folder):
    (folder / "out").write_text("before")
    os.link(folder / "out", folder / "other")
    write(folder / "out")
    assert (folder / "other").samefile(folder / "out") and (folder / "out").read_text() != "before"


def test_a_file_keeps_its_owner_and_group(write, folder):
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    (folder / "out").write_text("before")
    os.chown(folder / "out", 1234, 2345)
    write(folder / "out")
    there = (folder / "out").stat()
    assert (there.st_uid, there.st_gid) == (1234, 2345) and (folder / "out").read_text() != "before"


def test_a_file_that_is_mounted_there_is_written_in_place(gmt, folder):
    recording = recording_writer.example().write(gmt.folder / "train.gmt")
    for name in ("file", "out"):
        (folder / name).write_text("before")
    script = 'mount --bind "$1/file" "$1/out" || exit 77; exec "$2" export -f csv -o "$1/out" "$3"'
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", folder, TOOL, recording],
                          capture_output=True, text=True, env=gmt.environment(traced=False))
    if done.returncode == 77 or done.stderr.startswith("unshare:"):
        pytest.skip(f"no mount to be had: {done.stderr}")
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "file").read_text() == gmt.tool("export", "-f", "csv", recording).stdout
    assert names(folder) == ["file", "out"]


def test_a_link_is_followed_and_stays(write, folder):
    (folder / "file").write_text("before")
    (folder / "out").symlink_to("file")
    write(folder / "out")
    assert (folder / "out").is_symlink() and (folder / "file").read_text() != "before"
    assert names(folder) == ["file", "out"]


def test_standard_output_by_its_device_is_no_file_to_replace(gmt, folder):
    """/dev/stdout is a link, which a privileged user could replace by a file."""
    recording = recording_writer.example().write(gmt.folder / "train.gmt")
    (folder / "stdout").symlink_to("/proc/self/fd/1")
    with open(folder / "out", "wb") as out:
        subprocess.run([TOOL, "export", "-f", "csv", "-o", folder / "stdout", recording], stdout=out, check=True,
                       env=gmt.environment(traced=False))
    assert (folder / "stdout").is_symlink() and names(folder) == ["out", "stdout"]
    assert (folder / "out").read_text() == gmt.tool("export", "-f", "csv", recording).stdout


def test_a_file_beside_which_there_is_no_room_for_another_is_written_in_place(write, folder):
    out = folder / ("o" * os.pathconf(folder, "PC_NAME_MAX"))  # so that no longer name is possible
    write(out)
    assert out.stat().st_size > 0 and len(names(folder)) == 1
