/*
 * NVIDIA's side of test_cuda_abi: the facts of facts.h as the toolkit's own headers tell them, built as a
 * library of its own because the two sets of names clash. Empty where no toolkit is installed.
 */
#include <stddef.h>

struct abi_fact {
    const char *name;
    unsigned long long value;
};

#if __has_include(<cuda.h>) && __has_include(<cuda_runtime_api.h>)
#define __CUDA_API_VERSION_INTERNAL /* shows the layouts of retired versions too */
#include <cuda.h>
#include <cuda_runtime_api.h>

#if CUDA_VERSION >= 13000 /* older headers lack names that we have */
#include "cuda/abi_errors.h"
#include "cuda/abi_formats.h"

typedef struct cudaMemPoolPtrExportData cudaMemPoolPtrExportData;
typedef struct cudaMemPoolProps cudaMemPoolProps;
typedef struct cudaMemLocation cudaMemLocation;
typedef struct cudaMemAccessDesc cudaMemAccessDesc;
typedef struct cudaMemAllocNodeParams cudaMemAllocNodeParams;
typedef struct cudaExternalMemoryHandleDesc cudaExternalMemoryHandleDesc;
typedef struct cudaExternalMemoryBufferDesc cudaExternalMemoryBufferDesc;

#define VALUE(constant)         {#constant, (unsigned long long)(constant)},
#define AS_VALUE(constant, ...) VALUE(constant)
#define SIZE(type)              {"sizeof(" #type ")", sizeof(type)},
#define OFFSET(type, field)     {"offsetof(" #type ", " #field ")", offsetof(type, field)},
const struct abi_fact abi_facts[] = {CUDA_DRIVER_ERRORS(AS_VALUE) CUDA_RUNTIME_ERRORS(AS_VALUE)
                                         CUDA_ARRAY_FORMATS(AS_VALUE)
#include "facts.h"
                                             {NULL, 0}};
#define FOUND
#endif
const int abi_facts_version = CUDA_VERSION;
#else
const int abi_facts_version = 0;
#endif

#ifndef FOUND
const struct abi_fact abi_facts[] = {{NULL, 0}};
#endif

/* NVML's header is a part of its own, which not every toolkit has. */
#if __has_include(<nvml.h>)
#include <nvml.h>
#undef VALUE
#undef SIZE
#undef OFFSET
#define VALUE(constant)     {#constant, (unsigned long long)(constant)},
#define SIZE(type)          {"sizeof(" #type ")", sizeof(type)},
#define OFFSET(type, field) {"offsetof(" #type ", " #field ")", offsetof(type, field)},
const struct abi_fact nvml_facts[] = {
#include "nvml_facts.h"
    {NULL, 0}};
#else
const struct abi_fact nvml_facts[] = {{NULL, 0}};
#endif
