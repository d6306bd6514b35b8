/*
 * Every export of NVIDIA's runtime that the simulation does not offer: programs link and load, and are told
 * when they call it, and a person who set SIMGPU_VERBOSE is too. Weak: a function of the same name takes its
 * place.
 */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>

static cudaError_t not_offered(const char *name)
{
    const char *verbose = getenv("SIMGPU_VERBOSE");
    if (verbose && *verbose && *verbose != '0')
        fprintf(stderr, "simgpu: %s is not offered\n", name);
    return runtime_finish(cudaErrorNotSupported);
}

#define X(name)                                                                                              \
    __attribute__((weak)) EXPORT cudaError_t name(void);                                                     \
    cudaError_t name(void)                                                                                   \
    {                                                                                                        \
        return not_offered(#name);                                                                           \
    }
#include "exports.h"
