"""Each operator that PyTorch's own test suite knows, on the CPU and on that suite's sample inputs: a line with its name,
type and number of samples, and the hash of every result and gradient, or of the error. Nothing in it depends on the run.

Arguments: the most samples of an operator, then the types (float32), then `i/n` for the i-th part of n of the list."""
import hashlib
import random
import re
import sys
import warnings
from itertools import islice

import numpy
import torch
from torch.testing._internal.common_methods_invocations import op_db

ADDRESS = re.compile(r"0x[0-9a-f]+")


def plain(tensor):
    return tensor.detach().resolve_conj().resolve_neg().contiguous().flatten()


def add(into, value):
    """The bits of tensors, wherever in `value` they stand."""
    if isinstance(value, torch.Tensor):
        into.update(f"{value.dtype} {value.layout} {tuple(value.shape) if not value.is_nested else ''}".encode())
        if value.is_nested:
            add(into, value.unbind())
        elif value.layout != torch.strided:
            add(into, value.to_dense())
        elif value.is_quantized:
            add(into, value.int_repr())
        elif value.numel():
            into.update(plain(value).view(torch.uint8).numpy().tobytes())
    elif isinstance(value, (list, tuple)):
        for item in value:
            add(into, item)
    elif isinstance(value, dict):
        add(into, list(value.items()))
    else:
        into.update(ADDRESS.sub("", repr(value)).encode())


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def differentiable(value):
    return [t for t in tensors_in(value) if t.requires_grad and t.layout == torch.strided and not t.is_nested]


def gradients(result, sample):
    ends = differentiable(result)
    starts = differentiable((sample.input, sample.args, list(sample.kwargs.values())))
    if not ends or not starts:
        return None
    return torch.autograd.grad(ends, starts, [torch.ones_like(end) for end in ends], allow_unused=True)


def seed():
    torch.manual_seed(0)
    numpy.random.seed(0)
    random.seed(0)


def attempt(into, function, *arguments):
    """Its result; None when it raises, whose words then count."""
    seed()
    try:
        result = function(*arguments)
        add(into, result)
        return result
    except Exception as error:
        into.update(ADDRESS.sub("", f"{type(error).__name__}: {error}").encode())
        return None


def line_of(op, dtype, most):
    into, count = hashlib.sha256(), 0
    seed()
    for sample in islice(op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd and dtype.is_floating_point), most):
        count += 1
        result = attempt(into, lambda: op(sample.input, *sample.args, **sample.kwargs))
        if op.supports_autograd and result is not None:
            attempt(into, gradients, result, sample)
    return f"{op.name}{'.' if op.variant_test_name else ''}{op.variant_test_name} {dtype} {count} {into.hexdigest()[:24]}"


def main():
    most, dtypes, part = 3, [torch.float32], (0, 1)
    for word in sys.argv[1:]:
        if word.isdigit():
            most = int(word)
        elif "/" in word:
            part = tuple(map(int, word.split("/")))
    names = [word for word in sys.argv[1:] if hasattr(torch, word)]
    dtypes = [getattr(torch, name) for name in names] or dtypes
    warnings.simplefilter("ignore")
    torch.use_deterministic_algorithms(True, warn_only=True)  # and no memory is left as it was found
    torch.set_num_threads(1)
    for op in op_db[part[0]::part[1]]:
        for dtype in dtypes:
            if dtype not in op.supported_dtypes("cpu"):
                continue
            try:
                line = line_of(op, dtype, most)
            except Exception as error:
                line = f"{op.name} {op.variant_test_name} {dtype} no samples: {type(error).__name__}: {ADDRESS.sub('', str(error))}"
            print(line.replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
