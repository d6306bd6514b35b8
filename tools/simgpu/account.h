/* What the simulated driver tells the simulated NVML of a device, initialised or not. */
#ifndef SIMGPU_ACCOUNT_H
#define SIMGPU_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#define SIMGPU_DEVICES_MAX   16
#define SIMGPU_OCCUPANTS_MAX 65
#define SIMGPU_ACCOUNT       "simgpu_device_account" /* the function's name */

struct simgpu_account {
    uint64_t total_bytes;
    unsigned char uuid[16];
    int count;
    struct {
        int pid;
        uint64_t bytes;
    } occupants[SIMGPU_OCCUPANTS_MAX];
};

/* False: no such device. */
typedef bool simgpu_account(int device, struct simgpu_account *account);

#endif
