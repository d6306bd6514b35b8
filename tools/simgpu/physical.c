/* The physical memory of each device, a count of granules. */
#include "simgpu.h"

bool physical_take(struct device *device, uint64_t granules)
{
    if (!device)
        return true;
    if (device->memory - device->used < granules)
        return false;
    device->used += granules;
    return true;
}

void physical_give(struct device *device, uint64_t granules)
{
    if (device)
        device->used -= granules;
}
