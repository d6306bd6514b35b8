/* For the simulated NVML (account.h): who uses how much of a device. */
#include "account.h"

#include <string.h>

#include "entry.h"
#include "physical.h"

_Static_assert(SIMGPU_DEVICES_MAX == MAX_DEVICES, "the same devices");

static CUresult fill(struct simgpu_account *account, int device)
{
    struct occupant occupants[SIMGPU_OCCUPANTS_MAX];
    CUuuid uuid = device_uuid(device);
    if (device >= simgpu_device_count())
        return CUDA_ERROR_INVALID_DEVICE;
    memcpy(account->uuid, uuid.bytes, sizeof account->uuid);
    account->total_bytes = simgpu_memory_bytes() / GRANULE * GRANULE;
    account->count = physical_occupants(device, occupants, SIMGPU_OCCUPANTS_MAX);
    for (int i = 0; i < account->count; i++) {
        account->occupants[i].pid = occupants[i].pid + simgpu_pids();
        account->occupants[i].bytes = occupants[i].bytes;
    }
    return CUDA_SUCCESS;
}

EXPORT simgpu_account simgpu_device_account;
EXPORT bool simgpu_device_account(int device, struct simgpu_account *account)
{
    return CALL("simgpu_device_account", NEEDS_NOTHING, fill(account, device)) == CUDA_SUCCESS;
}
