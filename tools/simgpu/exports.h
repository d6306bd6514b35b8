/* The driver's exports by name. */
#ifndef SIMGPU_EXPORTS_H
#define SIMGPU_EXPORTS_H

#include <stdbool.h>

#include "cuda/abi.h"

/* The newest variant of a name that CUDA `version` knows; the one for per-thread default streams where it is
 * wanted and there is one. NULL, and the reason in *status, when there is none. */
void *export_pick(const char *name, int version, bool per_thread, CUdriverProcAddressQueryResult *status);

#endif
