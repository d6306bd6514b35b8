"""End-to-end tests: run small programs under the library on the simulated GPU and read what it wrote.

The build products are found by GPUMEMTRACE_BUILD (default: build/ of this tree). Under a sanitizer (SANITIZE=address
or thread, as in the Makefile) its runtime is preloaded before the library.

Products for another processor are run by an emulator: GPUMEMTRACE_EMULATOR (the words before a program),
GPUMEMTRACE_PYTHON (an interpreter for it) and GPUMEMTRACE_TOOL (the command-line tool of this machine).
"""
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUMEMTRACE_BUILD") or ROOT / "build").resolve()
SANITIZE = os.environ.get("SANITIZE", "")
CC = os.environ.get("CC") or "cc"
PROGRAMS = ROOT / "tests" / "programs"
LIBRARY = BUILD / "libgpumemtrace.so"
TOOL = pathlib.Path(os.environ.get("GPUMEMTRACE_TOOL") or BUILD / "gpumemtrace")
EMULATOR = shlex.split(os.environ.get("GPUMEMTRACE_EMULATOR", ""))
INTERPRETER = os.environ.get("GPUMEMTRACE_PYTHON") or sys.executable
SIMGPU = BUILD / "simgpu"
TIMEOUT = 120 if not SANITIZE else 400

SANITIZED_PROGRAM = {"address": ["-fsanitize=address,undefined"], "thread": ["-fsanitize=thread"]}
# Started in the background or by nohup, we ignore these, and so would every program we start.
for ignored in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)

# What the thread sanitizer's runtime cannot do, for @pytest.mark.thread_sanitizer_cannot(…): all else runs under it.
THREAD_SANITIZER_CANNOT = {
    "end without main's thread": "its own thread in the background keeps a process alive whose main thread has ended",
    "start a shell": "bash crashes where the runtime is preloaded",
    "follow locks into a child": "it takes locks to be held that a child made anew",
    "see a lock left behind": "it hangs now and then where a program has jumped away from under a lock",
    "use libunwind": "libunwind frees a thread's cache when the runtime has forgotten the thread, so the library goes without",
}

RUNTIMES = {"address": ["libasan.so"], "thread": ["libtsan.so"]}


def preload():
    """The value of LD_PRELOAD: the sanitizer's runtime, where there is one, must come first."""
    found = [subprocess.run([CC, f"-print-file-name={name}"], capture_output=True, text=True,
                            check=True).stdout.strip() for name in RUNTIMES.get(SANITIZE, [])]
    return ":".join(found + [str(LIBRARY)])


PRELOAD = preload()


def emulated(command, env):
    """The words that run `command`, and their environment: what the dynamic linker reads is for the program alone."""
    if not EMULATOR:
        return command, env
    names = [name for name in ("LD_PRELOAD", "LD_LIBRARY_PATH") if name in env]
    theirs = [word for name in names for word in ("-E", f"{name}={env[name]}")]
    return [*EMULATOR, *theirs, *command], {name: value for name, value in env.items() if name not in names}


class Run:
    """What came of one traced command. `reports` and `recordings` are those of every process, by pid."""

    def __init__(self, done, folder):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.folder = folder
        self.recordings = sorted(folder.glob("gmt.*.gmt"))
        self.texts = sorted(folder.glob("gmt.*.txt"))
        self._json = sorted(folder.glob("gmt.*.json"))

    @property
    def reports(self):
        return [json.loads(path.read_text()) for path in self._json]

    @property
    def report(self):
        assert len(self._json) == 1, f"one report wanted, there are {len(self._json)}\n{self.err}"
        return self.reports[0]

    @property
    def recording(self):
        assert len(self.recordings) == 1, f"one recording wanted, there are {len(self.recordings)}\n{self.err}"
        return self.recordings[0]

    @property
    def text(self):
        assert len(self.texts) == 1
        return self.texts[0].read_text()


class Gpumemtrace:
    """Runs programs, traced or not, with their files in a folder of the test's own."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    def environment(self, output=None, traced=True, **extra):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_"))}
        env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(SIMGPU), env.get("LD_LIBRARY_PATH")]))
        env["PYTHONPATH"] = str(PROGRAMS)
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        # Interpreters, and programs under test, do leave memory behind; that is not what these tests look for.
        env["ASAN_OPTIONS"] = "detect_leaks=0:abort_on_error=0:" + env.get("ASAN_OPTIONS", "")
        env["TSAN_OPTIONS"] = "report_thread_leaks=0:" + env.get("TSAN_OPTIONS", "")
        if traced:
            env["LD_PRELOAD"] = PRELOAD
            env["GPUMEMTRACE_OUTPUT"] = str(output or self.folder / "gmt.%p")
        elif SANITIZE:
            env["LD_PRELOAD"] = PRELOAD.rpartition(":")[0]
        env.update({k: str(v) for k, v in extra.items() if v is not None})
        for name in [k for k, v in extra.items() if v is None]:
            env.pop(name, None)
        return env

    def new_folder(self):
        self.count += 1
        folder = self.folder / f"run{self.count}"
        folder.mkdir()
        return folder

    def run(self, *command, env=None, traced=True, status=0, timeout=TIMEOUT, **options):
        """Runs `command`, and fails unless it ends with `status` (None: any). `env`: variables to set; None unsets."""
        folder = self.new_folder()
        words, whole = emulated([str(word) for word in command],
                                self.environment(folder / "gmt.%p", traced, **(env or {})))
        done = subprocess.run(words, env=whole, capture_output=True, text=True, errors="replace", timeout=timeout, **options)
        assert status is None or done.returncode == status, \
            f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return Run(done, folder)

    def python(self, source, *arguments, interpreter=INTERPRETER, **options):
        """Runs Python source text as a script of its own, `program.py`."""
        script = self.folder / f"source{self.count + 1}" / "program.py"
        script.parent.mkdir(exist_ok=True)
        script.write_text(textwrap.dedent(source))
        done = self.run(interpreter, script, *arguments, **options)
        done.script = script
        return done

    def tool(self, *arguments, status=0, env=None, timeout=TIMEOUT, **options):
        """Runs the command-line tool, itself untraced."""
        done = subprocess.run([str(TOOL), *map(str, arguments)], env=self.environment(traced=False, **(env or {})),
                              capture_output=True, text=True, errors="replace", timeout=timeout, **options)
        assert status is None or done.returncode == status, \
            f"gpumemtrace {arguments} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def rendered(self, recording):
        """The report as the command-line tool renders it from a recording."""
        return json.loads(self.tool("report", "--json", recording).stdout)


@pytest.fixture
def gmt(tmp_path):
    return Gpumemtrace(tmp_path)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """compiled(name, *flags): the program made from tests/programs/NAME (or a path), once for each set of flags."""
    folder = tmp_path_factory.mktemp("programs")
    made = {}

    def build(source, *flags, compiler=None):
        source = pathlib.Path(source)
        if not source.is_absolute():
            source = PROGRAMS / source
        compiler = compiler or (CC if source.suffix == ".c" else os.environ.get("CXX") or "c++")
        key = (source, flags, compiler)
        if key not in made:
            output = folder / f"{source.stem}-{len(made)}"
            # Only by the compiler whose sanitizer runtime is preloaded.
            sanitize = SANITIZED_PROGRAM.get(SANITIZE, []) if "clang" not in pathlib.Path(compiler).name else []
            subprocess.run([compiler, "-O2", "-g", "-D_GNU_SOURCE", *sanitize, str(source), "-o", str(output),
                            *map(str, flags)], check=True, cwd=folder)
            made[key] = output
        return made[key]

    return build


OLDEST_PYTHON = (3, 8)  # of which the library reads frames


def interpreters():
    """Every supported CPython to be found, the system's and pyenv's, one of each version: [(version, path)]."""
    places = [pathlib.Path(folder) for folder in ["/usr/bin", "/usr/local/bin"]]
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv") / "versions"
    places += sorted(pyenv.glob("*/bin"))
    found = {}
    for place in places:
        for path in sorted(place.glob("python3*")):
            if not path.name[len("python"):].replace(".", "").rstrip("t").isdigit() or not os.access(path, os.X_OK):
                continue
            done = subprocess.run([path, "-c", "import ctypes, platform, sys, sysconfig; print(platform."
                                   "python_implementation(), sys.version.split()[0].rstrip('+'), "
                                   "sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"], capture_output=True, text=True)
            name, *rest = done.stdout.split() or [None]
            if name == "CPython" and tuple(map(int, rest[0].split(".")[:2])) >= OLDEST_PYTHON:
                found.setdefault(tuple(rest), path)
    return sorted((f"{version}{'t' if free == '1' else ''}", path) for (version, free), path in found.items())


def pytest_generate_tests(metafunc):
    """A test that takes `interpreter` runs once for each CPython."""
    if "interpreter" in metafunc.fixturenames:
        found = interpreters()
        metafunc.parametrize("interpreter", [path for _, path in found], ids=[version for version, _ in found])


def pytest_report_header():
    return f"build products: {BUILD}{', sanitizer: ' + SANITIZE if SANITIZE else ''}"


def pytest_configure(config):
    config.addinivalue_line("markers", "thread_sanitizer_cannot(what): not under SANITIZE=thread")


def pytest_collection_modifyitems(items):
    for item in items:
        for mark in item.iter_markers("thread_sanitizer_cannot"):
            item.add_marker(pytest.mark.skipif(SANITIZE == "thread", reason=THREAD_SANITIZER_CANNOT[mark.args[0]]))
    if not shutil.which("readelf"):
        raise pytest.UsageError("readelf is missing: install binutils")
    for path in (LIBRARY, TOOL, SIMGPU / "libcuda.so.1"):
        if not path.exists():
            raise pytest.UsageError(f"{path} is not there: run make first")
