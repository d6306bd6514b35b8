"""Two devices in one process, as with nn.DataParallel: each has its peak when the other is nearly empty, so that both
together never held what the two peaks add up to."""
import cuda


def replica(size):
    return cuda.allocate(size)


cuda.init_driver(0)
for round in range(5):
    for device in range(2):
        cuda.use(device)
        block = replica((300 - 100 * device) * cuda.MIB)
        kept = replica(20 * cuda.MIB) if round == 0 else None
        cuda.release(block)
