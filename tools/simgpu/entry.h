/*
 * How every exported function begins and ends: the driver must be initialised, a context current and alive
 * where one is needed, a failure that the user asked for happens here, and the one lock is held in between.
 */
#ifndef SIMGPU_ENTRY_H
#define SIMGPU_ENTRY_H

#include "simgpu.h"
#ifndef SIMGPU_NO_PROTOTYPES /* where the exports are declared for their addresses only */
#include "api/driver.h"
#endif

enum needs {
    NEEDS_NOTHING = 0, /* works before cuInit */
    NEEDS_INIT = 1,
    NEEDS_CONTEXT = 2,
    /* Not allowed while a stream captures in a mode that covers the calling thread; it invalidates that
       capture. */
    NEEDS_NO_CAPTURE = 4,
    NEEDS_MEMORY_CALL = NEEDS_CONTEXT | NEEDS_NO_CAPTURE,
};

/* Takes the lock when the call may go on; otherwise returns why not, with the lock free. */
CUresult entry_begin(const char *name, unsigned needs);
CUresult entry_end(CUresult result);

/* `name` is what SIMGPU_FAIL knows the call by: without version and stream suffixes. */
#define CALL(name, needs, expression)                                                                        \
    ({                                                                                                       \
        CUresult result_ = entry_begin(name, needs);                                                         \
        if (result_ == CUDA_SUCCESS)                                                                         \
            result_ = entry_end(expression);                                                                 \
        result_;                                                                                             \
    })

/* A function of the program's, called by entry_end() once the lock is free. */
void entry_call_later(CUhostFn function, void *data);

CUresult driver_initialise(void);
CUresult devices_make(void);
bool simgpu_verbose(void);
/* Configured sizes, in bytes. */
uint64_t simgpu_memory_bytes(void);
uint64_t simgpu_context_bytes(void);
/* The most addresses that a window should take, where that is less than it would. */
uint64_t simgpu_window_bytes(void);
int simgpu_device_count(void);
int simgpu_pids(void);
/* What questions about memory need besides. Which of them end a capture NVIDIA does not say. */
unsigned needs_when_asked(void);

#define EXPORT __attribute__((visibility("default")))

#endif
