#!/usr/bin/env bash
# Tries the library on a machine with an NVIDIA GPU, in under 8 minutes, and says of each part whether it agreed with
# what the program or the framework counted itself, and what a step took without and with it:
#
#   tests/gpu/run.sh [FOLDER]      reports, recordings and outputs go to FOLDER (build/gpu)
#
# PYTHON is the interpreter that has PyTorch, CuPy, Numba, JAX (python3); NVCC the compiler (nvcc). WHEELS is a folder of
# wheels that are installed for it, in FOLDER, without network. Where the library cannot be built, the one that lies in
# BUILD (build) is used. LIMIT is the most seconds that it may take (460). What is not installed is skipped, and that is
# said. With SIMULATED=1 it runs on the simulated GPU, as far as that goes: a test of this script. The exit status is 1
# when something disagreed or failed, 77 when there is no GPU.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
[ "${build#/}" != "$build" ] || build=$PWD/$build
out=${1:-build/gpu}
python=${PYTHON:-python3}
nvcc=${NVCC:-nvcc}
limit=${LIMIT:-460}
deadline=$((SECONDS + limit))
longest=$((limit / 5)) # seconds, of one program
agreed=0 failed=() skipped=()

mkdir -p "$out"
out=$(cd "$out" && pwd)
if tools/deps.sh --check build >"$out/build.txt" 2>&1; then
    make -s -j"$(nproc)" BUILD="$build" all || exit 1
elif [ -e "$build/libgpumemtrace.so" ]; then
    echo "used as it was built: $build"
else
    cat "$out/build.txt"
    exit 1
fi
if [ -n "${WHEELS-}" ]; then
    "$python" -m pip install -q --no-index --no-deps --target "$out/wheels" "$WHEELS"/*.whl || exit 1
    PYTHONPATH=$out/wheels${PYTHONPATH:+:$PYTHONPATH}
fi
export PYTHONPATH=$PWD/python:$PWD/tests/gpu:$PWD/tests/programs${PYTHONPATH:+:$PYTHONPATH} GPUMEMTRACE_QUIET=1
if [ -n "${SIMULATED-}" ]; then
    export LD_LIBRARY_PATH=$build/simgpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} SIMGPU_FOLDER=$build/simgpu
elif command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee "$out/machine.txt"
fi
if ! "$python" -c 'import cuda; cuda.init()' 2>"$out/no_gpu.txt"; then
    echo "no GPU that can be used: $(tail -n 1 "$out/no_gpu.txt")"
    exit 77
fi
rm "$out/no_gpu.txt"

skip() { # name, why
    skipped+=("$1")
    printf 'skip   %-28s %s\n' "$1" "$2"
}

# Seconds that a program may take.
left() {
    local seconds=$((deadline - SECONDS))
    echo $((seconds < longest ? seconds : longest))
}

# By the command-line tool, or without it where the libraries that it needs are not there.
traced() { # stem, command…
    local stem=$1
    shift
    if "$build/gpumemtrace" --version >/dev/null 2>&1; then
        timeout "$(left)" "$build/gpumemtrace" run -o "$stem.%p" -- "$@"
    else
        timeout "$(left)" env GPUMEMTRACE_OUTPUT="$stem.%p" LD_PRELOAD="$build/libgpumemtrace.so" "$@"
    fi
}

# Runs the command untraced, for its time a step, and traced, for everything else.
check() { # name, command…
    local name=$1 status
    shift
    if [ "$(left)" -lt 20 ]; then
        skip "$name" "no time left"
        return
    fi
    rm -f "$out/$name".*.{gmt,json,txt}
    timeout "$(left)" "$@" >"$out/$name.untraced.out" 2>"$out/$name.untraced.err"
    status=$?
    if [ $status -ne 0 ]; then
        skip "$name" "does not run here untraced ($status): $(tail -n 1 "$out/$name.untraced.err")"
        return
    fi
    if [ "$(left)" -lt 10 ]; then
        skip "$name" "no time left"
        return
    fi
    traced "$out/$name" "$@" >"$out/$name.out" 2>"$out/$name.err"
    status=$?
    if "$python" tests/gpu/judge.py "$name" $status "$out"; then
        agreed=$((agreed + 1))
    else
        failed+=("$name")
    fi
}

has() { # module
    "$python" -c "import $1; $1.__version__" 2>/dev/null
}

check_nvcc() { # kind of runtime
    if "$nvcc" -cudart "$1" -Iinclude -o "$out/runtime_$1" tests/gpu/runtime.cu -lcuda -ldl 2>"$out/nvcc.txt"; then
        check "runtime_$1" "$out/runtime_$1"
    else
        skip "runtime_$1" "nvcc: $(tail -n 1 "$out/nvcc.txt")"
    fi
}

check_torch() {
    local train=("$python" tests/gpu/torch_train.py)
    check torch "${train[@]}"
    check torch_expandable env PYTORCH_ALLOC_CONF=expandable_segments:True PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "${train[@]}"
    check torch_async env PYTORCH_ALLOC_CONF=backend:cudaMallocAsync PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync "${train[@]}"
    check torch_graph "${train[@]}" graph
    check torch_two_processes "${train[@]}" processes
}

check_cupy() {
    check cupy "$python" tests/gpu/cupy_arrays.py
    check cupy_async "$python" tests/gpu/cupy_arrays.py async
}

check_numba() {
    check numba "$python" tests/gpu/numba_arrays.py
}

check_jax() {
    check jax_platform "$python" tests/gpu/jax_arrays.py platform
    check jax_pool "$python" tests/gpu/jax_arrays.py pool
}

check driver "$python" tests/gpu/driver.py
if command -v "$nvcc" >/dev/null; then
    check_nvcc shared
    check_nvcc static
else
    skip runtime "nvcc is not there"
fi
for module in torch cupy numba jax; do
    if has $module; then
        check_$module
    else
        skip $module "not installed for $python"
    fi
done

echo
echo "$agreed agreed, ${#failed[@]} failed (${failed[*]}), ${#skipped[@]} skipped; everything is in $out"
[ ${#failed[@]} -eq 0 ]
