/*
 * Whose code a frame is. A reader looks for their own line; what is in PyTorch, the CUDA libraries, the
 * interpreter or the C library is the way there and can be folded. Known by where Python and Linux put
 * things, and by name.
 */
#include <ctype.h>
#include <string.h>

#include "report/frames.h"

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool starts_with_any(const char *text, const char *const *prefixes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (starts_with(text, prefixes[i]))
            return true;
    return false;
}
#define STARTS_WITH_ANY(text, list) starts_with_any(text, list, sizeof list / sizeof list[0])

/* …/lib/python3.11/…, …/lib64/python3.11/…, …/lib/python311.zip/… */
static bool is_standard_library(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/python")); at++) {
        bool under_lib = (at - path >= 4 && starts_with(at - 4, "/lib")) ||
                         (at - path >= 6 && starts_with(at - 6, "/lib64"));
        if (under_lib && isdigit((unsigned char)at[strlen("/python")]))
            return true;
    }
    return false;
}

/* Where packages are installed, wherever that is: a virtual environment may lie in the reader's own folder.
 * Wheels and eggs are run as they are by some (pex). Crates and Go's modules are compiled into the reader's
 * own libraries. */
static const char *const package_folders[] = {"/site-packages/", "/dist-packages/",       ".whl/",
                                              ".egg/",           "/.cargo/registry/src/", "/go/pkg/mod/"};

const char *package_of(const char *file, size_t *length)
{
    const char *package = NULL;
    for (size_t i = 0; i < sizeof package_folders / sizeof package_folders[0]; i++)
        for (const char *at = file; (at = strstr(at, package_folders[i]));) {
            at += strlen(package_folders[i]);
            if (!package || at > package)
                package = at;
        }
    if (package)
        *length = strcspn(package, "/");
    return package;
}

static bool is_installed(const char *path)
{
    size_t length;
    return package_of(path, &length) != NULL;
}

/* Code that Python, NumPy or PyTorch made up: no file to look at. */
static const char *const generated_files[] = {"<frozen ",           "<__array_function__", "<attrs generated",
                                              "<lambdifygenerated", "<decorator-gen",      "<eval_with_key>"};

/* A notebook's cells have such names, and are what their author looks for. */
static const char *const cell_files[] = {"<ipython-input-", "<command-"};

enum frame_rank rank_python_file(const char *file)
{
    if (!file || !*file)
        return RANK_LIBRARY;
    if (STARTS_WITH_ANY(file, generated_files))
        return RANK_RUNTIME;
    if (file[0] == '<')
        return STARTS_WITH_ANY(file, cell_files) ? RANK_OWN : RANK_TYPED;
    if (is_installed(file) || strstr(file, "/torchinductor_"))
        return RANK_LIBRARY;
    return is_standard_library(file) ? RANK_RUNTIME : RANK_OWN;
}

/* What stands between a program and the driver, by the start of the file's name. */
static const char *const runtime_modules[] = {
    /* NVIDIA's */
    "libcuda.so",
    "libcuda-",
    "libcudart",
    "libcublas",
    "libcudnn",
    "libcufft",
    "libcurand",
    "libcusolver",
    "libcusparse",
    "libcutensor",
    "libcupti",
    "libnccl",
    "libnpp",
    "libnvjpeg",
    "libnvrtc",
    "libnvJitLink",
    "libnvidia-",
    "libnvinfer",
    "libnvToolsExt",
    "libnvshmem",
    "libnvfatbin",
    "libcaffe2_nvrtc",
    /* frameworks' cores */
    "libtorch",
    "libc10",
    "libshm.so",
    "libtensorflow",
    "xla_extension",
    "libjax",
    "xla_cuda_plugin",
    "librmm",
    /* the interpreter and the way from it to C */
    "libpython",
    "_ctypes",
    "libffi",
    "_cffi_backend",
    /* the system */
    "libc.so",
    "libc-2",
    "libstdc++",
    "libgcc_s",
    "libpthread",
    "libm.so",
    "libdl.so",
    "librt.so",
    "ld-linux",
    "libgomp",
    "libiomp",
    "libomp",
    "libmkl",
    "libunwind",
    "libasan",
    "libtsan",
    "libubsan",
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
    "[vdso]",
    "libgpumemtrace",
};

static const char *const system_folders[] = {"/lib/",       "/lib64/",         "/usr/lib/",
                                             "/usr/lib64/", "/usr/local/cuda", "/opt/nvidia/"};

/* Functions that the reader's module holds only because a header was compiled into it; plain and mangled. */
static const char *const library_functions[] = {
    "std::",   "__gnu_cxx::", "thrust::",  "cub::",        "cuda::",        "at::",         "c10::",
    "torch::", "pybind11::",  "core::",    "alloc::",      "hashbrown::",   "<core::",      "<alloc::",
    "<std::",  "_ZSt",        "_ZNSt",     "_ZNKSt",       "_ZN9__gnu_cxx", "_ZN6thrust",   "_ZN3cub",
    "_ZN2at",  "_ZN3c10",     "_ZN5torch", "_ZN8pybind11", "_start",        "__libc_start",
};

bool is_python_program(const char *path)
{
    if (!path)
        return false;
    const char *name = base_name(path);
    return starts_with(name, "python") || starts_with(name, "pypy");
}

/* /opt/conda/lib/… beside /opt/conda/bin/python3.11 */
bool is_of_environment(const char *file, const char *program)
{
    size_t folder = (size_t)(base_name(program) - program);
    if (folder < strlen("/bin/") || !starts_with(program + folder - strlen("/bin/"), "/bin/"))
        return false;
    folder -= strlen("bin/");
    return strncmp(file, program, folder) == 0 && starts_with(file + folder, "lib");
}

static const char *const header_folders[] = {"/usr/include/", "/usr/lib/gcc/", "/usr/local/cuda",
                                             "/usr/local/include/", "/rustc/"};

enum frame_rank rank_native(const char *module, const char *function, const char *file, const char *program)
{
    if (!module)
        return RANK_LIBRARY;
    const char *name = base_name(module);
    if (STARTS_WITH_ANY(name, runtime_modules) || is_python_program(module) ||
        (is_standard_library(module) && !is_installed(module)))
        return RANK_RUNTIME;
    bool is_program = program && strcmp(module, program) == 0;
    if (!is_program && (is_installed(module) || STARTS_WITH_ANY(module, system_folders) ||
                        (is_python_program(program) && is_of_environment(module, program))))
        return RANK_LIBRARY;
    if ((function && STARTS_WITH_ANY(function, library_functions)) ||
        (file && (STARTS_WITH_ANY(file, header_folders) || is_installed(file))))
        return RANK_LIBRARY;
    return RANK_OWN;
}
