/* cuGetProcAddress, in both signatures. */
#include "entry.h"
#include "exports.h"

static CUresult look_up(const char *name, void **out, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status)
{
    if (!name || !out || version > SIMGPU_DRIVER_VERSION || version < 0 ||
        flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    *out = export_pick(name, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, status);
    return CUDA_SUCCESS;
}

/* From CUDA 12 on; a name that is not found is no error, the pointer and the status tell. */
EXPORT CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *symbol_status)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CUresult result = CALL("cuGetProcAddress", NEEDS_NOTHING, look_up(name, out, version, flags, &status));
    if (result == CUDA_SUCCESS && symbol_status)
        *symbol_status = status;
    return result;
}

/* CUDA 11.3 to 11.8: without a status, so that a name that is not found is an error. */
EXPORT CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CUresult result = CALL("cuGetProcAddress", NEEDS_NOTHING, look_up(name, out, version, flags, &status));
    return result == CUDA_SUCCESS && !*out ? CUDA_ERROR_NOT_FOUND : result;
}
