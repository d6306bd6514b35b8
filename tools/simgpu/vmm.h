/*
 * Virtual memory management: allocations without an address, reserved addresses without memory, and mappings
 * between them. An allocation lives while a handle or a mapping refers to it.
 */
#ifndef SIMGPU_VMM_H
#define SIMGPU_VMM_H

#include "simgpu.h"

struct allocation {
    struct handle handle;
    uint64_t size;
    CUmemAllocationProp properties;
    struct device *device; /* whose memory it takes; NULL: host memory, or none of ours */
    unsigned handles;      /* 0: the handle's value means nothing any more */
    unsigned mappings;
    struct span *span; /* where its bytes are, or */
    void *bytes;       /* (in memory that can be shared) */
    int fd;
    bool imported;
    struct multicast *multicast; /* not memory, but a set of devices' memory */
};

struct mapping {
    uint64_t start, size;
    struct allocation *allocation;
    unsigned readable, writable; /* a bit for each device */
    bool host_access;
};

struct reservation {
    uint64_t start, size, asked;
    void *room; /* mapped for it alone, at the address it wished for; else NULL */
    struct span *span;
    struct mapping *mappings[]; /* by granule */
};

/* The allocation behind a handle that may be used; NULL: none. */
struct allocation *allocation_get(CUmemGenericAllocationHandle handle);
struct allocation *allocation_new(uint64_t size, const CUmemAllocationProp *properties);
/* After a handle or a mapping went away: ends it when it was the last. */
void allocation_settle(struct allocation *allocation);
struct mapping *mapping_at(uint64_t address);

/* A file to be mapped elsewhere, and what it says of itself at its end. */
CUresult share_create(struct allocation *allocation);
CUresult share_export(int *out, const struct allocation *allocation);

#endif
