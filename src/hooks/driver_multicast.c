/* Multicast objects: no memory themselves, they hold what is bound to them (holds.h). What an address of a
 * pool's memory binds stays the pool's matter. */
#include "hooks/ask.h"
#include "hooks/call.h"
#include "hooks/holds.h"
#include "hooks/vmm.h"

HOOK(cuMulticastCreate, (CUmemGenericAllocationHandle * handle, const CUmulticastObjectProp *props))
{
    FORWARD(cuMulticastCreate);
    CUresult rc = REAL(handle, props);
    if (call.acts && rc == CUDA_SUCCESS)
        vmm_multicast_created(*handle);
    return call_end(&call, rc);
}

static int device_of(CUmemGenericAllocationHandle memory)
{
    CUmemAllocationProp props;
    bool known = ask_cuMemGetAllocationPropertiesFromHandle(&props, memory) == CUDA_SUCCESS &&
                 props.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    return known ? props.location.id : DEVICE_UNKNOWN;
}

/* Bytes of one device's part. */
static struct hold_region region_of(int device, size_t offset, size_t bytes)
{
    return (struct hold_region){.layer = (uint32_t)device, .start = {offset, 0, 0}, .extent = {bytes, 1, 1}};
}

static void bound(struct call *call, CUmemGenericAllocationHandle object, int device, size_t offset,
                  CUmemGenericAllocationHandle memory, size_t bytes)
{
    struct hold_change change = {0};
    struct hold_region region = region_of(device, offset, bytes);
    holds_add(call, &change, HOLDS_OF_MULTICAST, object, &region, memory);
    holds_changed(call, CUDA_SUCCESS, &change);
}

/* The handle behind a bound address is known by another reference to it, which is given back at once. */
static void bound_address(struct call *call, CUmemGenericAllocationHandle object, int device, size_t offset,
                          CUdeviceptr address, size_t bytes)
{
    CUmemGenericAllocationHandle memory = 0;
    if (ask_cuMemRetainAllocationHandle(&memory, (void *)(uintptr_t)address) != CUDA_SUCCESS)
        return;
    bound(call, object, device == DEVICE_UNKNOWN ? device_of(memory) : device, offset, memory, bytes);
    ask_cuMemRelease(memory);
}

HOOK(cuMulticastBindMem,
     (CUmemGenericAllocationHandle object, size_t offset, CUmemGenericAllocationHandle memory,
      size_t memory_offset, size_t bytes, unsigned long long flags))
{
    FORWARD(cuMulticastBindMem);
    CUresult rc = REAL(object, offset, memory, memory_offset, bytes, flags);
    if (call.acts && rc == CUDA_SUCCESS)
        bound(&call, object, device_of(memory), offset, memory, bytes);
    return call_end(&call, rc);
}

HOOK(cuMulticastBindMem_v2,
     (CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
      CUmemGenericAllocationHandle memory, size_t memory_offset, size_t bytes, unsigned long long flags))
{
    FORWARD(cuMulticastBindMem_v2);
    CUresult rc = REAL(object, device, offset, memory, memory_offset, bytes, flags);
    if (call.acts && rc == CUDA_SUCCESS)
        bound(&call, object, device, offset, memory, bytes);
    return call_end(&call, rc);
}

HOOK(cuMulticastBindAddr, (CUmemGenericAllocationHandle object, size_t offset, CUdeviceptr address,
                           size_t bytes, unsigned long long flags))
{
    FORWARD(cuMulticastBindAddr);
    CUresult rc = REAL(object, offset, address, bytes, flags);
    if (call.acts && rc == CUDA_SUCCESS)
        bound_address(&call, object, DEVICE_UNKNOWN, offset, address, bytes);
    return call_end(&call, rc);
}

HOOK(cuMulticastBindAddr_v2, (CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
                              CUdeviceptr address, size_t bytes, unsigned long long flags))
{
    FORWARD(cuMulticastBindAddr_v2);
    CUresult rc = REAL(object, device, offset, address, bytes, flags);
    if (call.acts && rc == CUDA_SUCCESS)
        bound_address(&call, object, device, offset, address, bytes);
    return call_end(&call, rc);
}

HOOK(cuMulticastUnbind, (CUmemGenericAllocationHandle object, CUdevice device, size_t offset, size_t bytes))
{
    struct hold_region region = region_of(device, offset, bytes);
    struct hold_change change = {0};
    FORWARD(cuMulticastUnbind);
    holds_take(&call, &change, HOLDS_OF_MULTICAST, object, &region);
    CUresult rc = REAL(object, device, offset, bytes);
    holds_changed(&call, rc, &change);
    return call_end(&call, rc);
}
