"""What people do with PyTorch on the CPU, with fixed seeds: every line that a program prints is the same in each run.
Argument: which of them."""
import sys
import threading
import warnings

import torch
import torch.multiprocessing as processes
from torch.utils.data import DataLoader, Dataset


def bits(tensor):
    return tensor.detach().double().sum().item().hex()


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(),
                               torch.nn.Linear(8 * 14 * 14, 32), torch.nn.Dropout(0.1), torch.nn.Linear(32, 4))


def steps(model, count, say=print):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(count):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 3, 16, 16)), torch.randint(4, (8,)))
        loss.backward()
        optimizer.step()
        say(loss.item().hex(), bits(model[0].weight))


def train():
    steps(network(), 20)


class Squares(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return torch.full((3,), float(index)) ** 2 + torch.rand(1, generator=torch.Generator().manual_seed(index))


def loaders():
    """Workers of each kind, and one that fails: its words come back."""
    for kind in ("fork", "spawn", "forkserver"):
        torch.manual_seed(0)
        loader = DataLoader(Squares(), 8, shuffle=True, num_workers=2, multiprocessing_context=kind, persistent_workers=True)
        for turn in range(2):
            print(kind, turn, [bits(batch) for batch in loader])
        try:
            list(DataLoader(Failing(), 8, num_workers=1, multiprocessing_context=kind))
        except ValueError as error:
            print(kind, str(error).splitlines()[0], str(error).splitlines()[-1])


class Failing(Squares):
    def __getitem__(self, index):
        raise ValueError(f"no item {index}")


def send(queue, number, shared):
    torch.manual_seed(number)
    shared[number] += number
    queue.put(torch.randn(1000))
    queue.join()



def processes_of_each_kind():
    for kind in ("fork", "spawn", "forkserver"):
        for sharing in ("file_descriptor", "file_system"):
            processes.set_sharing_strategy(sharing)
            context = processes.get_context(kind)
            queue, shared = context.JoinableQueue(), torch.zeros(3).share_memory_()
            children = [context.Process(target=send, args=(queue, number, shared)) for number in range(3)]
            for child in children:
                child.start()
            found = [queue.get() for _ in children]
            print(kind, sharing, sorted(map(bits, found)), end=" ")
            for _ in children:
                queue.task_done()
            for child in children:
                child.join()
            print(bits(shared), [child.exitcode for child in children])


def threads():
    """Each trains a net of its own; autograd has threads besides."""
    lines = [[] for _ in range(4)]
    torch.set_num_threads(1)

    def work(number):
        model = torch.nn.Linear(64, 64)
        generator = torch.Generator().manual_seed(number)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
        for _ in range(2):
            loss = model(torch.randn(16, 64, generator=generator)).square().mean()
            loss.backward()
            lines[number].append((loss.item().hex(), bits(model.weight.grad)))

    found = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in found:
        thread.start()
    for thread in found:
        thread.join()
    for number, of_thread in enumerate(lines):
        for line in of_thread:
            print(number, *line)


def profiler():
    """The sums of memory come by the function of c10 that the library stands before."""
    model = network()
    with torch.profiler.profile(profile_memory=True, record_shapes=True) as found:
        steps(model, 3, say=lambda *_: None)
    for row in sorted(found.key_averages(), key=lambda row: row.key):
        print(row.key, row.count, row.self_cpu_memory_usage)


def compiled():
    """TorchScript, where it is, and Inductor, which makes C++ and builds it."""
    model = network().eval()
    warnings.simplefilter("ignore")
    batch = torch.randn(8, 3, 16, 16)
    print("eager", bits(model(batch)))
    print("traced", bits(torch.jit.trace(model, batch)(batch)))
    torch.manual_seed(0)
    fast = torch.compile(torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU(), torch.nn.Linear(32, 1)))
    optimizer = torch.optim.SGD(fast.parameters(), 0.1)
    for _ in range(8):
        loss = fast(torch.randn(16, 32)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("compiled", loss.item().hex())


def ranks():
    """Two, by torchrun with gloo; the first one prints."""
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(network())
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(10):
        loss = model(torch.randn(4, 3, 16, 16)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total = loss.detach().clone()
        torch.distributed.all_reduce(total)
        if rank == 0:
            print(loss.item().hex(), flush=True)
            print(total.item().hex(), flush=True)
    torch.distributed.destroy_process_group()


PROGRAMS = {"train": train, "loaders": loaders, "processes": processes_of_each_kind, "threads": threads,
            "profiler": profiler, "compiled": compiled, "ranks": ranks}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
