"""64 threads at work at once, with calls of every family, valid and not: the books stay exact, at exit and in the recording,
also in one that is kept small. THREAD_SECONDS makes it as long."""
import os
import time

import pytest
from conftest import SANITIZE, SIMGPU
from test_hooks_random import QUIET, expect_books, program  # noqa: F401

THREADS = 64
SECONDS = int(os.environ.get("THREAD_SECONDS") or 0)
CALLS = 100 if not SANITIZE else 30


@pytest.mark.parametrize("bound", [None, "2M"])
def test_books_stay_exact_with_64_threads(gmt, program, bound):  # noqa: F811
    env = {**QUIET, "LD_LIBRARY_PATH": SIMGPU, "GPUMEMTRACE_MAX_TRACE": bound}
    end, seed, calls = time.monotonic() + SECONDS, 0, CALLS
    while seed == 0 or time.monotonic() < end:
        done = gmt.run(program, seed, calls, THREADS, env=env, timeout=600)
        expect_books(done.report, done.out)
        expect_books(gmt.rendered(done.recording), done.out)
        for path in done.folder.iterdir():
            path.unlink()
        seed, calls = seed + 1, 2000 if not SANITIZE else 300
    print(f"{seed} programs of {THREADS} threads")
