/*
 * What is free on each device, and who has the rest: asked of the driver and of NVML at the moments that tell
 * something, and recorded. The driver answers for the device of the calling thread's current context only;
 * nothing here makes a context current, or makes one at all.
 *
 * What a context, or code, takes is the difference that making it makes. NVML's figure of this process is
 * taken for it where there is one, since nobody else can change that; else what is free on the whole device.
 * What this process allocates meanwhile is known, and no part of it.
 *
 * Before the first allocation nothing is recorded, and what was learned by then is kept until then.
 */
#ifndef HOOKS_DEVICE_SAMPLES_H
#define HOOKS_DEVICE_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger/event.h"
#include "ledger/ledger.h"

/* How a device's use can be known, the surest first. */
enum measure { BY_PROCESS, BY_NVML, BY_DRIVER, MEASURE_COUNT };

/* Around a call that may take a device's memory, or give it back, without an allocation of anybody's. */
struct device_window {
    int device; /* DEVICE_UNKNOWN: closed */
    bool has_nvml;
    bool is_overlapped; /* by another one on the same device: neither tells what was whose */
    uint64_t opened;    /* windows of the device by then, this one included */
    uint64_t number;    /* of the thread's own */
    uint64_t tracked_bytes;
    uint64_t took_ns;    /* to open it */
    bool counts_as_cost; /* for device_samples_affordable(): contexts are few */
    struct usage {
        bool known[MEASURE_COUNT];
        uint64_t used_bytes[MEASURE_COUNT];
    } before;
};

/* What came of it. */
struct device_change {
    enum basis basis; /* BASIS_UNKNOWN: it could not be told */
    int64_t bytes;    /* taken; negative: given back */
};

/* `asks_nvml`: worth the time that NVML takes. */
void device_window_open(struct device_window *window, int device, bool asks_nvml);
struct device_change device_window_close(struct device_window *window);
/* The program has jumped out of the call around which the calling thread opened one: closes it, so that those
 * opened later are not overlapped by it. What it would have told is not known. */
void device_window_abandon(bool jumped);

/* A device has so many more contexts (EVENT_CONTEXTS), or modules and libraries (EVENT_CODE), which took
 * `change`; `unmeasured` more changes are not in the sum of bytes. */
void device_holds(int device, enum event_type of, int count, int unmeasured, struct device_change change);

/* After an allocation for which the recorder said so, and at the other moments. */
void device_sample(int device, enum sample_reason reason);

/* Before a refusal for want of memory is recorded: who else has some, by NVML. At most once a second. */
void device_refusing(int device);
/* After: it may have been the first that is recorded. */
void device_refused(int device);

/* Whether to spend time on a question now. The time that all of them may take together grows with the run. */
bool device_samples_affordable(void);

#endif
