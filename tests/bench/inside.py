"""In the processes that are measured: inside.py BUILD WHAT ARGUMENTS. Prints figures for bench.py.

Everything here is called at a chosen depth of Python frames, and from there goes down a chosen number of native ones.
"""
import ctypes
import json
import os
import pathlib
import sys
import threading

FOREIGN_FRAMES = 5  # native ones of ctypes and libffi, between the interpreter and the function it calls
PYTHON_FRAMES = {"main": 2, "thread": 4}  # that are there before the first of descend()


class EventResult(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("alloc_ns", "free_ns", "events", "began_ns", "ended_ns", "ran_ns", "latency_ns")]


def load(build, name):
    return ctypes.CDLL(f"{build}/bench/{name}.so")


def start_driver():
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "programs"))
    import cuda
    cuda.init()
    return cuda


def descend(frames, function, *arguments):
    if frames > 1:
        return descend(frames - 1, function, *arguments)
    return function(*arguments)


def native(frames):
    return max(int(frames) - FOREIGN_FRAMES, 1)


def events(build, kind, native_frames, python_frames, threads):
    """The times of allocations and frees, of each thread. `kind`: malloc, cuda, or alone, for cuda before all other
    programs on the machine."""
    library = load(build, "events")
    if library.events_use(kind == "malloc"):
        sys.exit("no driver")
    if kind == "alone":
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    library.events_barrier.restype = ctypes.c_void_p
    barrier = ctypes.c_void_p(library.events_barrier(int(threads)))
    results = [EventResult() for _ in range(int(threads))]

    def work(result):
        descend(int(python_frames) - PYTHON_FRAMES["thread"], library.events_measure, native(native_frames), barrier,
                ctypes.byref(result))

    made = [threading.Thread(target=work, args=(result,)) for result in results]
    for thread in made:
        thread.start()
    for thread in made:
        thread.join()
    print(json.dumps([{name: getattr(result, name) for name, _ in EventResult._fields_} for result in results]))


def parts(build, native_frames, python_frames, recording, threads="1"):
    """Of several threads, which take stacks at once, the mean; they measure no other parts."""
    library = load(build, "parts")
    library.parts_name.restype = ctypes.c_char_p
    if library.parts_start(recording.encode()):
        sys.exit(f"cannot write {recording}")
    names = []
    while library.parts_name(len(names)):
        names.append(library.parts_name(len(names)).decode())
    ns, frames = [(ctypes.c_double * len(names))() for _ in range(int(threads))], (ctypes.c_int * 3)()
    if threads == "1":
        descend(int(python_frames) - PYTHON_FRAMES["main"], library.parts_measure, native(native_frames), 1, ns[0], frames)
    else:
        barrier = threading.Barrier(len(ns))

        def work(result):
            barrier.wait()
            descend(int(python_frames) - PYTHON_FRAMES["thread"], library.parts_measure, native(native_frames), 0, result,
                    frames)
        made = [threading.Thread(target=work, args=(result,)) for result in ns]
        for thread in made:
            thread.start()
        for thread in made:
            thread.join()
    print(json.dumps({"ns": {name: sum(one) / len(ns) for name, *one in zip(names, *ns)}, "native": frames[0],
                      "python": frames[1], "pointers": frames[2]}))


def private_kib():
    for line in open("/proc/self/status", encoding="ascii"):
        if line.startswith("RssAnon:"):
            return int(line.split()[1])


def memory(build, what, native_frames, python_frames, count):
    """What the process's own memory grows by, in bytes for each of `count` blocks or sites."""
    library = load(build, "load")
    start_driver()
    library.load_start()
    function = getattr(library, f"load_{what}")
    at = int(python_frames) - PYTHON_FRAMES["main"]
    descend(at, function, native(native_frames), 100)
    before = private_kib()
    descend(at, function, native(native_frames), int(count))
    print((private_kib() - before) * 1024 / int(count))


def leave(build, native_frames, python_frames, count):
    """Exits with `count` sites; prints when that began."""
    library = load(build, "load")
    start_driver()
    library.load_start()
    descend(int(python_frames) - PYTHON_FRAMES["main"], library.load_sites, native(native_frames), int(count))
    library.load_exit()


def record(build, native_frames, python_frames, sites, living, count):
    library = load(build, "load")
    start_driver()
    library.load_start()
    descend(int(python_frames) - PYTHON_FRAMES["main"], library.load_events, native(native_frames), int(sites),
            int(living), ctypes.c_uint64(int(count)))


if __name__ == "__main__":
    {function.__name__: function for function in (events, parts, memory, leave, record)}[sys.argv[2]](
        sys.argv[1], *sys.argv[3:])
