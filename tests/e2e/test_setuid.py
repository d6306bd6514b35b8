"""In a program that runs with another user's rights, the library does nothing."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
from conftest import CC, LIBRARY, PROGRAMS, SANITIZE, SIMGPU

NOBODY = 65534


@pytest.mark.skipif(os.geteuid() != 0 or SANITIZE != "", reason="needs root, and a program without a sanitizer")
@pytest.mark.parametrize("mode, recordings", [(0o755, 1), (0o4755, 0)], ids=["plain", "setuid"])
def test_nothing_is_recorded_or_written_with_another_users_rights(gmt, mode, recordings):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.chmod(folder, 0o777)
        for library in (LIBRARY, SIMGPU / "libcuda.so.1"):
            shutil.copy(library, folder)
        # Linked with it: the dynamic linker itself preloads nothing there.
        subprocess.run([CC, "-O1", PROGRAMS / "early.c", "-DEARLY_LIBRARY", "-DEARLY_PROGRAM", "-o", folder / "program",
                        "-Wl,--no-as-needed", folder / LIBRARY.name, folder / "libcuda.so.1", f"-Wl,-rpath,{folder}",
                        "-lpthread"], check=True)
        os.chmod(folder / "program", mode)
        env = gmt.environment(folder / "gmt.%p", traced=False)
        env.pop("LD_LIBRARY_PATH")
        done = subprocess.run([folder / "program"], env={**env, "GPUMEMTRACE_OUTPUT": str(folder / "gmt.%p")}, user=NOBODY,
                              group=NOBODY, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
        assert len(list(folder.glob("gmt.*.gmt"))) == recordings
        assert ("gpumemtrace" in done.stderr) == bool(recordings)
        for path in folder.glob("gmt.*.gmt"):
            assert path.stat().st_mode & 0o777 == 0o600
