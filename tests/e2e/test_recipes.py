"""docs/recipes.md keeps to the truth: commands that can run on the simulated GPU print what stands there, but for times;
the manifest and the drop-in are what Kubernetes and systemd read."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest
import torch_python
from conftest import BUILD, PROGRAMS, ROOT, SANITIZE, SIMGPU
from test_reading import TRIES, plain

pytestmark = pytest.mark.skipif(bool(SANITIZE), reason="what is shown is the plain build's")

PAGE = (ROOT / "docs/recipes.md").read_text()
MARK = r"<!-- tried by tests/e2e/test_recipes.py ?(.*) -->\n```console\n([^`]*)```"


def tried():
    """[(title, settings, console)] of the recipes whose commands can run here."""
    sections = [section.split("\n", 1) for section in PAGE.split("\n## ")[1:]]
    return [(title, *found.groups()) for title, text in sections for found in re.finditer(MARK, text)]


TRIED = tried()
GAP = "…"


def block(kind, mark):
    (text,) = re.findall(rf"<!-- {mark}, checked by tests/e2e/test_recipes.py -->\n```{kind}\n([^`]*)```", PAGE)
    return text


def commands(console):
    """[(command, [line, …])]"""
    found = []
    for line in console.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def normal(lines):
    return [re.sub(r"\.\d+\.gmt", ".PID.gmt", line) for line in plain("\n".join(lines))]


def difference(wanted, printed):
    """Nothing, or the first line that is not where it should be. A GAP stands for any lines."""
    at, may_skip = 0, False
    for line in wanted:
        if line == GAP:
            may_skip = True
            continue
        while may_skip and at < len(printed) and printed[at] != line:
            at += 1
        if at == len(printed) or printed[at] != line:
            return line
        at, may_skip = at + 1, False
    return None if may_skip or at == len(printed) else f"more: {printed[at]}"


# For PyTorch: the runtime that it brings along would refuse the simulated driver.
SITE = """
import ctypes, glob
for path in sorted(glob.glob({simgpu!r} + "/libcudart.so.*")):
    ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
"""
NEEDS_TORCH = "where PyTorch is"


def play(gmt, folder, settings, console):
    """What differs from the page."""
    shutil.copytree(ROOT / "docs/recipes", folder)
    paths, modules = [str(BUILD), os.environ["PATH"]], [str(PROGRAMS), str(ROOT / "python")]
    if settings == NEEDS_TORCH:
        (folder / "sitecustomize.py").write_text(SITE.format(simgpu=str(SIMGPU)))
        paths.insert(0, str(pathlib.Path(torch_python.PYTHON).parent))
        modules = [str(folder)]
        settings = ""
    env = gmt.environment(traced=False, PATH=":".join(paths), LD_LIBRARY_PATH=SIMGPU, PYTHONPATH=":".join(modules),
                          **dict(word.split("=") for word in settings.split()))
    for command, wanted in commands(console):
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=200)
        printed = normal(done.stdout.splitlines())
        if missing := difference(normal(wanted), printed):
            return "\n".join([f"$ {command}", f"wanted: {missing}", "printed:", *printed])
    return None


def test_the_difference_is_found():
    printed = ["a", "b", "c", "d"]
    for wanted in (["a", "b", "c", "d"], [GAP, "c", GAP], ["a", GAP, "d"], [GAP]):
        assert difference(wanted, printed) is None
    for wanted in (["a", "c", GAP], ["a", "b", "c"], [GAP, "d", "c"], ["b", GAP], []):
        assert difference(wanted, printed)


@pytest.mark.parametrize("title, settings, console", TRIED, ids=[title for title, _, _ in TRIED])
def test_commands_print_what_the_page_shows(gmt, title, settings, console):
    wrong = None
    if settings == NEEDS_TORCH and not torch_python.has_torch():
        pytest.skip("PyTorch is not installed")
    for turn in range(TRIES):  # on a busy machine a short run is not always even enough to tell of growth
        wrong = play(gmt, gmt.folder / f"recipes{turn}", settings, console)
        if not wrong:
            return
    pytest.fail(wrong)


def test_every_recipe_is_in_the_table_and_those_tried_here_say_so():
    titles = re.findall(r"^## (.*)$", PAGE, re.M)
    table = dict(re.findall(r"^\| \[(.*?)\]\(#.*?\) \| (.*?) \|", PAGE, re.M))
    assert list(table) == titles
    assert {title for title, tried in table.items() if "by a test" in tried} == {title for title, _, _ in TRIED}
    for title, anchor in re.findall(r"^\| \[(.*?)\]\(#(.*?)\)", PAGE, re.M):
        assert anchor == re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def test_options_that_the_documents_name_are_those_of_the_tool(gmt):
    """Of commands at the start of a line of code, behind its `$`, or in backquotes."""
    named = {}
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for command, rest in re.findall(r"(?:^    |^\$ |`)gpumemtrace (\w+)([^`#\n]*)", path.read_text(), re.M):
            ours = rest.split(" -- ")[0]
            named.setdefault(command, set()).update(re.findall(r"(?<=\s)--?[a-z][\w-]*", ours))
    assert {"-o", "-q", "--fail-on"} <= named["run"] and {"diff", "merge", "export", "report", "top"} <= named.keys()
    for command, options in named.items():
        offered = set(re.findall(r"(?<=[\s,])--?[a-z][\w-]*", gmt.tool(command, "--help").stdout.split("Options:")[1]))
        assert options <= offered, (command, options - offered)


def test_the_manifest_is_one_of_kubernetes():
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load(block("yaml", "a manifest"))
    pod = job["spec"]["template"]["spec"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in pod["initContainers"] + pod["containers"]:
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
    (preload,) = [row["value"] for row in pod["containers"][0]["env"] if row["name"] == "LD_PRELOAD"]
    assert preload.rsplit("/", 1)[1] == pod["initContainers"][0]["command"][1].rsplit("/", 1)[1]
    try:
        import kubernetes_validate
    except ImportError:
        return
    kubernetes_validate.validate(job, "1.29", strict=True)


def test_the_drop_in_is_one_of_systemd(tmp_path):
    analyze = shutil.which("systemd-analyze") or pytest.skip("systemd is not here")
    (tmp_path / "train.service").write_text("[Service]\nExecStart=/bin/true\n")
    (tmp_path / "train.service.d").mkdir()
    drop_in = tmp_path / "train.service.d" / "gpumemtrace.conf"
    drop_in.write_text(block("ini", "a drop-in"))
    done = subprocess.run([analyze, "verify", tmp_path / "train.service"], capture_output=True, text=True)
    assert done.returncode == 0 and drop_in.name not in done.stderr
    drop_in.write_text("[Service]\nEnvironment=no\n")
    done = subprocess.run([analyze, "verify", tmp_path / "train.service"], capture_output=True, text=True)
    assert drop_in.name in done.stderr
