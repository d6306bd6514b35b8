/*
 * When it is worth asking the driver again how much of a device is free: not so often that a program notices,
 * and often enough that every peak has a sample near it. The driver may take 0.1 ms to answer.
 *
 * A device is sampled after an allocation: the first; one that brings what is tracked an eighth above all
 * that was sampled before, which can happen a few dozen times only; and else when a tenth of a second, and a
 * thousand times what the last answer took, have gone by.
 */
#ifndef PRELOAD_SAMPLING_H
#define PRELOAD_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

#define SAMPLED_DEVICES 64 /* beyond, none is */

/* Of one device; all zero before the first sample. */
struct sampling {
    bool begun;
    uint64_t due_ns;        /* not before, unless it rises */
    uint64_t highest_bytes; /* tracked at a sample */
};

/* Whether to ask now, and if so, as if it had been done. */
bool sampling_due(struct sampling *sampling, uint64_t now_ns, uint64_t tracked_bytes);
/* The driver took so long to answer. */
void sampling_took(struct sampling *sampling, uint64_t now_ns, uint64_t took_ns);

#endif
