/*
 * Where a block lies and whose end takes it along.
 *
 * The device is that of the context that is current to the calling thread, except where the API
 * itself names a device or a pool. Which blocks go with a context:
 *   - Plain, pitched, managed, pinned and registered memory, arrays, and what was opened by IPC or
 *     mapped from external memory: with the context that was current. NVIDIA: cuCtxDestroy and
 *     cuDevicePrimaryCtxReset end "all resources associated with" it. Portable pinned memory is
 *     usable everywhere, yet belongs to one.
 *   - Memory from pools (another process's, too) and of graphs, cuMemCreate's and imported handles:
 *     with none. Pools are the device's and handles the process's; both outlive even a reset of the
 *     primary context. (On a real device, too: a reset gives back the size of the context, and no
 *     pool's memory.)
 * Memory allocated while a green context is current belongs to its device's primary context.
 */
#ifndef HOOKS_CONTEXT_H
#define HOOKS_CONTEXT_H

#include <stddef.h>

#include "cuda/abi.h"
#include "hooks/device_samples.h"
#include "preload/recorder.h"

#define DEVICE_UNKNOWN (-1)

/* Fills in device and context of an allocation by the rules above. A device that is set already stays. */
void place_fill(struct allocation *allocation);

/* The device of the current context; DEVICE_UNKNOWN without one. */
int place_current_device(void);

/* The driver's figures for the current context's device; 0, 0 when it would not tell. */
void place_memory_info(size_t *free_bytes, size_t *total_bytes);

/* What the context hooks saw, each after the real call succeeded. */
void context_created(CUcontext context, CUdevice device);
/* … what it took, for which it gives back when it ends. */
void context_took(CUcontext context, CUdevice device, struct device_change change);
/* The current context's limits were set, which took that. */
void context_grew(struct device_change change);
/* So many modules and libraries more are loaded, which took that, in the current context. */
void context_holds_code(int count, struct device_change change);
void context_attached(CUcontext context);
/* True when this takes the last reference. */
bool context_detaching(CUcontext context);
/* False when that was known. */
bool context_is_primary(CUcontext context, CUdevice device);
/* Whether a device's primary context is there already. */
bool context_primary_is_active(CUdevice device);
void context_is_green(CUcontext context);

/*
 * Every block of a context ends. Its addresses can be another thread's the moment the driver has ended it,
 * so this is said before the real call where that is sure to: cuCtxDestroy of a context that cuCtxCreate
 * made, which can only be refused when it is gone, and cuDevicePrimaryCtxReset of a known one. False when
 * it is not sure: then after it.
 */
bool context_ending(CUcontext context);
void context_ended(CUcontext context);
void context_primary_ending(CUdevice device);
/*
 * Around a release of a primary context. The one that looks like the last, by the retains that were seen, may
 * end it: what is allocated in it from then on, by whoever has retained it anew, belongs to another context,
 * also at the same addresses and under the same handle.
 */
struct primary_release {
    CUcontext primary; /* NULL: not known */
    bool looks_last;
    uint32_t number; /* recorder_context() */
    uint64_t retains;
};
void context_primary_releasing(CUdevice device, struct primary_release *release);
void context_primary_released(CUdevice device, CUresult rc, const struct primary_release *release);
/* Some reference to some primary context was given back: those that were the last end. */
void context_primaries_checked(void);

#endif
