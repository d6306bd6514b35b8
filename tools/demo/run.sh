#!/usr/bin/env bash
# The demo: traces train.py on the real GPU where there is one and on the simulated one elsewhere, then prints the
# report's first screen. Argument: the folder with the build products; all files go to its demo/ folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
shown=${build#"$PWD"/}
rm -rf "$build/demo"
mkdir -p "$build/demo"

can_allocate() { # a real driver is there, and it has a device
    [ -e /dev/nvidia0 ] || [ -e /dev/nvidiactl ] || return 1
    python3 - 2>/dev/null <<'PYTHON'
import ctypes
import sys
cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
sys.exit(cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0)
PYTHON
}

if can_allocate; then
    echo "tracing tools/demo/train.py on this machine's GPU"
else
    echo "tracing tools/demo/train.py on the simulated GPU (this machine shows no NVIDIA GPU)"
    export LD_LIBRARY_PATH="$build/simgpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi

echo "\$ $shown/gpumemtrace run -o $shown/demo/train -- python3 tools/demo/train.py"
cd "$here/../.."
GPUMEMTRACE_QUIET=1 "$build/gpumemtrace" run -o "$build/demo/train" -- python3 tools/demo/train.py
echo
echo "\$ $shown/gpumemtrace report $shown/demo/train.gmt"
# The first screen, so that it is what stays in sight; the rest is one file away.
"$build/gpumemtrace" report "$build/demo/train.gmt" >"$build/demo/report.txt"
sed '/^Details follow/q' "$build/demo/report.txt"
echo
"$build/gpumemtrace" report --html -o "$build/demo/train.html" "$build/demo/train.gmt"
echo "(the details: $shown/demo/report.txt; as a page for a browser: $shown/demo/train.html)"
