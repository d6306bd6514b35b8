"""Two ranks, of which the second holds more, for docs/recipes.md."""
import torch
import torch.distributed as distributed


def shard(rank, ranks):
    weights = []
    for _ in range(24 // ranks + rank):
        weights.append(torch.empty(1 << 20, device="cuda"))
    return weights


def train():
    distributed.init_process_group("gloo")
    weights = shard(distributed.get_rank(), distributed.get_world_size())
    for step in range(10):
        batch = torch.empty(1 << 22, device="cuda")
        distributed.all_reduce(torch.ones(1))
    distributed.destroy_process_group()
    return weights, batch


train()
