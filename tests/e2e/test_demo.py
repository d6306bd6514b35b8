"""The demo: its report names the one buffer that is kept, by file and line, near the top."""
import subprocess

import pytest
from conftest import BUILD, ROOT


def line_of(text):
    source = (ROOT / "tools" / "demo" / "train.py").read_text().splitlines()
    (number,) = [n for n, line in enumerate(source, 1) if text in line]
    return number


@pytest.mark.thread_sanitizer_cannot("start a shell")
def test_demo_report_names_the_buffer_that_is_kept(gmt):
    # A build folder of its own, so that tests do not write where a person looks.
    build = gmt.folder / "build"
    build.mkdir()
    for product in ("gpumemtrace", "libgpumemtrace.so", "simgpu"):
        (build / product).symlink_to(BUILD / product)
    done = subprocess.run([ROOT / "tools" / "demo" / "run.sh", build], env=gmt.environment(traced=False),
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = done.stdout[done.stdout.index("gpumemtrace report"):]
    kept = f"train.py:{line_of('loss = allocate(')}"
    assert kept in report, report
    assert report[:report.index(kept)].count("\n") < 20, "a reader finds it on the first screen"
    assert "60.0 MiB" in report
    assert {path.name for path in (build / "demo").iterdir()} == {
        "report.txt", "train.gmt", "train.html", "train.json", "train.txt"}
    assert kept in (build / "demo" / "train.html").read_text()
