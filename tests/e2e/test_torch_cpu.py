"""Real PyTorch, where there is one (torch_python.py), without a GPU: results, words, exit status and children are what
they are without the library, bit for bit, and no file is left."""
import pytest
from conftest import PROGRAMS, SIMGPU
from torch_python import PYTHON, needs_torch

pytestmark = needs_torch
FOLDER = PROGRAMS / "torch_cpu"
TIMEOUT = 900
NO_DRIVER = {"LD_LIBRARY_PATH": None, "PYTHONPATH": None}
SIMULATED = {"LD_LIBRARY_PATH": SIMGPU, "PYTHONPATH": None}


@pytest.fixture
def both(gmt):
    """both(words…): the command without the library and with it, each with a folder of its own for what it may write."""
    def play(*words, env=None):
        done = []
        for traced in (False, True):
            place = gmt.new_folder()
            variables = {"PYTHONHASHSEED": "0", "TMPDIR": place, "TORCHINDUCTOR_CACHE_DIR": place / "inductor",
                         "OMP_NUM_THREADS": "2", **NO_DRIVER, **(env or {})}
            done.append(gmt.run(*words, traced=traced, env=variables, cwd=place, status=None, timeout=TIMEOUT))
        return done
    return play


def expect_same(without, with_us):
    assert with_us.out.splitlines() == without.out.splitlines()
    assert with_us.status == without.status
    assert list(with_us.folder.iterdir()) == []


@pytest.mark.parametrize("part", range(4))
def test_each_operator_gives_the_same_bits(both, part):
    without, with_us = both(PYTHON, FOLDER / "operators.py", "2", f"{part}/4")
    expect_same(without, with_us)
    assert without.status == 0 and len(without.out.splitlines()) > 100


PROGRAMS_AND_LINES = [("train", 20), ("loaders", 9), ("processes", 6), ("threads", 8), ("profiler", 5), ("compiled", 10)]


@pytest.mark.parametrize("name, lines", PROGRAMS_AND_LINES, ids=[name for name, _ in PROGRAMS_AND_LINES])
def test_programs_print_the_same(both, name, lines):
    without, with_us = both(PYTHON, FOLDER / "programs.py", name)
    expect_same(without, with_us)
    assert without.status == 0 and len(without.out.splitlines()) >= lines, without.err


def test_two_ranks_of_torchrun_print_the_same(both):
    without, with_us = both(PYTHON, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone",
                            FOLDER / "programs.py", "ranks")
    expect_same(without, with_us)
    assert without.status == 0 and len(without.out.splitlines()) == 20, without.err


@pytest.mark.parametrize("driver", [NO_DRIVER, SIMULATED], ids=["no driver", "simulated driver"])
@pytest.mark.parametrize("part", ["pytorch", "triton", "bindings", "libraries", "cupti"])
def test_calls_of_libraries_that_ask_for_the_driver_give_the_same(both, part, driver):
    """Among them each of NVIDIA's libraries that PyTorch brings; some crash without a GPU, and so they do with us."""
    without, with_us = both(PYTHON, FOLDER / "calls_without_gpu.py", part, env=driver)
    assert with_us.out.splitlines() == without.out.splitlines()
    assert with_us.status == without.status
    if part != "cupti":
        assert without.status == 0 and len(without.out.splitlines()) >= 4, without.err
    if driver is NO_DRIVER:
        assert list(with_us.folder.iterdir()) == []
