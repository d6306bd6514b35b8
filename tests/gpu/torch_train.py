"""A small training loop under PyTorch; its allocator's own figures beside ours. Argument: `graph` captures the step,
`processes` trains in two."""
import sys
import time

import torch
from figures import compare, step_times

from gpumemtrace import DRIVER, FRAMEWORK

KIND = sys.argv[1] if len(sys.argv) > 1 else ""
BACKEND = torch.cuda.get_allocator_backend()


def agree(moment):
    """Tensors exactly, where PyTorch hands out the blocks; what it reserved at least, since its libraries take more."""
    torch.cuda.synchronize()
    if BACKEND == "native":
        compare(f"{moment}: allocated", torch.cuda.memory_allocated(), FRAMEWORK)
        compare(f"{moment}: reserved", torch.cuda.memory_reserved(), DRIVER, slack=256 << 20)
    else:
        compare(f"{moment}: allocated", torch.cuda.memory_allocated(), DRIVER, slack=256 << 20)


def train():
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(8))).cuda()
    optimizer = torch.optim.Adam(model.parameters(), capturable=KIND == "graph")
    batch = torch.randn(256, 1024, device="cuda")
    agree("after loading")

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    if KIND == "graph":
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        step = graph.replay
    times = []
    for _ in range(100):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    agree("after training")
    step_times(times)


def main():
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
