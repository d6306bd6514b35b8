"""gpumemtrace from Python: how much memory a function takes, names for phases, and blocks of other allocators.

    import gpumemtrace

    @gpumemtrace.measure
    def step(batch): ...

    step(batch)
    print(step.memory)                      # step: peak 1.50 GiB, net 12.0 MiB

    with gpumemtrace.measure("validation") as memory:
        validate()
    memory.peak_bytes, memory.net_bytes

    with gpumemtrace.phase("warm-up"): ...  # has a line of its own in the report
    gpumemtrace.step()                      # growth is told per step

This one file needs nothing to be built or installed but itself. Without libgpumemtrace.so in the process (LD_PRELOAD, or
`gpumemtrace run`) everything still works, and every figure is 0. Python 3.8 and later.

All figures are those of the process: what other threads allocate meanwhile counts too.
"""
import contextlib
import ctypes
import functools
import inspect
from collections import namedtuple

__all__ = ["DRIVER", "FRAMEWORK", "Change", "Measurement", "Usage", "active", "block_begin", "block_end", "measure", "phase",
           "step", "usage"]

DRIVER = 0  # memory that the CUDA driver handed out
FRAMEWORK = 1  # what frameworks' allocators handed out of it, such as tensors

_ALL_DEVICES = -1


class _Usage(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("live_bytes", "live_blocks", "start_bytes", "peak_bytes")]


Usage = namedtuple("Usage", "live_bytes live_blocks peak_bytes")
Change = namedtuple("Change", "peak_bytes net_bytes start_bytes")


def _nothing(*_):
    return 0


def _find(name, result, *arguments):
    """The library's function itself, so that no frame of this file is in a recorded stack."""
    try:
        function = getattr(ctypes.CDLL(None), "gpumemtrace_" + name)
    except AttributeError:
        return _nothing
    function.restype, function.argtypes = result, arguments
    return function


_active = _find("active", ctypes.c_int)
_phase_begin = _find("phase_begin", None, ctypes.c_char_p)
_phase_end = _find("phase_end", None)
_step = _find("step", None)
_mark = _find("mark", ctypes.c_int)
_unmark = _find("unmark", None, ctypes.c_int)
_get_usage = _find("get_usage", ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.POINTER(_Usage))


def active():
    """True in a process that gpumemtrace records, or will from its first allocation on."""
    return _active() != 0


def step():
    """A step of the program (a batch, a request) has ended: growth is told per step."""
    _step()


block_begin = _find("block_begin", None, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
"""block_begin(b"cupy", address, bytes, device): another allocator hands out a block of memory that it took earlier. It is
listed with the line that asked for it, inside the memory that the driver handed out. The name is bytes."""

block_end = _find("block_end", None, ctypes.c_char_p, ctypes.c_void_p)
"""block_end(b"cupy", address): and takes it back, before it can be handed out again."""


def _ask(mark, layer, device):
    found = _Usage()
    _get_usage(mark, layer, _ALL_DEVICES if device is None else device, ctypes.byref(found))
    return found


def usage(layer=DRIVER, device=0):
    """Device memory in use now, and its peak over the whole run. `device` None is all together, of which no peak is known."""
    found = _ask(0, layer, device)
    return Usage(found.live_bytes, found.live_blocks, found.peak_bytes)


def _size(size):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024 or unit == "GiB":
            return f"{size} B" if unit == "B" else f"{size:.2f} {unit}" if unit == "GiB" else f"{size:.1f} {unit}"
        size /= 1024


class Measurement:
    """What one piece of code did with device memory. Of each layer, `driver` and `framework`, a Change: peak_bytes, the most
    that was in use at once beyond what was in use at the start; net_bytes, what is in use more than then (less: negative);
    start_bytes. peak_bytes and net_bytes of the measurement itself are those of frameworks' blocks (tensors) where there
    are any, and else the driver's."""

    def __init__(self, name="", device=None):
        self.name, self.device = name, device
        self._number = None
        self._changes = [Change(0, 0, 0), Change(0, 0, 0)]

    def start(self):
        self._number = _mark()
        return self

    def stop(self):
        if self._number:
            self._changes = [self._change(layer) for layer in (DRIVER, FRAMEWORK)]
            _unmark(self._number)
        self._number = None
        return self

    def _change(self, layer):
        found = _ask(self._number, layer, self.device)
        return Change(found.peak_bytes - found.start_bytes, found.live_bytes - found.start_bytes, found.start_bytes)

    def _current(self, layer):
        return self._change(layer) if self._number else self._changes[layer]

    @property
    def driver(self):
        return self._current(DRIVER)

    @property
    def framework(self):
        return self._current(FRAMEWORK)

    def _main(self):
        change = self.framework
        return change if change.peak_bytes or change.start_bytes else self.driver

    @property
    def peak_bytes(self):
        return self._main().peak_bytes

    @property
    def net_bytes(self):
        return self._main().net_bytes

    def __str__(self):
        return f"{self.name or 'this code'}: peak {_size(self.peak_bytes)}, net {_size(self.net_bytes)}"

    __repr__ = __str__


class measure:
    """Measures one piece of code, as a context manager, which gives the Measurement, or as a decorator, with or without
    arguments: the decorated function's last Measurement is its attribute `memory`. `each`, where given, is called with
    every finished Measurement (print will do). `device` None is all devices together."""

    def __new__(cls, name="", device=None, each=None):
        self = super().__new__(cls)
        self._name, self._device, self._each = name, device, each
        self._running = []
        if callable(name):
            self._name = ""
            return self(name)
        return self

    def __enter__(self):
        self._running.append(Measurement(self._name, self._device).start())
        return self._running[-1]

    def __exit__(self, *_):
        self._finish(self._running.pop())

    def _finish(self, measurement):
        measurement.stop()
        if self._each:
            self._each(measurement)

    @contextlib.contextmanager
    def _call(self, wrapper):
        measurement = Measurement(self._name or wrapper.__name__, self._device).start()
        try:
            yield
        finally:
            wrapper.memory = measurement
            self._finish(measurement)

    def __call__(self, function):
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def wrapper(*arguments, **named):
                with self._call(wrapper):
                    return await function(*arguments, **named)
        else:
            @functools.wraps(function)
            def wrapper(*arguments, **named):
                with self._call(wrapper):
                    return function(*arguments, **named)
        wrapper.memory = Measurement(self._name or wrapper.__name__, self._device)
        return wrapper


class phase(contextlib.ContextDecorator):
    """Names what this thread does: with phase("forward"): … or @phase("forward"). Phases nest; each has a line of its own in
    the report, with its peak and what it left behind."""

    def __init__(self, name):
        self._name = str(name).encode("utf-8", "replace")

    def __enter__(self):
        _phase_begin(self._name)
        return self

    def __exit__(self, *_):
        _phase_end()
