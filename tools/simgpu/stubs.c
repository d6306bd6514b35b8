/*
 * Every export of NVIDIA's driver that the simulation does not offer: it can be looked up, and says so when
 * called. Weak: a function of the same name elsewhere in the simulation takes its place.
 */
#define SIMGPU_NO_PROTOTYPES
#include "entry.h"

#include <stdio.h>

static CUresult not_offered(const char *name)
{
    if (simgpu_verbose())
        fprintf(stderr, "simgpu: %s is not simulated\n", name);
    return CUDA_ERROR_NOT_SUPPORTED;
}

#define LEGACY(name, version, suffix)                                                                        \
    __attribute__((weak)) EXPORT CUresult name##suffix(void);                                                \
    CUresult name##suffix(void)                                                                              \
    {                                                                                                        \
        return not_offered(#name #suffix);                                                                   \
    }
#define PER_THREAD(name, version, suffix) LEGACY(name, version, suffix)
#define ALIAS(name, version, symbol)
#include "exports_memory.h"
#include "exports_other.h"
#include "exports_stream.h"
