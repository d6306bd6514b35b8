"""`gpumemtrace merge`: the processes of a job are added up, and the rank that is unlike the others is named."""
import json
import os
import pty
import resource
import subprocess

import pytest
from conftest import SANITIZE, TOOL
from recording_writer import Recording
from test_cli_diff import LOAD, MIB, STEP, native, python, report, site


class Job:
    def __init__(self, gmt):
        self.gmt = gmt
        self.folder = gmt.folder / "job"
        self.folder.mkdir()
        self.count = 0

    def add(self, *sites, rank=None, host="node0", **more):
        self.count += 1
        whole = report(*sites, **more)
        whole["process"].update(rank=rank, host=host, pid=1000 + self.count)
        (self.folder / f"{self.count:04}.json").write_text(json.dumps(whole))

    def text(self, *options):
        return self.gmt.tool("merge", *options, self.folder).stdout

    def json(self):
        return json.loads(self.text("--json"))


@pytest.fixture
def job(gmt):
    return Job(gmt)


def step(live, peak=None, **more):
    return site(STEP, live * MIB, peak=(live if peak is None else peak) * MIB, **more)


def test_totals_and_spread_are_arithmetic(job):
    for rank, live in enumerate([10, 12, 11, 30]):
        job.add(step(live, peak=2 * live), site(LOAD, MIB, peak=MIB), rank=rank)
    merged = job.json()
    assert (merged["processes"], [member["rank"] for member in merged["members"]]) == (4, [0, 1, 2, 3])
    (device,) = merged["spaces"]
    assert device["live_bytes"]["total"] == (63 + 4) * MIB and device["peak_bytes"]["total"] == (126 + 4) * MIB
    place = {row["title"]: row for row in merged["sites"]}["/home/a/train.py:10 in Trainer.step"]
    live = place["live_bytes"]
    assert (live["total"], live["low"], live["high"]) == (63 * MIB, 10 * MIB, 30 * MIB)
    assert (live["low_member"], live["high_member"], live["median"]) == (0, 3, 12 * MIB)
    assert live["odd"] == 3 and live["odd_count"] == 1
    assert "odd: rank 3 has 31.0 MiB still allocated, the others about 13.0 MiB of device memory" in job.text()


def test_a_rank_that_lacks_a_place_counts_as_nothing_there(job):
    for rank in range(8):
        job.add(step(100), *([] if rank == 5 else [site(LOAD, 64 * MIB, peak=64 * MIB)]), rank=rank)
    place = {row["title"]: row for row in job.json()["sites"]}["/home/a/data.py:3 in load"]
    assert (place["members"], place["live_bytes"]["low"], place["live_bytes"]["odd"]) == (7, 0, 5)
    assert "in 7 members" in job.text()


@pytest.mark.parametrize("lives, odd", [([10, 20], None), ([10, 10, 20, 20], None), ([10, 10.5, 11, 10.2], None),
                                        ([100, 101, 99, 104], None), ([100, 101, 99, 130], 3), ([100, 100, 100, 10], 3),
                                        ([10] * 20 + [40, 41], 21)])
def test_odd_is_one_or_a_few_and_far_from_the_rest(job, lives, odd):
    for rank, live in enumerate(lives):
        job.add(site(STEP, int(live * MIB), peak=int(live * MIB)), rank=rank)
    (place,) = job.json()["sites"]
    assert place["live_bytes"]["odd"] == odd


def test_children_of_a_rank_are_added_to_it(job):
    for rank in (0, 1):
        job.add(step(10), rank=rank)
        job.add(step(3), rank=rank)
    merged = job.json()
    assert [(member["rank"], member["processes"], member["live_bytes"]) for member in merged["members"]] == [
        (0, 2, 13 * MIB), (1, 2, 13 * MIB)]
    assert (merged["sites"][0]["members"], merged["sites"][0]["live_bytes"]["total"]) == (2, 26 * MIB)


def test_processes_without_a_rank_are_named_by_pid_and_host(job):
    job.add(step(10), host="a")
    job.add(step(50), host="b")
    text = job.text()
    assert text.startswith("2 processes on 2 hosts\n") and "10.0 MiB (pid 1001 on a) to 50.0 MiB (pid 1002 on b)" in text


def test_devices_of_ranks_are_one_and_the_same_place(job):
    for rank in range(4):
        job.add(step(10, device=rank), rank=rank)
    merged = job.json()
    assert len(merged["sites"]) == 1 and merged["spaces"][0]["peak_bytes"]["high"] == 10 * MIB
    assert "10.0 MiB each" in job.text()


def test_kinds_of_memory_and_layers_are_kept_apart(job):
    host = dict(space="pinned", device=None, family="pinned", api="cuMemHostAlloc")
    job.add(step(10), step(5, **host), step(3, layer="framework", family="torch"), rank=0)
    assert {(row["space"], row["layer"]) for row in job.json()["sites"]} == {
        ("device", "driver"), ("pinned", "driver"), ("device", "framework")}


def test_ends_that_matter_are_said(job):
    job.add(step(10), rank=0, end="killed")
    job.add(step(10), rank=1, end="running")
    text = job.text()
    assert "note: 1 member had a process killed" in text and "(rank 0)" in text and "note: 1 member still runs (rank 1)" in text


def test_an_unreadable_file_is_named_and_the_others_are_merged(job):
    for rank in range(3):
        job.add(step(10), rank=rank)
    (job.folder / "0002.json").write_text("{")
    done = job.gmt.tool("merge", job.folder, status=2)
    assert done.stderr.startswith(f"gpumemtrace: {job.folder / '0002.json'}: ") and done.stderr.count("\n") == 1
    assert done.stdout.startswith("2 processes")


def test_an_empty_folder_is_said(job):
    assert "there is no recording in it" in job.gmt.tool("merge", job.folder, status=2).stderr


def test_places_beyond_the_top_are_counted(job):
    job.add(*[site([python(f"f{number}")], number * MIB, peak=number * MIB) for number in range(1, 31)], rank=0)
    text = job.text("--top=3")
    assert text.count("train.py") == 3 and "… and 27 smaller places (--top=0 lists all)" in text
    assert job.text("-n0").count("train.py") == 30


RANKS = [("RANK", 3), ("OMPI_COMM_WORLD_RANK", 4), ("SLURM_PROCID", 5), ("PMI_RANK", 6)]


def test_recordings_and_reports_of_one_process_count_once_and_ranks_are_known(gmt):
    """As torchrun, mpirun, Slurm and PMI name them."""
    source = "import cuda\ncuda.init()\ncuda.allocate(3 << 20)\n"
    paths = []
    for variable, rank in RANKS:
        done = gmt.python(source, env={variable: rank})
        paths += [done.recording, done.recording.with_suffix(".json")]
    paths[-1].unlink()
    merged = json.loads(gmt.tool("merge", "--json", *paths[:-1]).stdout)
    assert merged["processes"] == 4
    assert sorted(member["rank"] for member in merged["members"]) == [3, 4, 5, 6]
    assert [row["live_bytes"]["total"] for row in merged["sites"]] == [12 << 20]


@pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer takes memory of its own")
def test_a_thousand_processes_take_little_memory_and_time(job):
    """500 MB and 10 s are the promise; each of these reports has 20 sites of 30 frames."""
    frames = [native(f"function_{number}(int, char const*)", offset=number * 16) for number in range(29)]
    sites = [site([*frames, python(f"f{number}")], MIB, peak=MIB) for number in range(20)]
    whole = report(*sites)
    whole["process"].update(rank="RANK", pid=1)
    text = json.dumps(whole)
    for rank in range(1000):
        (job.folder / f"{rank}.json").write_text(text.replace('"RANK"', str(rank)))

    def bound():
        resource.setrlimit(resource.RLIMIT_AS, (500 * 1000 * 1000,) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (10, 10))

    done = subprocess.run([TOOL, "merge", "--json", job.folder], capture_output=True, text=True, check=True,
                          preexec_fn=bound)
    merged = json.loads(done.stdout)
    assert merged["processes"] == 1000 and merged["spaces"][0]["live_bytes"]["total"] == 1000 * 20 * MIB


FORK = """
#include <sys/syscall.h>
#include <unistd.h>
pid_t fork(void)
{
    pid_t pid = ENDS ? (pid_t)syscall(SYS_clone, 17, 0, 0, 0, 0) : -1;
    if (pid == 0)
        _exit(1);
    return pid;
}
"""


@pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer's runtime must be loaded first")
@pytest.mark.parametrize("helpers", ["all", "none: one processor", "none: no fork", "none: they end at once"])
def test_helpers_change_nothing_in_what_is_said(gmt, compiled, tmp_path, helpers):
    """Of twelve recordings of one step more each, one is damaged, and one is a report by another name."""
    folder = gmt.folder / "job"
    folder.mkdir()
    for number in range(12):
        made = Recording()
        made.process("/bin/train", "node", str(number))
        place = made.site(made.stack(made.python("step", "/a/train.py", 7)))
        for block in range(number + 1):
            made.alloc(place, 0x7F0000000000 + (block << 21), MIB)
        made.write(folder / f"{number:02}.gmt", pid=1000 + number)
    (folder / "03.gmt").write_bytes(b"GPUMTRC\0" + bytes(100))
    whole = report(site([python("step", line=7)], MIB, peak=MIB))
    whole["process"].update(rank=7, host="node", pid=1007)
    (folder / "07.gmt").write_text(json.dumps(whole))
    source = tmp_path / "fork.c"
    source.write_text(FORK)
    environment = gmt.environment(traced=False)
    if helpers.endswith(("fork", "once")):
        environment["LD_PRELOAD"] = compiled(source, "-shared", "-fPIC", f"-DENDS={int(helpers.endswith('once'))}")
    one = {min(os.sched_getaffinity(0))}
    done = subprocess.run([TOOL, "merge", "--json", folder], capture_output=True, text=True, env=environment,
                          preexec_fn=lambda: helpers.endswith("processor") and os.sched_setaffinity(0, one))
    assert done.returncode == 2 and "03.gmt" in done.stderr and done.stderr.count("\n") == 1
    merged = json.loads(done.stdout)
    assert merged["unreadable"] == 1
    assert {member["rank"]: member["live_bytes"] // MIB for member in merged["members"]} == {
        number: 1 if number == 7 else number + 1 for number in range(12) if number != 3}


FAST_CLOCK = """
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *time)
{
    static long seconds = 1000;
    (void)clock;
    time->tv_sec = seconds++;
    time->tv_nsec = 0;
    return 0;
}
"""


@pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer's runtime must be loaded first")
@pytest.mark.parametrize("files, shown", [(8, True), (1, False)])
def test_a_terminal_is_told_how_far_long_work_is_and_cleared(job, compiled, tmp_path, files, shown):
    """With a clock that goes on by a second at every look: two seconds have passed at the third file."""
    source = tmp_path / "fast_clock.c"
    source.write_text(FAST_CLOCK)
    clock = compiled(source, "-shared", "-fPIC")
    for rank in range(files):
        job.add(step(10), rank=rank)
    ours, theirs = pty.openpty()
    done = subprocess.run([TOOL, "merge", job.folder], stdout=subprocess.PIPE, stderr=theirs, text=True, check=True,
                          env=job.gmt.environment(traced=False, LD_PRELOAD=clock))
    os.close(theirs)
    text = b""
    try:
        while part := os.read(ours, 10000):
            text += part
    except OSError:  # what a terminal says when nobody has it open any more
        pass
    os.close(ours)
    assert done.stdout.startswith(f"{files} process")
    assert (f"merging: {files - 1} of {files} files".encode() in text) is shown
    assert text.endswith(b"\r\x1b[K") is shown and (shown or text == b"")
