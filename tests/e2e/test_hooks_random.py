"""Long random sequences of valid and invalid calls of every family: the program gets the same results with and without the
library, and the library's books agree with the program's own, in the report at exit and in the one from the recording.

HOOKS_SEEDS and HOOKS_CALLS (calls a seed) make it longer."""
import os
import re

import pytest
from conftest import PROGRAMS, ROOT, SANITIZE, SIMGPU

QUIET = {"GPUMEMTRACE_QUIET": "1"}
SEEDS = range(int(os.environ.get("HOOKS_SEEDS") or (20 if not SANITIZE else 4)))
CALLS = int(os.environ.get("HOOKS_CALLS") or 5000)
TIMEOUT = max(120, len(SEEDS) * CALLS // 2000)


@pytest.fixture
def program(compiled):
    main, *others = sorted((PROGRAMS / "hooks_random").glob("*.c"), key=lambda path: path.name != "main.c")
    return compiled(main, *others, f"-I{ROOT / 'src'}", "-ldl", "-lpthread")


def books_of(output):
    families = {}
    for line in output.splitlines():
        name, *words = line.split()
        if len(words) == 14:
            families[name] = {word: int(value) for word, value in zip(words[::2], words[1::2])}
    return families, int(re.search(r"foreign (\d+)", output)[1])


def expect_books(report, output):
    families, foreign = books_of(output)
    for name, books in families.items():
        sites = [site for site in report["sites"] if site["family"] == name]
        for key in ("allocs", "allocated_bytes", "live_bytes", "live_blocks"):
            assert sum(site[key] for site in sites) == books[key], (name, key)
        # A block that ended with its context was not freed.
        assert sum(site["frees"] for site in sites) in (books["frees"], books["frees"] + books["teardowns"]), name
    counters = report["counters"]
    for key in ("allocs", "frees"):
        assert counters[key] == sum(books[key] for books in families.values()), key
    assert counters["teardown_frees"] == sum(books["teardowns"] for books in families.values())
    assert counters["failed_allocs"] == sum(books["failed"] for books in families.values())
    assert counters["foreign_frees"] == foreign
    assert counters["dropped_events"] == 0 and counters.get("replaced_blocks", 0) == 0


@pytest.mark.parametrize("driver", ["direct", "got"])
def test_results_are_the_same_with_and_without_the_library(gmt, program, driver):
    env = {**QUIET, "LD_LIBRARY_PATH": f"{SIMGPU / 'got'}:{SIMGPU}" if driver == "got" else SIMGPU}
    for seed in SEEDS:
        plain = gmt.run(program, seed, CALLS, 1, traced=False, env=env, timeout=TIMEOUT)
        traced = gmt.run(program, seed, CALLS, 1, env={**env, "GPUMEMTRACE_REPORT": "none"}, timeout=TIMEOUT)
        assert traced.out == plain.out, seed


@pytest.mark.parametrize("driver", ["direct", "got"])
@pytest.mark.parametrize("threads", [1, 8], ids=["1-thread", "8-threads"])
def test_books_of_every_family_are_exact(gmt, program, threads, driver):
    env = {**QUIET, "LD_LIBRARY_PATH": f"{SIMGPU / 'got'}:{SIMGPU}" if driver == "got" else SIMGPU}
    for seed in SEEDS:
        done = gmt.run(program, seed, CALLS, threads, env=env, timeout=TIMEOUT)
        expect_books(done.report, done.out)
        if seed == 0:
            expect_books(gmt.rendered(done.recording), done.out)
