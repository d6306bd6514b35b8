"""Each request is served by a thread that makes a context of its own. One kind of request destroys it, and with it the
buffers that were left in it; the other kind forgets it."""
import threading

import cuda

REQUESTS = 12


def buffers_of_tidy():
    return cuda.allocate(6 * cuda.MIB)


def buffers_of_careless():
    return cuda.allocate(3 * cuda.MIB)


def tidy():
    context = cuda.context_create(0, 0)
    buffers_of_tidy()
    cuda.context_destroy(context)


def careless():
    cuda.context_create(0, 0)
    buffers_of_careless()


cuda.init_driver(0)
for request in range(REQUESTS):
    thread = threading.Thread(target=careless if request % 2 else tidy)
    thread.start()
    thread.join()
