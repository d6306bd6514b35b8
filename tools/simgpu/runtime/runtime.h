/*
 * The simulated CUDA runtime. It reaches the driver as NVIDIA's does: dlopen of libcuda.so.1, one dlsym of
 * cuGetProcAddress_v2, and pointers from that; it links with no driver. Each call makes the device's primary
 * context current where the thread has none.
 */
#ifndef SIMGPU_RUNTIME_H
#define SIMGPU_RUNTIME_H

#include "cuda/abi.h"

#ifndef CUDART_VERSION
#define CUDART_VERSION 13000
#endif

#define X(member, name, version, flags, parameters) CUresult(*member) parameters;
struct driver {
#include "driver_calls.h"
};
#undef X

struct dim3 {
    unsigned x, y, z;
};

/* The driver's functions; complete after runtime_ready() or runtime_driver() returned success. */
extern struct driver driver;
extern CUresult (*driver_get_proc_address)(const char *, void **, int, cuuint64_t,
                                           CUdriverProcAddressQueryResult *);

/* Loads the driver, no more. */
cudaError_t runtime_load(void);
/* Loads and initialises it. */
cudaError_t runtime_driver(void);
/* A context is current, too. */
cudaError_t runtime_ready(void);
/* Keeps an error for cudaGetLastError(). */
cudaError_t runtime_finish(cudaError_t error);

/* A call that is the driver's, once a context is current. */
#define RUN(expression)                                                                                      \
    ({                                                                                                       \
        cudaError_t error_ = runtime_ready();                                                                \
        runtime_finish(error_ != cudaSuccess ? error_ : (cudaError_t)(expression));                          \
    })
/* The same for one that needs no context. */
#define ASK(expression)                                                                                      \
    ({                                                                                                       \
        cudaError_t error_ = runtime_driver();                                                               \
        runtime_finish(error_ != cudaSuccess ? error_ : (cudaError_t)(expression));                          \
    })

/* In the shared libraries the functions are exported, in the static one they stay inside the program. */
#ifdef SIMGPU_STATIC
#define EXPORT __attribute__((visibility("hidden")))
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* The function that means stream 0 as the legacy stream, and its twin for which it is the thread's own. */
#define STREAMED(name, parameters, legacy, per_thread)                                                       \
    EXPORT cudaError_t name parameters                                                                       \
    {                                                                                                        \
        return RUN(legacy);                                                                                  \
    }                                                                                                        \
    EXPORT cudaError_t name##_ptsz parameters                                                                \
    {                                                                                                        \
        return RUN(per_thread);                                                                              \
    }

CUdevice runtime_device(void);

#endif
