/*
 * Memory of other processes: opened, imported, and never added to this process's own. Opening what is open
 * already gives the same address again, to be closed once more.
 */
#include "hooks/ask.h"
#include "hooks/call.h"
#include "hooks/vmm.h"

/* The driver tells how large the allocation behind an address is, and where. */
static void opened(struct call *call, CUresult rc, const CUdeviceptr *address, bool of_pool)
{
    struct allocation allocation = {BLOCK(IPC, FOREIGN, ADDRESS), .key = GRANTED(*address),
                                    .of_pool = of_pool};
    if (!call->acts)
        return;
    if (rc == CUDA_SUCCESS) {
        CUdeviceptr base;
        size_t bytes = 0;
        int device;
        if (record_retain(KEY_ADDRESS, allocation.key))
            return;
        if (ask_cuMemGetAddressRange_v2(&base, &bytes, allocation.key) == CUDA_SUCCESS)
            allocation.size = bytes;
        if (ask_cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, allocation.key) ==
            CUDA_SUCCESS)
            allocation.device = device;
    }
    call_allocated(call, rc, &allocation);
}

HOOK(cuIpcOpenMemHandle, (CUdeviceptr * address, CUipcMemHandle handle, unsigned int flags))
{
    FORWARD(cuIpcOpenMemHandle);
    CUresult rc = REAL(address, handle, flags);
    opened(&call, rc, address, false);
    return call_end(&call, rc);
}

HOOK(cuIpcOpenMemHandle_v2, (CUdeviceptr * address, CUipcMemHandle handle, unsigned int flags))
{
    FORWARD(cuIpcOpenMemHandle_v2);
    CUresult rc = REAL(address, handle, flags);
    opened(&call, rc, address, false);
    return call_end(&call, rc);
}

HOOK(cuIpcCloseMemHandle, (CUdeviceptr address))
{
    struct freeing freeing;
    FORWARD(cuIpcCloseMemHandle);
    call_free(&call, &freeing, KEY_ADDRESS, address);
    CUresult rc = REAL(address);
    call_freed(&call, rc, &freeing);
    return call_end(&call, rc);
}

HOOK(cuMemPoolImportPointer, (CUdeviceptr * address, CUmemoryPool pool, CUmemPoolPtrExportData *data))
{
    FORWARD(cuMemPoolImportPointer);
    CUresult rc = REAL(address, pool, data);
    opened(&call, rc, address, true);
    return call_end(&call, rc);
}

HOOK(cuMemImportFromShareableHandle,
     (CUmemGenericAllocationHandle * handle, void *os_handle, CUmemAllocationHandleType type))
{
    FORWARD(cuMemImportFromShareableHandle);
    CUresult rc = REAL(handle, os_handle, type);
    uint64_t key = GRANTED(*handle);
    if (call.acts && !(rc == CUDA_SUCCESS && vmm_hold(key))) {
        call_allocated(&call, rc, &(struct allocation){BLOCK(IPC, FOREIGN, HANDLE), .key = key});
        if (rc == CUDA_SUCCESS)
            vmm_imported(key);
    }
    return call_end(&call, rc);
}
