"""`import real_torch` gives PyTorch on the simulated GPU, in `torch`: the runtime that PyTorch brings along would refuse
that driver, so the simulated one is loaded before it under the same name."""
import ctypes
import os

for name in ("libcudart.so.13", "libcudart.so.12"):
    ctypes.CDLL(os.path.join(os.environ["SIMGPU_FOLDER"], name), ctypes.RTLD_GLOBAL)

import torch  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20


def make(size):
    return torch.empty(size, dtype=torch.uint8, device="cuda")


def own_figures():
    """What PyTorch's allocator says of itself."""
    segments = {}
    for segment in torch.cuda.memory_snapshot():
        free = [block["size"] for block in segment["blocks"] if block["state"] == "inactive"]
        segments[segment["address"]] = [segment["total_size"], segment["allocated_size"], max(free, default=0),
                                        sum(block["state"] == "active_allocated" for block in segment["blocks"])]
    stats = torch.cuda.memory_stats()
    return {"reserved": torch.cuda.memory_reserved(), "allocated": torch.cuda.memory_allocated(),
            "max_reserved": torch.cuda.max_memory_reserved(), "max_allocated": torch.cuda.max_memory_allocated(),
            "inactive_split": stats["inactive_split_bytes.all.current"], "ooms": stats["num_ooms"],
            "retries": stats["num_alloc_retries"], "blocks": stats["allocation.all.current"],
            "segments": sorted(segments.items())}
