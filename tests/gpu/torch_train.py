"""A small training loop under PyTorch; its allocator's own figures beside ours. Argument: `graph` captures the step,
`processes` trains in two."""
import os
import sys
import time

if os.environ.get("SIMULATED"):
    from real_torch import torch
else:
    import torch
from figures import compare, compare_in_report, held_by_others, step_times

from gpumemtrace import FRAMEWORK

KIND = sys.argv[1] if len(sys.argv) > 1 else ""
MIB = 1 << 20
WIDTH = 2048
STEPS = 10 if os.environ.get("SIMULATED") else 100


class Scale(torch.nn.Module):
    """A layer without a matrix product: the simulated GPU has no cuBLAS."""
    def __init__(self, width, _):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width, width))

    def forward(self, x):
        return x + self.weight[:x.shape[0]]


LAYER = Scale if os.environ.get("SIMULATED") else torch.nn.Linear


def agree_on_tensors(moment):
    torch.cuda.synchronize()
    compare(f"{moment}: allocated", torch.cuda.memory_allocated(), FRAMEWORK)


def agree_on_growth(name, own):
    """Every byte that PyTorch takes or gives back from now on: its libraries have taken theirs."""
    others = held_by_others(own())
    more = [torch.empty(size * MIB, dtype=torch.uint8, device="cuda") for size in (1, 30, 64, 200)]
    compare(f"{name} with more tensors", own(), before=others)
    del more
    torch.cuda.empty_cache()
    compare(f"{name} with an emptied cache", own(), before=others)


def agree_at_the_end():
    row = ["fragmentation", {"device": 0}]
    if torch.cuda.get_allocator_backend() == "native":
        compare_in_report("peak of tensors", torch.cuda.max_memory_allocated(), "framework_peaks", {"device": 0}, "bytes")
        compare_in_report("peak of the cache", torch.cuda.max_memory_reserved(),
                          *row, "frameworks", {"name": "pytorch"}, "at_peak", "reserved_bytes")
        compare_in_report("cache at exit", torch.cuda.memory_reserved(), *row, "frameworks", {"name": "pytorch"}, "reserved_bytes")


def train():
    torch.manual_seed(0)
    native = torch.cuda.get_allocator_backend() == "native"
    model = torch.nn.Sequential(*(LAYER(WIDTH, WIDTH) for _ in range(8))).cuda()
    optimizer = torch.optim.Adam(model.parameters(), capturable=KIND == "graph")
    batch = torch.randn(256, WIDTH, device="cuda")
    if native:
        agree_on_tensors("after loading")

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    if KIND == "graph":
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        step = graph.replay
    times = []
    for _ in range(STEPS):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    if native:
        agree_on_tensors("after training")
        agree_on_growth("reserved", torch.cuda.memory_reserved)
    else:
        agree_on_growth("allocated", torch.cuda.memory_allocated)
    agree_at_the_end()
    step_times(times)


def main():
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU")
    if KIND != "processes":
        train()
        return
    import torch.multiprocessing as processes

    context = processes.get_context("spawn")
    workers = [context.Process(target=train) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.exit(any(worker.exitcode for worker in workers))


if __name__ == "__main__":
    main()
