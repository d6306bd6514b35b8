"""DataLoader workers pin each batch; the queue of batches that nobody takes gets longer and longer. The device's own
memory does not grow."""
import threading
import time

import cuda

WORKERS, BATCHES = 3, 60
queue, lock = [], threading.Lock()


def pin(size):
    return cuda.allocate_pinned(size)


def work(context):
    cuda.context_use(context)
    for _ in range(BATCHES):
        batch = pin(512 * cuda.KIB)
        with lock:
            queue.append(batch)
        time.sleep(0.002)


def train():
    staging = cuda.allocate(4 * cuda.MIB)
    cuda.release(staging)


cuda.init()
context = cuda.context_retain(0)
workers = [threading.Thread(target=work, args=(context,)) for _ in range(WORKERS)]
for worker in workers:
    worker.start()
while any(worker.is_alive() for worker in workers):
    train()
    time.sleep(0.002)
