"""The library loads and records under C libraries older than where it was built: those of systems still in use."""
import gzip
import json
import lzma
import platform
import subprocess
import urllib.error
import urllib.request

import pytest
from conftest import BUILD, CC, LIBRARY, PROGRAMS, ROOT, SANITIZE, SIMGPU

pytestmark = [
    pytest.mark.skipif(bool(SANITIZE), reason="a sanitizer's runtime asks for the C library it was built with"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the packages below are those of x86-64"),
]

# name, mirror, index of packages; oldest first
SYSTEMS = [
    ("Ubuntu 16.04", "2.23", "http://archive.ubuntu.com/ubuntu", "dists/xenial/main/binary-amd64/Packages.gz"),
    ("Ubuntu 18.04", "2.27", "http://archive.ubuntu.com/ubuntu", "dists/bionic/main/binary-amd64/Packages.gz"),
    ("Debian 11", "2.31", "http://deb.debian.org/debian", "dists/bullseye/main/binary-amd64/Packages.xz"),
]


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read()
    except urllib.error.HTTPError:
        raise  # it is no longer there: not what a machine without a network sees
    except (urllib.error.URLError, OSError) as error:
        pytest.skip(f"{url}: {error}")


def package_path(index, name):
    for paragraph in index.split("\n\n"):
        if paragraph.startswith(f"Package: {name}\n"):
            return next(line.split()[1] for line in paragraph.splitlines() if line.startswith("Filename:"))
    raise AssertionError(f"no package {name}")


def unpacked(version, mirror, index_path):
    """The folder with that version's libc6 in it, unpacked once and kept under build/."""
    folder = BUILD / "old_systems" / version
    if not (folder / "whole").exists():
        packed = fetch(f"{mirror}/{index_path}")
        index = (lzma if index_path.endswith("xz") else gzip).decompress(packed).decode()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "libc6.deb").write_bytes(fetch(f"{mirror}/{package_path(index, 'libc6')}"))
        subprocess.run(["dpkg-deb", "-x", folder / "libc6.deb", folder], check=True)
        (folder / "whole").touch()
    return folder


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    program = tmp_path_factory.mktemp("bare") / "bare"
    subprocess.run([CC, "-O2", "-nostartfiles", f"-I{ROOT / 'src'}", PROGRAMS / "bare.c", f"-L{SIMGPU}", "-l:libcuda.so.1",
                    "-o", program], check=True)
    return program


@pytest.mark.parametrize(("version", "mirror", "index"), [system[1:] for system in SYSTEMS],
                         ids=[system[0] for system in SYSTEMS])
def test_records_under_an_old_c_library(bare, tmp_path, version, mirror, index):
    libraries = unpacked(version, mirror, index) / "lib" / "x86_64-linux-gnu"
    done = subprocess.run(
        [libraries / "ld-linux-x86-64.so.2", "--library-path", f"{libraries}:{SIMGPU}", bare],
        env={"LD_PRELOAD": str(LIBRARY), "GPUMEMTRACE_OUTPUT": str(tmp_path / "gmt")}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{version}\n"), done.stderr
    report = json.loads((tmp_path / "gmt.json").read_text())
    assert report["counters"]["allocs"] == 10
    assert report["leaks"]["live_bytes"] == 3 << 20
