"""What is handed to others: the source tarball, and the one folder that works where it is unpacked."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import pytest
from conftest import BUILD, ROOT, SANITIZE
from test_install import make, version

pytestmark = [
    pytest.mark.skipif(bool(SANITIZE), reason="what is handed out is the plain build"),
]
# What each has: the C library, which is in step with the system's dynamic linker.
C_LIBRARY = re.compile(r"(libc|libm|libdl|librt|libpthread|ld-linux.*)\.so|linux-vdso")


def unpack(name, folder):
    with tarfile.open(BUILD / name) as tarball:
        tarball.extractall(folder)
    (top,) = folder.iterdir()
    return top


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    if not (ROOT / ".git").exists():
        pytest.skip("this is no clone: nothing to pack")
    make("dist")
    return unpack(f"gpumemtrace-{version()}.tar.gz", tmp_path_factory.mktemp("source"))


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout


def test_source_tarball_has_what_git_has_and_nothing_else(source):
    packed = {str(path.relative_to(source)) for path in source.rglob("*") if not path.is_dir()}
    assert packed == set(git("ls-tree", "-r", "--name-only", "-z", "HEAD").split("\0")) - {""}
    assert source.name == f"gpumemtrace-{version()}"


def test_source_tarball_of_one_commit_is_one_file(source):
    path = BUILD / f"{source.name}.tar.gz"
    first = path.read_bytes()
    path.unlink()
    make("dist")
    assert path.read_bytes() == first
    with tarfile.open(path) as tarball:
        assert {member.mtime for member in tarball} == {int(git("log", "-1", "--format=%ct"))}


def test_source_tarball_builds_without_git_and_network(source, tmp_path):
    """Without optimisation, for time. What is not committed is not in it."""
    ways = ["unshare", "--net"], ["unshare", "--map-root-user", "--net"]
    alone = next((way for way in ways if subprocess.run([*way, "true"], capture_output=True).returncode == 0), None)
    if alone is None:
        pytest.skip("no network namespace may be made here")
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "git").symlink_to("/bin/false")
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
    env["PATH"] = f"{commands}{os.pathsep}{env['PATH']}"
    subprocess.run([*alone, "make", "-s", "-C", source, f"-j{os.cpu_count()}", "lib", "cli", "CFLAGS=-O0", "BUILD=build",
                    "SANITIZE="], env=env, check=True)
    said = subprocess.run([source / "build" / "gpumemtrace", "--version"], capture_output=True, text=True, check=True)
    assert version() in said.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The binary tarball, unpacked in one place and moved to another, whose name has a space."""
    make("bindist")
    place = tmp_path_factory.mktemp("binary")
    (packed,) = BUILD.glob(f"gpumemtrace-{version()}-linux-*.tar.gz")
    return pathlib.Path(shutil.move(unpack(packed.name, place), place / "moved here"))


def test_binary_folder_traces_a_program_where_it_was_moved_to(gmt, folder, tmp_path):
    """Nothing of the build is named: neither the library nor the simulated GPU."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = gmt.environment(traced=False, LD_LIBRARY_PATH=None, TMPDIR=temporary)
    done = subprocess.run([folder / "bin" / "gpumemtrace", "run", "--simulate", "-o", tmp_path / "gmt", "--", sys.executable,
                           "-c", "import cuda; cuda.init(); cuda.allocate(3 << 20)"], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert gmt.rendered(tmp_path / "gmt.gmt")["leaks"]["live_bytes"] == 3 << 20
    assert list(temporary.iterdir()) == [], "the link to the library is gone"


def test_binary_folder_needs_nothing_of_the_system_but_the_c_library(folder):
    listed = subprocess.run(["ldd", folder / "bin" / "gpumemtrace"], capture_output=True, text=True, check=True).stdout
    places = dict(re.findall(r"^\s*(\S+) => (.+) \(0x", listed, re.MULTILINE))
    assert "not found" not in listed and "libdw.so.1" in places
    outside = {name for name, path in places.items() if folder.resolve() not in pathlib.Path(path).resolve().parents}
    assert {name for name in outside if not C_LIBRARY.match(name)} == set()


def test_binary_folder_holds_the_licences_of_what_it_brings(folder):
    if not shutil.which("dpkg-query"):
        pytest.skip("licences are taken from Debian's packages")
    licences = {path.name for path in (folder / "share/doc/gpumemtrace/licences").iterdir()}
    assert {"libdw1", "libelf1", "libjs-d3"} <= {re.sub("t64$", "", name) for name in licences}


def test_binary_folder_compiles_programs_by_pkg_config(folder):
    if not shutil.which("pkg-config"):
        pytest.skip("no pkg-config here")
    said = subprocess.run(["pkg-config", "--cflags-only-I", "gpumemtrace"], capture_output=True, text=True, check=True,
                          env={**os.environ, "PKG_CONFIG_PATH": str(folder / "lib/pkgconfig")}).stdout
    include = pathlib.Path(said.strip()[2:].replace("\\ ", " "))
    assert (include / "gpumemtrace.h").samefile(folder / "include/gpumemtrace.h")


def test_doctor_is_content_with_a_folder_whose_name_has_a_space(gmt, folder):
    done = subprocess.run([folder / "bin" / "gpumemtrace", "doctor", "--", "/bin/ls"], env=gmt.environment(traced=False),
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "makes a link" in done.stdout and "LD_PRELOAD reaches it" in done.stdout
