/*
 * References to the memory behind a handle, whoever holds them: handles, mappings (driver_vmm.c), tiles of
 * sparse arrays and multicast objects (holds.h).
 *
 * Most handles are known to the recorder alone. Some need remembering here: a multicast object is handled
 * like memory and is none; of imported memory the size is not known before it is mapped, and it may be
 * another process's multicast object.
 */
#ifndef HOOKS_VMM_H
#define HOOKS_VMM_H

#include "cuda/abi.h"
#include "hooks/call.h"
#include "hooks/holds.h"

enum handle_kind { HANDLE_OF_MEMORY, HANDLE_OF_MULTICAST, HANDLE_WITHOUT_SIZE, HANDLE_OF_IMPORT };

/* After the driver gave the handle out for the first time. An imported one was recorded with size 0. */
void vmm_multicast_created(CUmemGenericAllocationHandle handle);
void vmm_imported(CUmemGenericAllocationHandle handle);

/* One reference more. False when it is of nothing that anyone knows. */
bool vmm_hold(CUmemGenericAllocationHandle handle);
/* The same for a mapping, which tells the size of imported memory. False for what is no memory. */
bool vmm_map(CUmemGenericAllocationHandle handle, size_t bytes);

/* One reference less, before the real call; and taken back when that is refused. */
struct vmm_release {
    enum handle_kind kind;
    struct freeing freeing;
    struct hold_change ended; /* what ends with a multicast object */
};
void vmm_release(struct call *call, struct vmm_release *release, CUmemGenericAllocationHandle handle);
void vmm_released(struct call *call, CUresult rc, struct vmm_release *release,
                  CUmemGenericAllocationHandle handle);

#endif
