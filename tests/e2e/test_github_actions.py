"""docs/github-actions.yml does what it says: its steps, but for the build, are run here as a runner would."""
import os
import re
import subprocess
import textwrap
import xml.etree.ElementTree

import pytest
from conftest import BUILD, PROGRAMS, ROOT, SANITIZE

pytestmark = pytest.mark.skipif(bool(SANITIZE), reason="a runner preloads no sanitizer's runtime")

WORKFLOW = (ROOT / "docs" / "github-actions.yml").read_text()
STEP = "import sys\nsys.path.insert(0, {programs!r})\nimport cuda\ncuda.init()\n{body}\n"


def steps():
    """[(name, script)] of the steps that are scripts."""
    found = re.findall(r"^      - name: ([^\n]*)\n        run: (?:\|\n((?: {10}[^\n]*\n|\n)+)|([^\n]*)\n)", WORKFLOW, re.M)
    return [(name, textwrap.dedent(block) or line) for name, block, line in found]


def git(folder, *words):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main", *words],
                   cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    """A project of which `main` leaks 4 MiB on purpose."""
    origin = tmp_path / "origin"
    (origin / "tests").mkdir(parents=True)
    git(origin, "init", "-q")
    write_step(origin, "cuda.allocate(4 << 20)")
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "main")
    git(tmp_path, "clone", "-q", origin, "work")
    return tmp_path / "work"


def write_step(folder, body):
    (folder / "tests" / "memory_step.py").write_text(STEP.format(programs=str(PROGRAMS), body=body))


def run_steps(repository):
    temp = repository.parent / "temp"
    temp.mkdir()
    env = {**os.environ, "RUNNER_TEMP": str(temp), "GITHUB_BASE_REF": "main", "GITHUB_STEP_SUMMARY": str(temp / "summary"),
           "PATH": f"{BUILD}:{os.environ['PATH']}"}
    statuses = [subprocess.run(["bash", "-e", "-c", script], cwd=repository, env=env, capture_output=True, text=True)
                for name, script in steps() if not name.startswith("Build")]
    return statuses, (temp / "summary").read_text()


def test_the_workflow_has_the_steps_that_are_run_here():
    assert [name.split()[0] for name, _ in steps()] == ["Build", "Measure", "Measure", "Compare"]


@pytest.mark.parametrize("body, status, heading", [
    ("\n" * 200 + "cuda.allocate(4 << 20)", 0, "### GPU memory: no change"),
    ("cuda.allocate(5 << 20)", 1, "### GPU memory: 2 of 2 conditions failed")], ids=["moved", "grown"])
def test_a_pull_request_is_measured_and_compared(repository, body, status, heading):
    write_step(repository, body)
    done, summary = run_steps(repository)
    assert [one.returncode for one in done] == [0, 0, status], [one.stderr for one in done]
    assert summary.startswith(heading)
    suite = xml.etree.ElementTree.parse(repository / "gpumemtrace.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2" if status else "0")
