/*
 * PyTorch's caching allocator. It tells c10's reporter of every block that it hands out or takes back, and of
 * every time it gives up; libc10_cuda.so calls the reporter in libc10.so, and by way of this file. So each
 * tensor's memory is a block of its own, inside the driver's, with the line of Python that asked for it.
 *
 * The caller holds the lock of its device's allocator: nothing here calls PyTorch, takes the GIL or waits for
 * the device. What is said of other memory, the CPU's above all, is passed on and not looked at.
 *
 * Before 1.10 the reporter was told the allocator's own object and not the address; that form is not hooked.
 * The allocator does not report with PYTORCH_NO_CUDA_MEMORY_CACHING=1 or backend:cudaMallocAsync, which have
 * no blocks of their own.
 */
#include "hooks/call.h"
#include "hooks/pool_samples.h"

/* c10::Device, by value: a byte for the type and the index behind it, a byte wide up to now. However wide it
 * gets, it is passed in one register, and all of that is passed on. */
typedef uint64_t c10_device;

#define C10_DEVICE_CUDA 1 /* c10::DeviceType::CUDA */

static bool is_cuda(c10_device device)
{
    return (int8_t)device == C10_DEVICE_CUDA;
}

static int index_of(c10_device device)
{
    return (int8_t)(device >> 8);
}

static struct allocation block_of(c10_device device, uint64_t address, int64_t bytes)
{
    return (struct allocation){.api = "pytorch",
                               .family = FAMILY_TORCH,
                               .space = SPACE_DEVICE,
                               .key_space = KEY_FRAMEWORK,
                               .device = index_of(device),
                               .key = address,
                               .size = (uint64_t)bytes};
}

/* `bytes` is the block's size, negative when it is taken back: then its address can be another thread's as
 * soon as we return. */
static void note_memory(const void *address, int64_t bytes, c10_device device)
{
    struct block ended;
    if (!is_cuda(device) || address == NULL)
        return;
    if (hook_enter()) {
        struct allocation block = block_of(device, (uintptr_t)address, bytes);
        if (bytes > 0)
            record_allocation(&block);
        else if (bytes < 0)
            record_free(KEY_FRAMEWORK, (uintptr_t)address, &ended);
    }
    hook_leave();
}

/* It has emptied its cache and tried again: now the program gets an exception. */
static void note_no_memory(int64_t bytes, c10_device device)
{
    if (!is_cuda(device))
        return;
    if (hook_enter()) {
        struct allocation block = block_of(device, 0, bytes);
        size_t free_bytes = 0, total_bytes = 0;
        if (place_current_device() == block.device)
            place_memory_info(&free_bytes, &total_bytes);
        pool_samples_take();
        record_out_of_memory(&block, CUDA_ERROR_OUT_OF_MEMORY, free_bytes, total_bytes);
    }
    hook_leave();
}

static void *real_function(enum hook_id id, const void *caller)
{
    int kept = errno;
    void *real = real_of_caller(id, caller);
    errno = kept;
    return real;
}

/* The sums are the allocator's own, for all of the device; one type of argument differs from one version to
 * the next and none in width. */
#define MEMORY_HOOK(name)                                                                                    \
    HOOK_RETURNING(void, name,                                                                               \
                   (void *address, int64_t bytes, uint64_t allocated, uint64_t reserved, c10_device device)) \
    {                                                                                                        \
        void (*real)(void *, int64_t, uint64_t, uint64_t, c10_device) =                                      \
            real_function(HOOK_##name, __builtin_return_address(0));                                         \
        note_memory(address, bytes, device);                                                                 \
        if (real != NULL)                                                                                    \
            real(address, bytes, allocated, reserved, device);                                               \
    }

#define NO_MEMORY_HOOK(name)                                                                                 \
    HOOK_RETURNING(void, name, (int64_t bytes, uint64_t allocated, uint64_t reserved, c10_device device))    \
    {                                                                                                        \
        void (*real)(int64_t, uint64_t, uint64_t, c10_device) =                                              \
            real_function(HOOK_##name, __builtin_return_address(0));                                         \
        note_no_memory(bytes, device);                                                                       \
        if (real != NULL)                                                                                    \
            real(bytes, allocated, reserved, device);                                                        \
    }

MEMORY_HOOK(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE) /* 1.10 to 2.0 */
MEMORY_HOOK(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE) /* from 2.1 */
NO_MEMORY_HOOK(_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE)
NO_MEMORY_HOOK(_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE)
NO_MEMORY_HOOK(_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE)
