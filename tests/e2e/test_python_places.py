"""Every CPython on this machine: the report's Python frames are those that traceback sees at the same moment."""
import json

from conftest import PROGRAMS


def python_frames(site):
    return [[frame["function"], frame["file"], frame["line"]] for frame in site["frames"]
            if frame["kind"] == "python"]


def expect_places(report, seen):
    unseen = dict(seen)
    for site in report["sites"]:
        frames = python_frames(site)
        mine = [size for size, stack in seen.items() if stack == frames]
        assert mine, f"no place of the program has the stack {frames}"
        assert site["allocs"] == len(mine) and site["allocated_bytes"] == sum(mine), frames
        for size in mine:
            unseen.pop(size, None)
    assert not unseen


def test_frames_are_what_traceback_sees(gmt, interpreter):
    done = gmt.run(interpreter, PROGRAMS / "named_places.py", env={"PYTHONIOENCODING": "utf-8"})
    seen = {int(size): stack for size, stack in json.loads(done.out).items()}
    assert len(seen) > 20
    expect_places(done.report, seen)
    expect_places(gmt.rendered(done.recording), seen)
    assert not [note for note in done.report["notes"] if "Python" in note]


def test_title_of_a_site_is_the_programs_own_line(gmt, interpreter):
    done = gmt.python("""
        import cuda

        def load_weights():
            return cuda.allocate(3 << 20)

        cuda.init()
        load_weights()
        """, interpreter=interpreter)
    assert "program.py:5" in done.text
    assert "load_weights" in done.text
