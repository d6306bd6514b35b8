/* When to sample a device (sampling.h). */
#include "preload/sampling.h"

#define INTERVAL_NS UINT64_C(100000000)
#define PATIENCE    1000                /* times what an answer takes */
#define RISE_PART   8                   /* of the highest so far */
#define RISE_LEAST  (UINT64_C(8) << 20) /* a rise below is none, until it is time */

bool sampling_due(struct sampling *sampling, uint64_t now_ns, uint64_t tracked_bytes)
{
    uint64_t highest = sampling->highest_bytes;
    uint64_t rise = highest / RISE_PART > RISE_LEAST ? highest / RISE_PART : RISE_LEAST;
    bool rises = tracked_bytes > highest && tracked_bytes - highest >= rise;
    if (sampling->begun && !rises && now_ns < sampling->due_ns)
        return false;
    sampling->begun = true;
    sampling->due_ns = now_ns + INTERVAL_NS;
    if (tracked_bytes > highest)
        sampling->highest_bytes = tracked_bytes;
    return true;
}

void sampling_took(struct sampling *sampling, uint64_t now_ns, uint64_t took_ns)
{
    uint64_t wait = took_ns < UINT64_MAX / PATIENCE ? took_ns * PATIENCE : UINT64_MAX / PATIENCE;
    if (now_ns + wait > sampling->due_ns)
        sampling->due_ns = now_ns + wait;
}
