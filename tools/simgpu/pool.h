/*
 * Memory pools. A pool reserves granules from its location and hands out parts of them; what is freed stays
 * reserved until a synchronisation finds more of it than the release threshold, or the pool is trimmed.
 */
#ifndef SIMGPU_POOL_H
#define SIMGPU_POOL_H

#include "simgpu.h"

struct region; /* of granules, reserved together */

struct pool {
    struct handle handle;
    CUmemPoolProps properties;
    struct device *device; /* whose memory it is; NULL: host memory */
    struct window *source; /* where it reserves */
    struct window window;  /* what it has reserved, as a window to take spans from */
    struct small small;
    struct region *regions;
    bool own_source; /* made for this pool, so that other processes can map it */
    bool imported, destroyed;
    unsigned blocks;                                              /* alive */
    uint64_t reserved, reserved_high, used, used_high, threshold; /* bytes */
    int reuse[3];                                                 /* the three CU_MEMPOOL_ATTR_REUSE_* */
    unsigned peers;              /* a bit for each device that may access it */
    struct pool *next, **before; /* all pools */
};

/* A pool's block; NULL: no memory. */
struct block *pool_take(struct pool *pool, uint64_t bytes);
/* Gives back what is reserved and unused while more than `keep` bytes are. */
void pool_trim(struct pool *pool, uint64_t keep);
/* The moment when a real driver notices that frees have happened. */
void pools_synchronize(void);

struct pool *pool_new(const CUmemPoolProps *properties, struct window *source, struct device *device);
/* Ends the pool once none of its blocks is left. */
void pool_destroy(struct pool *pool);
struct pool *pool_default(struct device *device); /* NULL: no memory for it */

#endif
