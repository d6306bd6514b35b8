"""The hook table against NVIDIA's headers: every API that takes or gives back memory is hooked, or left out for a reason
that is written down; every variant has the version and the prototype that the headers give it. Without the headers, names
and versions come from cuda_names.txt, which was made from those of CUDA 11.8 to 13.5 (run this file as a script to add
those of the toolkit that CUDA_HOME names)."""
import os
import pathlib
import re
import subprocess
import sys
from collections import defaultdict

import hook_table
import pytest
from conftest import LIBRARY, ROOT

NAMES = pathlib.Path(__file__).with_name("cuda_names.txt")
INCLUDE = next((folder for folder in [pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include",
                                      *sorted(pathlib.Path("/usr/local").glob("cuda-*/include"), reverse=True)]
                if (folder / "cuda.h").exists()), None)
VERSION = 0 if INCLUDE is None else int(re.search(r"#define CUDA_VERSION (\d+)", (INCLUDE / "cuda.h").read_text())[1])
needs_headers = pytest.mark.skipif(INCLUDE is None, reason="no CUDA toolkit's headers here")

# An API with such a word in its name could create, map, resize, import or end memory.
SUSPECT = re.compile(r"Alloc|Free|Create|Destroy|Map|Import|Register|Reserve|Release|Retain|Reset|Open|Close|Trim|tach|"
                     r"Instantiate|Launch|Bind|Add\w*Node|Load|Capture|MemPool|Clone|Update|EntryPoint|ProcAddress|"
                     r"Init|Checkpoint|Link|Limit|Malloc|Host|Managed|Memory|GreenCtx")

LEFT_OUT = [(re.compile(rf"cu(da)?({pattern})(_v\d+)?(_pts[zd])?$"), reason) for pattern, reason in {
    r"\w*(Get|Set|Is|Find)\w*": "asks or sets",
    r"Checkpoint\w+": "moves the contents of memory and brings them back; nothing is allocated or freed",
    r"GreenCtxCreate": "keeps the primary context, where its memory counts; only its end can end that",
    r"CtxResetPersistingL2Cache|ThreadExchangeStreamCaptureMode|Logs\w+|Coredump\w+": "about no memory",
    r"LogicalEndpoint\w+": "a name in the fabric for memory, which ends with its handles and mappings",
    r"GreenCtxCreate|ExecutionCtx\w+": "the runtime's name for green contexts, whose end is seen in the driver",
    r"(Destroy|Import)ExternalSemaphore|Event\w+|DestroyEvent|IpcOpenEventHandle|Stream(Create\w*|Destroy)|"
    r"GreenCtxStreamCreate|UserObject\w+|Graph(Release|Retain)UserObject|StreamUpdateCaptureDependencies|"
    r"DeviceRegisterAsyncNotification|GraphConditionalHandleCreate|GreenCtx(Record|Wait)Event":
        "synchronisation objects, whose memory is the driver's own",
    r"(Tex|Surf)\w+|(Bind|Unbind)(Texture|Surface)\w*|(Create|Destroy)(Texture|Surface)Object|TensorMap\w+|CreateChannelDesc|TexRef\w+":
        "views of memory that something else holds",
    r"Launch\w*|StreamAttachMemAsync|MemAttach\w+|FuncLoad|FuncSetAttribute|InitDevice": "uses memory, keeps none of its own",
    r"Link\w+|(Library|Module)Enumerate\w+": "about code on the host, or names what is loaded",
    r"Graphics\w+": "memory of OpenGL or Direct3D, mapped for a while and never freed by CUDA",
    r"(Import|Destroy)ExternalMemory": "holds nothing itself; what is mapped from it is hooked, and lives on",
    r"GraphAdd(BatchMemOp|ChildGraph|Empty|EventRecord|EventWait|ExternalSemaphores\w+|Host|Kernel|Memcpy|Memset)Node\w*|"
    r"Graph(Create|Clone|DestroyNode|ExecUpdate|KernelNode\w+|NodeFindInClone|AddDependencies|RemoveDependencies)":
        "never concerns an allocation node: a graph that has any can be neither cloned nor have nodes taken away",
    r"StreamBegin(Capture|Recapture)\w*|StreamEndCaptureToCig": "an allocation on a stream asks whether it is being captured",
    r"DeviceGraphMemTrim": "gives back what no block uses",
    r"MemPoolExport\w+|MemPoolImportFromShareableHandle|MemExportToShareableHandle": "no memory changes hands before its use",
    r"MemAddress(Reserve|Free)": "address space, not memory",
    r"MulticastAddDevice": "a multicast object holds nothing before memory is bound to it",
    r"MemHostGetDevicePointer|HostGet\w+": "asks",
}.items()]
# Runtime names that need no hook: what they do is seen in the driver, and nothing in a report is called after them.
SEEN_IN_DRIVER = re.compile(r"cuda(DeviceReset|Library(Load\w+|Unload)|GraphAddMemFreeNode|Graph(Instantiate\w*|Destroy|ExecDestroy)|"
                            r"StreamEndCapture|MemPool(Create|Destroy|TrimTo))(_ptsz)?$")


def functions(header):
    text = re.sub(r"/\*.*?\*/", " ", header.read_text(errors="replace"), flags=re.S)
    return re.findall(r"(?:CUDAAPI|CUDARTAPI(?:_CDECL)?)\s+(cu\w+)\s*\(([^;{]*?)\)\s*;", text, re.S)


def headers():
    """{"driver": {name}, "runtime": {name}, "versions": {bare: {version}}} of the toolkit found."""
    found = {"driver": {name for name, _ in functions(INCLUDE / "cuda.h")},
             "runtime": {name for name, _ in functions(INCLUDE / "cuda_runtime_api.h")}, "versions": defaultdict(set)}
    for name, since, stream in re.findall(r"\(CUDAAPI \*PFN_(cu\w+?)_v(\d+)(_pts[zd])?\)",
                                          (INCLUDE / "cudaTypedefs.h").read_text()):
        found["versions"][name].add(f"{since}{stream}")
    return found


def known():
    found = {"driver": set(), "runtime": set(), "versions": defaultdict(set)}
    for line in NAMES.read_text().splitlines():
        kind, name, *versions = line.split()
        if kind == "versions":
            found["versions"][name].update(versions)
        else:
            found[kind].add(name)
    return found


def both():
    """What is known, and what a newer toolkit may add to it."""
    found = known()
    if INCLUDE is not None:
        for kind, names in headers().items():
            for name in names:
                if kind == "versions":
                    found[kind][name] |= names[name]
                else:
                    found[kind].add(name)
    return found


def reason_to_leave_out(name):
    return next((reason for pattern, reason in LEFT_OUT if pattern.match(name)), None)


@pytest.mark.parametrize("library", ["driver", "runtime"])
def test_what_takes_or_gives_back_memory_is_hooked_or_left_out_for_a_reason(library):
    hooked = {symbol.name for symbol in hook_table.symbols()} | {symbol.bare for symbol in hook_table.symbols()}
    forgotten = [name for name in sorted(both()[library]) if SUSPECT.search(name) and name not in hooked
                 and not reason_to_leave_out(name) and not SEEN_IN_DRIVER.match(name)]
    assert not forgotten


def test_no_hooked_name_is_also_left_out():
    assert not [symbol.bare for symbol in hook_table.symbols()
                if symbol.library in ("DRIVER", "RUNTIME") and symbol.family != "loader"
                and reason_to_leave_out(symbol.bare) not in (None, "asks or sets", "uses memory, keeps none of its own")]


def test_every_hooked_name_is_nvidias():
    names = both()
    for symbol in hook_table.symbols():
        if symbol.library == "DRIVER":
            assert symbol.bare in names["driver"] or symbol.bare in names["versions"], symbol.name
        elif symbol.library == "RUNTIME":
            assert symbol.bare in names["runtime"], symbol.name


def test_every_version_of_a_hooked_driver_api_has_its_row():
    """cudaTypedefs.h has one PFN_name_vNNNN for each signature that cuGetProcAddress tells apart."""
    names = both()
    for bare in sorted({symbol.bare for symbol in hook_table.symbols() if symbol.library == "DRIVER"}):
        rows = {f"{symbol.since}{'_ptsz' if symbol.stream == 'PER_THREAD' else ''}"
                for symbol in hook_table.symbols() if symbol.library == "DRIVER" and symbol.bare == bare}
        assert rows == names["versions"].get(bare, rows), bare
        assert bare in names["versions"] or bare == "cuInit", bare


@needs_headers
def test_the_list_of_names_holds_what_the_headers_hold():
    listed = known()
    for kind, names in headers().items():
        # Some headers declare a variant of a known API by its exported name.
        missing = sorted(name for name in names if name not in listed[kind]
                         and not (kind == "driver" and re.sub(r"_v\d+$", "", name) in listed["versions"]))
        assert not missing, f"{missing}: run {__file__} as a script, then hook or leave out what is new"


SAME = {"const ": "", "_v1": "", "_v2": "", "unsigned int": "unsigned", "unsigned long long": "u64", "cuuint64_t": "u64",
        "size_t": "u64", "struct ": "", "enum ": ""}


def shape(parameters):
    """What passes a call: how many parameters, which are pointers, which are by value, and of what width."""
    def one(kind):
        if "*" in kind:
            return "*" * kind.count("*")
        for old, new in SAME.items():
            kind = kind.replace(old, new)
        return {"CUmemAllocationHandleType": "unsigned", "CUstreamCaptureMode": "unsigned", "int": "unsigned",
                "CUdevice": "unsigned", "CUdeviceptr": "u64", "CUmemGenericAllocationHandle": "u64",
                "cudaExtent": "extent"}.get(kind.strip(), "handle")
    return [one(kind) for kind, _ in parameters]


def expected_shapes():
    """The prototypes of cuda.h under the names that the driver exports: the header renames most by #define."""
    text = "#define __CUDA_API_VERSION_INTERNAL 1\n#include <cuda.h>\n"
    done = subprocess.run(["cc", "-E", "-P", "-w", f"-I{INCLUDE}", "-x", "c", "-"], input=text, capture_output=True,
                          text=True, check=True)
    renamed = subprocess.run(["cc", "-E", "-P", "-w", f"-I{INCLUDE}", "-x", "c", "-"], input="#include <cuda.h>\n",
                             capture_output=True, text=True, check=True)
    shapes = defaultdict(list)
    for source in (done.stdout, renamed.stdout):
        for name, parameters in re.findall(r"CUresult\s+(cu\w+)\s*\(([^;{]*?)\)\s*;", source, re.S):
            shapes[name].append(shape(hook_table.split_parameters(parameters)))
    return shapes


@needs_headers
def test_driver_hooks_have_the_prototypes_of_the_header():
    shapes = expected_shapes()
    since = {symbol.name: symbol.since for symbol in hook_table.symbols()}
    wide = {name: [[word.replace("handle", "u64") for word in one] for one in found] for name, found in shapes.items()}
    for prototype in hook_table.prototypes():
        if prototype.runtime:
            continue
        name = prototype.name if prototype.name in wide else re.sub("_ptsz$", "", prototype.name)
        if since[prototype.name] > VERSION:
            continue
        mine = [word.replace("handle", "u64") for word in shape(prototype.parameters)]
        # Structures by value.
        if "IpcOpenMem" in prototype.name:
            assert prototype.parameters[1][0] == "CUipcMemHandle"
        if prototype.name in ("cuCtxCreate", "cuMemAlloc"):
            assert mine in wide[name], name
            continue
        assert name in wide and mine in wide[name], f"{prototype.name}: {mine} {wide.get(name)}"


@needs_headers
def test_runtime_hooks_have_as_many_arguments_as_the_header():
    counts = defaultdict(set)
    for name, parameters in functions(INCLUDE / "cuda_runtime_api.h"):
        counts[name].add(len(hook_table.split_parameters(re.sub(r"__dv\(\w+\)|=\s*\w+", "", parameters))))
    for prototype in hook_table.prototypes():
        name = re.sub("_ptsz$", "", prototype.name)
        if prototype.runtime and name in counts:
            # One that had fewer once passes on what nobody reads.
            mine = len(prototype.parameters)
            assert mine in counts[name] or (VERSION < 13000 and mine > max(counts[name])), prototype.name


def test_library_exports_the_hooks_and_nothing_else():
    listed = re.findall(r"^    (\w+);$", (ROOT / "src" / "preload" / "exports.map").read_text(), re.M)
    rows = [symbol.name for symbol in hook_table.symbols()] + hook_table.OTHERS
    assert sorted(listed) == sorted(rows) and len(set(rows)) == len(rows)
    done = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True)
    shown = [line.split()[-1] for line in done.stdout.splitlines()]
    assert not [name for name in shown if "@" in name], "a version would keep a hook from answering for others"
    assert sorted(name for name in shown if not name.startswith("gpumemtrace_")) == sorted(rows)


def test_the_readme_shows_what_is_hooked():
    """The table between its two marks is the output of hook_table.py."""
    text = (ROOT / "README.md").read_text()
    found = re.search(r"<!-- hooks -->\n(.*?)<!-- /hooks -->", text, re.S)
    assert found, "the README has no such table"
    assert found[1].strip() == hook_table.coverage_table().strip()


def make_list():
    found = both()
    lines = [f"{kind} {name}" for kind in ("driver", "runtime") for name in sorted(found[kind])]
    lines += [f"versions {name} {' '.join(sorted(found['versions'][name]))}" for name in sorted(found["versions"])]
    NAMES.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(make_list())
