/*
 * NVML, the library behind nvidia-smi: it tells how much of a device is free without a context on it, and
 * which process uses how much. It is a part of the driver, and is loaded from a process that has loaded the
 * driver, where the first context is about to be made; GPUMEMTRACE_NVML=0 forbids it.
 *
 * Between nvml_open() and nvml_close() only; both are cheap when NVML is in use already. Not for signal
 * handlers. Allocates, and may take the dynamic linker's lock: call with no lock of ours held.
 */
#ifndef HOOKS_NVML_H
#define HOOKS_NVML_H

#include <stdbool.h>
#include <stdint.h>

struct nvml_figures {
    uint64_t free_bytes;
    /* What processes use: all, and this one, 0 where it is not among them (it has nothing there, or is known
     * by another number outside its container). */
    bool processes_known;
    uint64_t all_bytes, own_bytes;
};

/* False: there is none. Then do not close. */
bool nvml_open(void);
void nvml_close(void);
/* The program has jumped out of a call in which the calling thread opened it, or (not `jumped`) calls from a
 * signal handler in the middle of one, which may go on: closes it. Jumped out of NVML itself,
 * whose locks may stay taken for ever: it is not asked any more. */
void nvml_abandon(bool jumped);
/* By the driver's number of a device. False when NVML does not know it, or will not tell. */
bool nvml_ask(int device, struct nvml_figures *figures);

#endif
