"""The PyTorch that tests use: that of the Python in TORCH_PYTHON, by default of the one that runs the tests."""
import os
import subprocess
import sys

import pytest
from conftest import SANITIZE

PYTHON = os.environ.get("TORCH_PYTHON") or sys.executable


def has_torch():
    done = subprocess.run([PYTHON, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"],
                          capture_output=True)
    return done.returncode == 0


NO_TORCH = f"{PYTHON} has no PyTorch: TORCH_PYTHON names one that has"
needs_torch = [pytest.mark.skipif(not has_torch(), reason=NO_TORCH),
               pytest.mark.skipif(bool(SANITIZE), reason="PyTorch under a sanitizer tells of itself")]
