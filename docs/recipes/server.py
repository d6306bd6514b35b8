"""A server with worker processes, for the recipes in docs/recipes.md: each request takes memory and gives it back, all
but 3 MiB. It ends as such servers do: the master kills its workers by SIGTERM, on a SIGTERM of its own or when the
number of requests that was asked for is answered.

Needs tests/programs and python of this project on PYTHONPATH.
"""
import itertools
import multiprocessing
import os
import signal
import sys
import time

import cuda
import gpumemtrace

WORKERS, REQUESTS_A_SECOND = 2, 100
LIMIT = int(sys.argv[1]) if len(sys.argv) > 1 else 0  # requests of a worker; 0: none
prefixes = []


def remember_prefix():
    prefixes.append(cuda.allocate(3 * cuda.MIB))


@gpumemtrace.phase("request")
def answer():
    cache = cuda.allocate(64 * cuda.MIB)
    remember_prefix()
    cuda.release(cache)


def work(answered):
    cuda.init()
    cuda.allocate(1 * cuda.GIB)  # the model
    for request in itertools.count(1):
        answer()
        gpumemtrace.step()
        if request == LIMIT:
            answered.release()
            signal.pause()
        time.sleep(1 / REQUESTS_A_SECOND)


def serve():
    context = multiprocessing.get_context("fork")
    answered = context.Semaphore(0)
    workers = [context.Process(target=work, args=(answered,)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    signal.signal(signal.SIGTERM, lambda *_: [worker.terminate() for worker in workers])
    print(f"serving with {WORKERS} workers", flush=True)
    if LIMIT:
        for _ in workers:
            answered.acquire()
        os.kill(os.getpid(), signal.SIGTERM)
    for worker in workers:
        worker.join()


serve()
