"""tools/deps.sh, with a system of its own: a PATH in which only stand-ins are found."""
import shutil
import subprocess

import pytest
from conftest import ROOT

PACKAGES = ["gcc", "libc6-dev", "uthash-dev", "libunwind-dev", "libdw-dev", "libiberty-dev", "libjansson-dev",
            "libprotobuf-c-dev", "protobuf-c-compiler", "libsqlite3-dev", "zlib1g-dev", "libncurses-dev"]


class System:
    def __init__(self, folder):
        self.bin, self.log = folder / "bin", folder / "log"
        self.bin.mkdir()
        self.log.write_text("")
        for name in ("bash", "sed", "cat", "mktemp", "rm", "tail", "env", "true"):
            (self.bin / name).symlink_to(shutil.which(name))

    def command(self, name, script):
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    def user(self, number, sudo=None):
        self.command("id", f"echo {number}")
        if sudo is not None:
            self.command("sudo", f'[ "$1" = -n ] || exit 9; shift; [ {sudo} = yes ] || exit 1; exec "$@"')

    def apt(self, script=""):
        self.command("apt-get", f'echo "$*" >>{self.log}\n{script}')

    def deps(self, *arguments):
        return subprocess.run([ROOT / "tools" / "deps.sh", *arguments], capture_output=True, text=True,
                              env={"PATH": str(self.bin)}, stdin=subprocess.DEVNULL)

    @property
    def calls(self):
        return [line.replace("-q ", "") for line in self.log.read_text().splitlines()]


@pytest.fixture
def system(tmp_path):
    return System(tmp_path)


def test_root_installs_without_fetching_lists_that_are_there(system):
    system.user(0)
    system.apt()
    done = system.deps("build")
    assert done.returncode == 0
    assert system.calls == ["install -y --no-install-recommends " + " ".join(PACKAGES)]


def test_lists_are_fetched_when_a_package_is_not_found(system):
    system.user(0)
    system.apt(f'[ "$2" = update ] && touch {system.bin}/updated; [ "$2" = update ] || [ -e {system.bin}/updated ]')
    (system.bin / "touch").symlink_to(shutil.which("touch"))
    done = system.deps("build")
    assert done.returncode == 0, done.stderr
    assert [call.split()[0] for call in system.calls] == ["install", "update", "install"]


def test_sudo_that_asks_for_no_password_is_used(system):
    system.user(1000, sudo="yes")
    system.apt()
    assert system.deps("build").returncode == 0
    assert len(system.calls) == 1


@pytest.mark.parametrize("sudo", [None, "no"])
def test_others_get_the_one_line_to_run(system, sudo):
    system.user(1000, sudo)
    system.apt()
    done = system.deps("build")
    assert done.returncode == 1 and system.calls == []
    line = "    sudo apt-get update && sudo apt-get install -y --no-install-recommends " + " ".join(PACKAGES)
    assert line in done.stderr.splitlines()


def test_check_installs_nothing(system):
    system.user(0)
    system.apt()
    done = system.deps("--check", "build")
    assert done.returncode == 1 and system.calls == []
    assert all(package in done.stderr for package in PACKAGES)


def test_what_apt_cannot_install_is_said_with_its_own_words(system):
    system.user(0)
    system.apt('echo "E: the mirror burned down"; exit 100')
    done = system.deps("build")
    assert done.returncode == 1
    assert "the mirror burned down" in done.stderr


def test_nothing_is_done_where_nothing_is_missing():
    done = subprocess.run([ROOT / "tools" / "deps.sh", "build"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
