/* Multicast objects: memory of several devices under one handle. They own no memory themselves. */
#ifndef SIMGPU_MULTICAST_H
#define SIMGPU_MULTICAST_H

#include "simgpu.h"

struct multicast;

/* Every device that the object was made for has joined. */
bool multicast_is_complete(const struct multicast *multicast);
void multicast_end(struct multicast *multicast);

#endif
