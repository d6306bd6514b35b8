/* Where the parts of this installation are: beside the tool in a build folder, under ../lib once installed.
 */
#ifndef GPUMEMTRACE_INSTALL_PATHS_H
#define GPUMEMTRACE_INSTALL_PATHS_H

#include <stddef.h>

/* libgpumemtrace.so: $GPUMEMTRACE_LIBRARY, or where the tool's own place leads. 0, or -1 when it is nowhere.
 */
int find_library(char *path, size_t size);
/* The folder with the simulated GPU's libcuda.so.1. */
int find_simgpu(char *path, size_t size);

#endif
