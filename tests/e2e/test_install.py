"""make install: GNU variables, pkg-config, an installed tree that works where it was moved to, and uninstall."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT, SANITIZE

pytestmark = pytest.mark.skipif(bool(SANITIZE), reason="what is installed is the plain build")


def make(*words):
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
    done = subprocess.run(["make", "-s", "-C", ROOT, f"BUILD={BUILD}", *words], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def version():
    (line,) = [line for line in (ROOT / "src/base/version.h").read_text().splitlines() if "GPUMEMTRACE_VERSION \"" in line]
    return line.split('"')[1]


def test_installed_tree_works_where_it_was_moved_to(gmt, tmp_path):
    make("install", f"DESTDIR={tmp_path}", "PREFIX=/opt/gpumemtrace")
    moved = tmp_path / "elsewhere"
    shutil.move(tmp_path / "opt" / "gpumemtrace", moved)
    done = subprocess.run([moved / "bin" / "gpumemtrace", "run", "-o", tmp_path / "gmt", "--", sys.executable, "-c",
                           "import cuda; cuda.init(); cuda.allocate(1 << 20)"], env=gmt.environment(traced=False))
    assert done.returncode == 0
    assert gmt.rendered(tmp_path / "gmt.gmt")["leaks"]["live_bytes"] == 1 << 20


def test_gnu_variables_and_pkg_config_agree(tmp_path):
    make("install", f"DESTDIR={tmp_path}", "prefix=/usr", "libdir=/usr/lib/x86_64-linux-gnu")
    installed = files(tmp_path)
    assert {"usr/bin/gpumemtrace", "usr/lib/x86_64-linux-gnu/libgpumemtrace.so",
            "usr/lib/x86_64-linux-gnu/pkgconfig/gpumemtrace.pc", "usr/include/gpumemtrace/trace.h",
            "usr/include/gpumemtrace.h", "usr/share/gpumemtrace/python/gpumemtrace.py"} <= installed
    links = {f"usr/share/doc/gpumemtrace/{path}" for path in re.findall(r"\]\((docs/[^)#]+)", (ROOT / "README.md").read_text())}
    assert links and links <= installed
    text = (tmp_path / "usr/lib/x86_64-linux-gnu/pkgconfig/gpumemtrace.pc").read_text()
    assert f"Version: {version()}" in text and "libdir=/usr/lib/x86_64-linux-gnu\n" in text and "@" not in text
    assert f"## [{version()}]" in (ROOT / "CHANGELOG.md").read_text()


def test_uninstall_leaves_nothing(tmp_path):
    make("install", f"DESTDIR={tmp_path}")
    assert files(tmp_path)
    make("uninstall", f"DESTDIR={tmp_path}")
    assert files(tmp_path) == set()
    assert list(tmp_path.rglob("*gpumemtrace*")) == []


def test_tool_and_changelog_name_one_version(gmt):
    assert version() in gmt.tool("--version").stdout
