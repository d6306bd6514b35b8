/* What the import hooks tell the virtual memory hooks (driver_vmm.c). */
#ifndef HOOKS_VMM_H
#define HOOKS_VMM_H

#include "cuda/abi.h"

/* A handle was imported and recorded with size 0: its first mapping tells the size. */
void vmm_imported(CUmemGenericAllocationHandle handle);

#endif
