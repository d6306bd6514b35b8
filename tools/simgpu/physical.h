/* Who uses how much of a device's memory. Hold the driver's lock (entry.h). */
#ifndef SIMGPU_PHYSICAL_H
#define SIMGPU_PHYSICAL_H

#include <sys/types.h>

#include "simgpu.h"

struct occupant {
    pid_t pid;
    uint64_t bytes;
};

/* Up to `room` processes that use memory of a device, this one first; how many. */
int physical_occupants(int device, struct occupant *occupants, int room);
/* The granules in use by all of them. */
uint64_t physical_used(const struct device *device);

#endif
