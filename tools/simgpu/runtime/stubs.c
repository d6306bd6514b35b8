/*
 * Every export of NVIDIA's runtime that the simulation does not offer: programs link and load, and are told
 * when they call it. Weak: a function of the same name takes its place.
 */
#include "runtime.h"

#define X(name)                                                                                              \
    __attribute__((weak)) EXPORT cudaError_t name(void);                                                     \
    cudaError_t name(void)                                                                                   \
    {                                                                                                        \
        return runtime_finish(cudaErrorNotSupported);                                                        \
    }
#include "exports.h"
