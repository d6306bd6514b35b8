"""The shapes of Python code that python_stacks.py takes stacks in: SHAPES, functions that each call what they are given in
some way. The C code among them is the capture probe's (argument 1)."""
import asyncio
import contextlib
import ctypes
import functools
import gc
import importlib.abc
import importlib.util
import re
import signal
import sys
import threading
import weakref

PROBE = sys.argv[1]
CALLBACK = ctypes.CFUNCTYPE(None)
detached, attached = ctypes.CDLL(PROBE), ctypes.PyDLL(PROBE)


def plain(f):
    f()


def by_lambda(f):
    (lambda: f())()


def closure(f):
    def inner():
        f()
    inner()


def generator(f):
    def values():
        yield 1
        yield f()
    for _ in values():
        pass


def generator_expression(f):
    list(g() for g in [f])


def yield_from(f):
    def inner():
        yield f()

    def outer():
        yield from inner()
    list(outer())


def throw_into_generator(f):
    def values():
        try:
            yield
        except KeyError:
            f()
    made = values()
    next(made)
    with contextlib.suppress(StopIteration):
        made.throw(KeyError)


def close_generator(f):
    def values():
        try:
            yield
        finally:
            f()
    made = values()
    next(made)
    made.close()


def coroutine(f):
    async def inner():
        f()

    async def outer():
        await inner()
    with contextlib.suppress(StopIteration):
        outer().send(None)


def event_loop(f):
    async def inner():
        await asyncio.sleep(0)
        f()

    async def outer():
        await asyncio.gather(inner(), asyncio.sleep(0))
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(outer())
        loop.close()
    else:
        f()


def async_generator(f):
    async def values():
        yield 1
        f()
        yield 2

    async def outer():
        return [v async for v in values()]
    with contextlib.suppress(StopIteration):
        outer().send(None)


def comprehensions(f):
    [g() for g in [f]]
    {g() for g in [f]}
    {1: g() for g in [f]}


def nested_comprehension(f):
    [[g() for _ in (1,)] for g in [f]]


def by_exec(f):
    exec("\n\n\ndef made():\n    f()\n\n\nmade()", {"f": f})


def by_eval(f):
    eval("(lambda: f())()", {"f": f})


def far_lines(f):
    """Line numbers that jump by hundreds, up and down."""
    text = "def made(f, x=0):" + "\n" * 700 + "    if x:\n        return" + "\n" * 300 + "    return (\n" + \
        "\n" * 140 + "        f(),\n" + "\n" * 5 + "        x)\n"
    scope = {}
    exec(compile(text, "<far>", "exec"), scope)
    scope["made"](f)


def long_function(f):
    """Enough code that offsets need extended arguments."""
    lines = ["def made(f):", "    x = 0"] + ["    x += len([%d])" % i for i in range(400)] + ["    f()", "    return x"]
    scope = {}
    exec(compile("\n".join(lines), "<long>", "exec"), scope)
    scope["made"](f)


def decorated(f):
    def decorator(g):
        @functools.wraps(g)
        def wrapper(*args):
            return g(*args)
        return wrapper

    @decorator
    @decorator
    def inner():
        f()
    inner()


def partial(f):
    functools.partial(plain, f)()


def cached(f):
    @functools.lru_cache()
    def inner():
        f()
    inner()


def class_body(f):
    class Made:
        f()


class Kind:
    def __init__(self, f=None):
        self.f = f
        if f:
            f()

    def method(self, f):
        f()

    @classmethod
    def of_class(cls, f):
        f()

    @staticmethod
    def static(f):
        f()

    @property
    def lazily(self):
        self.f()

    def __getattr__(self, name):
        self.f()

    def __getitem__(self, key):
        key()

    def __add__(self, f):
        f()
        return self

    def __call__(self, f):
        f()

    def __iter__(self):
        return self

    def __next__(self):
        self.f()
        raise StopIteration

    def __eq__(self, other):
        other()

    def __enter__(self):
        self.f()

    def __exit__(self, *what):
        self.f()


class Derived(Kind):
    def __init__(self, f):
        super().__init__(f)


def methods(f):
    kind = Kind()
    kind.method(f)
    kind.of_class(f)
    kind.static(f)
    kind(f)
    kind[f]
    kind + f
    kind == f
    Derived(f)


def special_methods(f):
    kind = Kind()
    kind.f = f
    kind.lazily
    kind.nothing
    list(kind)
    with kind:
        pass


def metaclass(f):
    class Meta(type):
        def __call__(cls):
            f()
            return super().__call__()

    class Made(metaclass=Meta):
        pass
    Made()


def context_manager(f):
    @contextlib.contextmanager
    def around():
        f()
        yield
        f()
    with around():
        f()


def exceptions(f):
    try:
        try:
            raise ValueError
        except ValueError:
            f()
            raise KeyError
        finally:
            f()
    except KeyError:
        f()


def in_c(f):
    sorted([1], key=lambda _: f())
    list(map(lambda _: f(), [1]))
    max([1], key=lambda _: f())
    re.sub("a", lambda _: str(f()), "a")
    functools.reduce(lambda a, b: f(), [1, 2])
    "{}".format(Text(f))


class Text:
    def __init__(self, f):
        self.f = f

    def __format__(self, _):
        self.f()
        return ""


def from_c(f):
    detached.probe_call(CALLBACK(f))


def from_c_attached(f):
    attached.probe_call(CALLBACK(f))


def foreign_thread(f):
    detached.probe_call_in_thread(CALLBACK(f))


def thread(f):
    made = threading.Thread(target=f)
    made.start()
    made.join()


def finalizer(f):
    class Made:
        def __del__(self):
            f()
    made = Made()
    del made


def weak_callback(f):
    class Made:
        pass
    made = Made()
    weak = weakref.ref(made, lambda _: f())
    del made
    assert weak() is None


def in_collection(f):
    class Made:
        def __del__(self):
            f()
    made = Made()
    made.itself = made
    del made
    gc.collect()


def in_signal(f):
    if threading.current_thread() is not threading.main_thread():
        return f()
    before = signal.signal(signal.SIGUSR1, lambda *_: f())
    signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


class Loader(importlib.abc.Loader):
    def __init__(self, f):
        self.f = f

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(compile("f()", "<module>", "exec"), {"f": self.f})


class Finder(importlib.abc.MetaPathFinder):
    count = 0

    def __init__(self, f):
        Finder.count += 1
        self.f, self.name = f, f"made_up_{Finder.count}"

    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, Loader(self.f)) if name == self.name else None


def imported(f):
    finder = Finder(f)
    sys.meta_path.insert(0, finder)
    try:
        __import__(finder.name)
    finally:
        sys.meta_path.remove(finder)
        sys.modules.pop(finder.name, None)


def größe(f):
    def 名前():
        f()
    名前()


def unusual_names(f):
    for file in ("ünï/日本.py", "\U0002000b.py", "raw\udcff.py", "a" * 300 + ".py"):
        scope = {}
        exec(compile("def \U0002000b(f):\n  f()\n", file, "exec"), scope)
        scope["\U0002000b"](f)


def traced(f):
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        f()
    finally:
        sys.settrace(before)


def in_trace_function(f):
    def inner():
        pass
    before = sys.gettrace()
    sys.setprofile(lambda frame, event, _: f() if event == "call" and frame.f_code is inner.__code__ else None)
    try:
        inner()
    finally:
        sys.setprofile(None)
        sys.settrace(before)


def expression_over_lines(f):
    return (f(),
            f(
            ),
            [f()
             for _ in (1,)],
            )


def greenlets(f):
    def inner():
        main.switch()
        f()
    made = greenlet.greenlet(inner)
    main = greenlet.getcurrent()
    made.switch()
    made.switch()


SHAPES = [plain, by_lambda, closure, generator, generator_expression, yield_from, throw_into_generator,
          close_generator, coroutine, event_loop, async_generator, comprehensions, nested_comprehension, by_exec,
          by_eval, far_lines, long_function, decorated, partial, cached, class_body, methods, special_methods, metaclass,
          context_manager, exceptions, in_c, from_c, from_c_attached, foreign_thread, thread, finalizer, weak_callback,
          in_collection, in_signal, imported, größe, unusual_names, traced, in_trace_function, expression_over_lines]
try:
    import greenlet
    SHAPES.append(greenlets)
except ImportError:
    pass
