/*
 * What the driver says of memory pools: reserved, used, and how much a pool keeps. It is asked at the end of
 * calls that it has just answered, each pool at most once a millisecond after its first few times, and at
 * every refusal for want of memory; what has not changed is not recorded again.
 *
 * No function here takes a lock. A pool is asked only while it is known to exist.
 */
#ifndef HOOKS_POOL_SAMPLES_H
#define HOOKS_POOL_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/abi.h"

/* After an allocation from a pool on a device; -1: not on one. */
void pool_samples_watch(CUmemoryPool pool, int device);
/* The same from the device's current pool. */
void pool_samples_watch_current(int device);
/* Before the driver is asked to destroy it: asks once more, and waits for whoever else is asking. *used: the
 * bytes of its blocks, which outlive it. False when it was not watched. */
bool pool_samples_forget(CUmemoryPool pool, int *device, uint64_t *used);
void pool_samples_forget_all(void);

/* Asks about the pools whose turn it is. Costs one load while none is watched. */
void pool_samples_catch_up(void);
/* Asks about all. */
void pool_samples_take(void);

#endif
