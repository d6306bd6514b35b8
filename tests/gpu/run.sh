#!/usr/bin/env bash
# Tries the library on a machine with an NVIDIA GPU, in under 8 minutes, and says of each part whether it agreed with
# what the program or the framework counted itself:
#
#   tests/gpu/run.sh [FOLDER]      reports, recordings and outputs go to FOLDER (build/gpu)
#
# PYTHON is the interpreter that has PyTorch, CuPy, Numba, JAX (python3); NVCC the compiler (nvcc). What is not installed
# is skipped, and that is said. With SIMULATED=1 it runs on the simulated GPU, as far as that goes: a test of this
# script. The exit status is 1 when something disagreed or failed, 77 when there is no GPU.
set -u
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
[ "${build#/}" != "$build" ] || build=$PWD/$build
out=${1:-build/gpu}
python=${PYTHON:-python3}
nvcc=${NVCC:-nvcc}
deadline=$((SECONDS + ${LIMIT:-460}))
agreed=0 failed=() skipped=()

make -s -j"$(nproc)" BUILD="$build" all || exit 1
mkdir -p "$out"
out=$(cd "$out" && pwd)
export PYTHONPATH=$PWD/python:$PWD/tests/gpu:$PWD/tests/programs${PYTHONPATH:+:$PYTHONPATH} GPUMEMTRACE_QUIET=1
if [ -n "${SIMULATED-}" ]; then
    export LD_LIBRARY_PATH=$build/simgpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
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

# Runs the command untraced, for its time a step, and traced, for everything else.
check() { # name, command…
    local name=$1 left=$((deadline - SECONDS)) status
    shift
    if [ $left -lt 20 ]; then
        skip "$name" "no time left"
        return
    fi
    timeout "$left" "$@" >"$out/$name.untraced.out" 2>"$out/$name.untraced.err"
    status=$?
    if [ $status -ne 0 ]; then
        skip "$name" "does not run here untraced: $(tail -n 1 "$out/$name.untraced.err")"
        return
    fi
    timeout "$left" "$build/gpumemtrace" run -o "$out/$name.%p" -- "$@" >"$out/$name.out" 2>"$out/$name.err"
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

check driver "$python" tests/gpu/driver.py

if command -v "$nvcc" >/dev/null; then
    for kind in shared static; do
        "$nvcc" -cudart $kind -Iinclude -o "$out/runtime_$kind" tests/gpu/runtime.cu -lcuda -ldl 2>"$out/nvcc.txt" &&
            check runtime_$kind "$out/runtime_$kind" || skip runtime_$kind "nvcc: $(tail -n 1 "$out/nvcc.txt")"
    done
else
    skip runtime "nvcc is not there"
fi

if has torch; then
    check torch "$python" tests/gpu/torch_train.py
    check torch_expandable env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "$python" tests/gpu/torch_train.py
    check torch_async env PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync "$python" tests/gpu/torch_train.py
    check torch_graph "$python" tests/gpu/torch_train.py graph
    check torch_two_processes "$python" tests/gpu/torch_train.py processes
else
    skip torch "PyTorch is not installed for $python"
fi
for module in cupy numba jax; do
    if has $module; then
        check $module "$python" tests/gpu/${module}_arrays.py
    else
        skip $module "not installed for $python"
    fi
done

echo
echo "$agreed agreed, ${#failed[@]} failed (${failed[*]}), ${#skipped[@]} skipped; everything is in $out"
[ ${#failed[@]} -eq 0 ]
