"""A thread for each request, with a workspace in thread-local storage that nobody gives back when the thread ends; the
activations of each request are given back."""
import threading
import time

import cuda

REQUESTS = 80
local = threading.local()


def workspace():
    if not hasattr(local, "workspace"):
        local.workspace = cuda.allocate(768 * cuda.KIB)
    return local.workspace


def answer(context):
    cuda.context_use(context)
    workspace()
    activations = cuda.allocate(2 * cuda.MIB)
    time.sleep(0.001)
    cuda.release(activations)


cuda.init()
context = cuda.context_retain(0)
for _ in range(REQUESTS):
    thread = threading.Thread(target=answer, args=(context,))
    thread.start()
    thread.join()
