/* Pinned host memory, and host memory of the program's own that it registers. */
#include "hooks/call.h"

HOOK(cuMemAllocHost, (void **address, unsigned int bytes))
{
    FORWARD(cuMemAllocHost);
    CUresult rc = REAL(address, bytes);
    call_allocated(
        &call, rc,
        &(struct allocation){BLOCK(PINNED, PINNED, ADDRESS), .key = GRANTED(*address), .size = bytes});
    return call_end(&call, rc);
}

HOOK(cuMemAllocHost_v2, (void **address, size_t bytes))
{
    FORWARD(cuMemAllocHost_v2);
    CUresult rc = REAL(address, bytes);
    call_allocated(
        &call, rc,
        &(struct allocation){BLOCK(PINNED, PINNED, ADDRESS), .key = GRANTED(*address), .size = bytes});
    return call_end(&call, rc);
}

HOOK(cuMemHostAlloc, (void **address, size_t bytes, unsigned int flags))
{
    FORWARD(cuMemHostAlloc);
    CUresult rc = REAL(address, bytes, flags);
    call_allocated(
        &call, rc,
        &(struct allocation){BLOCK(PINNED, PINNED, ADDRESS), .key = GRANTED(*address), .size = bytes});
    return call_end(&call, rc);
}

HOOK(cuMemFreeHost, (void *address))
{
    struct freeing freeing;
    FORWARD(cuMemFreeHost);
    call_free(&call, &freeing, KEY_ADDRESS, (uintptr_t)address);
    CUresult rc = REAL(address);
    call_freed(&call, rc, &freeing);
    return call_end(&call, rc);
}

static void registered(struct call *call, CUresult rc, const void *address, size_t bytes)
{
    call_allocated(call, rc,
                   &(struct allocation){BLOCK(REGISTERED, REGISTERED, REGISTERED), .key = (uintptr_t)address,
                                        .size = bytes});
}

HOOK(cuMemHostRegister, (void *address, size_t bytes, unsigned int flags))
{
    FORWARD(cuMemHostRegister);
    CUresult rc = REAL(address, bytes, flags);
    registered(&call, rc, address, bytes);
    return call_end(&call, rc);
}

HOOK(cuMemHostRegister_v2, (void *address, size_t bytes, unsigned int flags))
{
    FORWARD(cuMemHostRegister_v2);
    CUresult rc = REAL(address, bytes, flags);
    registered(&call, rc, address, bytes);
    return call_end(&call, rc);
}

HOOK(cuMemHostUnregister, (void *address))
{
    struct freeing freeing;
    FORWARD(cuMemHostUnregister);
    call_free(&call, &freeing, KEY_REGISTERED, (uintptr_t)address);
    CUresult rc = REAL(address);
    call_freed(&call, rc, &freeing);
    return call_end(&call, rc);
}
