"""A random workload that keeps its own books: random_books.py SEED STEPS prints them as JSON when it is done.

Every place that allocates is a function with one call, so that a place, a family and a device make one site.
"""
import json
import random
import sys

import cuda

DEVICES = 2


def plain(size):
    return cuda.allocate(size), size


def pitched(size):
    width, height = 100 + size % 1000, 1 + size % 37
    address, pitch = cuda.allocate_pitched(width, height, 4)
    return address, pitch * height


def managed(size):
    return cuda.allocate_managed(size), size


def pooled(size):
    return cuda.allocate_async(size), size


def pooled_twice_as_deep(size):
    return pooled_deep(size)


def pooled_deep(size):
    return cuda.allocate_async(size), size


def pinned(size):
    return cuda.allocate_pinned(size), size


# function, family, space, how blocks of it are given back
PLACES = [
    (plain, "plain", "device", [cuda.release]),
    (pitched, "pitched", "device", [cuda.release]),
    (managed, "managed", "managed", [cuda.release]),
    (pooled, "pool", "device", [cuda.release_async, cuda.release]),
    (pooled_twice_as_deep, "pool", "device", [cuda.release_async]),
    (pinned, "pinned", "pinned", [cuda.release_pinned]),
]


class Account:
    """Totals of a site or a space."""

    def __init__(self):
        self.allocs = self.frees = self.allocated_bytes = self.live_bytes = self.live_blocks = self.peak_bytes = 0
        self.at_peak = {}  # of a space: site -> (bytes, blocks)

    def add(self, size):
        self.allocs += 1
        self.allocated_bytes += size
        self.live_bytes += size
        self.live_blocks += 1

    def remove(self, size):
        self.frees += 1
        self.live_bytes -= size
        self.live_blocks -= 1


class Books:
    def __init__(self):
        self.sites, self.spaces = {}, {}
        self.failed = 0

    def add(self, site, space, size):
        self.sites.setdefault(site, Account()).add(size)
        account = self.spaces.setdefault(space, Account())
        account.add(size)
        if account.live_bytes > account.peak_bytes:
            account.peak_bytes = account.live_bytes
            account.at_peak = {s: (a.live_bytes, a.live_blocks) for s, a in self.sites.items()
                               if a.live_blocks and s[2:] == space}

    def remove(self, site, space, size):
        self.sites[site].remove(size)
        self.spaces[space].remove(size)


def random_size(random):
    return int(2 ** random.uniform(3, 22))


def run(seed, steps):
    choose = random.Random(seed)
    books, blocks = Books(), []
    contexts = []
    cuda.init_driver(0)
    for device in range(DEVICES):
        contexts.append(cuda.context_retain(device))
    for step in range(steps):
        # Rising and falling tides, so that peaks come and go.
        tide = 0.5 + 0.35 * (1 if (step // 200) % 2 == 0 else -1)
        if blocks and choose.random() > tide:
            site, space, size, address, ways = blocks.pop(choose.randrange(len(blocks)))
            choose.choice(ways)(address)
            books.remove(site, space, size)
            continue
        device = choose.randrange(DEVICES)
        cuda.context_use(contexts[device])
        place, family, space_name, ways = choose.choice(PLACES)
        if choose.random() < 0.02:
            try:
                plain(1 << 50)
            except cuda.CudaError as error:
                assert error.code == cuda.OUT_OF_MEMORY
                books.failed += 1
            continue
        address, size = place(random_size(choose))
        on = None if space_name == "pinned" else device
        site, space = (place.__name__, family, space_name, on), (space_name, on)
        books.add(site, space, size)
        blocks.append((site, space, size, address, ways))
    return books


def main():
    books = run(int(sys.argv[1]), int(sys.argv[2]))
    json.dump({"sites": [[site, vars(account)] for site, account in books.sites.items()],
               "spaces": [[space, {**vars(account), "at_peak": list(account.at_peak.items())}]
                          for space, account in books.spaces.items()],
               "failed": books.failed}, sys.stdout)


if __name__ == "__main__":
    main()
