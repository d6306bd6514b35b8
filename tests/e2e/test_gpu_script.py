"""The script for machines with a GPU, on the simulated one: as far as that goes, everything agrees."""
import subprocess

import pytest
from conftest import BUILD, ROOT, SANITIZE
from torch_python import NO_TORCH, PYTHON, has_torch

pytestmark = pytest.mark.skipif(bool(SANITIZE), reason="what is tried on GPUs is the plain build")


def run(gmt, tmp_path, **variables):
    env = gmt.environment(traced=False, BUILD=BUILD.relative_to(ROOT) if BUILD.is_relative_to(ROOT) else BUILD, **variables)
    return subprocess.run([ROOT / "tests/gpu/run.sh", tmp_path / "out"], env=env, capture_output=True, text=True)


def test_agrees_with_the_driver_and_skips_what_is_not_installed(gmt, tmp_path):
    done = run(gmt, tmp_path, SIMULATED=1, NVCC="no-such-compiler", PYTHON="/usr/bin/python3")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = dict(line.split(None, 2)[1::-1] for line in done.stdout.splitlines() if line.startswith(("ok ", "skip ", "FAILED ")))
    assert lines["driver"] == "ok" and lines["runtime"] == "skip"
    assert "0 failed" in done.stdout


@pytest.mark.skipif(not has_torch(), reason=NO_TORCH)
def test_agrees_with_pytorchs_allocator_to_the_byte(gmt, tmp_path):
    """What trains there has no matrix products; every kernel launch does nothing."""
    done = run(gmt, tmp_path, SIMULATED=1, NVCC="no-such-compiler", PYTHON=PYTHON, LIMIT=1500)
    lines = dict(line.split(None, 2)[1::-1] for line in done.stdout.splitlines() if line.startswith(("ok ", "skip ", "FAILED ")))
    names = [name for name in lines if name.startswith("torch")]
    assert len(names) == 5 and all(lines[name] == "ok" for name in names), done.stdout


def test_a_figure_that_differs_fails_it(gmt, tmp_path):
    """Without a stack everything is counted; without the library nothing is."""
    done = run(gmt, tmp_path, SIMULATED=1, NVCC="no-such-compiler", PYTHON="/usr/bin/python3", GPUMEMTRACE_DISABLE=1)
    assert done.returncode == 1
    assert "FAILED driver" in done.stdout and "1 failed (driver)" in done.stdout
