/*
 * What keeps memory behind a handle alive besides handles and mappings of addresses: tiles of sparse arrays,
 * and parts of multicast objects. NVIDIA: memory is freed "when all outstanding mappings to the memory are
 * unmapped and when all outstanding references to the handle […] are also released", and such an array is
 * "mapped onto the tile pool memory". What is bound to a multicast object is held by it in NVIDIA's open
 * kernel module. Each part is a reference to the memory.
 *
 * A program without such parts pays one load of a counter where an array, a context or a handle ends.
 */
#ifndef HOOKS_HOLDS_H
#define HOOKS_HOLDS_H

#include <stdint.h>

#include "cuda/abi.h"
#include "hooks/call.h"

/* Whose part it is: of an array or mipmap, by its handle, or of a multicast object, by its. */
enum holds_of { HOLDS_OF_ARRAY, HOLDS_OF_MULTICAST };

/* A part: in three dimensions of one level and layer; what has fewer dimensions is 1 wide in the others. */
struct hold_region {
    uint32_t level, layer;
    uint64_t start[3], extent[3];
};

/* What one call changes, until it is known whether the driver takes it. */
struct hold_change {
    uint64_t number;    /* 0: nothing */
    struct hold *taken; /* out of the table */
};

/* An array without memory of its own was made, in the current context. */
void holds_array_made(uint64_t array);

/* The part is memory of that handle's from now on, and of no other's. Before the real call. */
void holds_add(struct call *call, struct hold_change *change, enum holds_of of, uint64_t owner,
               const struct hold_region *region, CUmemGenericAllocationHandle memory);
/* The part is no memory any more, or (take_all) nothing of its owner is. Before the real call. */
void holds_take(struct call *call, struct hold_change *change, enum holds_of of, uint64_t owner,
                const struct hold_region *region);
void holds_take_all(struct call *call, struct hold_change *change, enum holds_of of, uint64_t owner);
/* After the real call: makes the changes final, or takes them back. */
void holds_changed(struct call *call, CUresult rc, struct hold_change *change);

/* A context ended, and with it its arrays. */
void holds_context_ended(CUcontext context);

#endif
