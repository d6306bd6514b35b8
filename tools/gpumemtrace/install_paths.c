/* Finding the library and the simulated GPU from the tool's own place; see install_paths.h. */
#include "install_paths.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define MULTIARCH "aarch64-linux-gnu"
#else
#define MULTIARCH "."
#endif

static const char *const library_places[] = {
    "libgpumemtrace.so",
    "../lib/libgpumemtrace.so",
    "../lib/" MULTIARCH "/libgpumemtrace.so",
    "../lib64/libgpumemtrace.so",
};

static const char *const simgpu_places[] = {
    "simgpu/libcuda.so.1",
    "../lib/gpumemtrace/simgpu/libcuda.so.1",
    "../lib/" MULTIARCH "/gpumemtrace/simgpu/libcuda.so.1",
    "../lib64/gpumemtrace/simgpu/libcuda.so.1",
};

/* Copies what realpath() found, which may be nothing, and frees it. */
static int take_path(char *found, char *path, size_t size)
{
    int fits = found && strlen(found) < size;
    if (fits)
        strcpy(path, found);
    free(found);
    return fits ? 0 : -1;
}

/* The first of `places`, relative to the tool's folder, that can be read; without links and "..". */
static int find_place(const char *const *places, size_t count, char *path, size_t size)
{
    char tool[PATH_MAX], place[PATH_MAX + 128], *found = NULL;
    ssize_t length = readlink("/proc/self/exe", tool, sizeof(tool) - 1);
    if (length <= 0)
        return -1;
    tool[length] = 0;
    *strrchr(tool, '/') = 0;
    for (size_t i = 0; i < count && !found; i++) {
        snprintf(place, sizeof(place), "%s/%s", tool, places[i]);
        if (access(place, R_OK) == 0)
            found = realpath(place, NULL);
    }
    return take_path(found, path, size);
}

int find_library(char *path, size_t size)
{
    const char *given = getenv("GPUMEMTRACE_LIBRARY");
    if (!given || !given[0])
        return find_place(library_places, sizeof(library_places) / sizeof(*library_places), path, size);
    return take_path(realpath(given, NULL), path, size);
}

int find_simgpu(char *path, size_t size)
{
    if (find_place(simgpu_places, sizeof(simgpu_places) / sizeof(*simgpu_places), path, size) != 0)
        return -1;
    *strrchr(path, '/') = 0;
    return 0;
}
