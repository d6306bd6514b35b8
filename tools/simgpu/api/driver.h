/* Every function of the simulated driver. */
#ifndef SIMGPU_API_DRIVER_H
#define SIMGPU_API_DRIVER_H

#include "memory.h"
#include "other.h"
#include "stream.h"

#endif
