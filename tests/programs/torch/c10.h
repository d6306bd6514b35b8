/*
 * What a stand-in for PyTorch's allocator has in common with the real one: the reporter in libc10.so, under
 * the very names it has there. C10_FORM chooses the spelling: 21 as from PyTorch 2.1 on, 110 as from 1.10 on,
 * 10 as before, when the reporter was told an object and not an address.
 */
#ifndef C10_H
#define C10_H

#include <cstddef>
#include <cstdint>

#ifndef C10_FORM
#define C10_FORM 21
#endif

#if C10_FORM == 110
using Sum = int64_t;
#else
using Sum = size_t;
#endif

namespace c10
{
struct Device {
    int8_t type; /* 0: CPU, 1: CUDA */
    int8_t index;
};

#if C10_FORM == 10
void reportMemoryUsageToProfiler(void *object, int64_t bytes, Device device);
#else
void reportMemoryUsageToProfiler(void *address, int64_t bytes, Sum allocated, Sum reserved, Device device);
void reportOutOfMemoryToProfiler(int64_t bytes, Sum allocated, Sum reserved, Device device);
#endif
} // namespace c10

/* What reached the reporter, in order. */
struct Reported {
    uint64_t address;
    int64_t bytes;
    uint64_t allocated, reserved;
    int32_t type, index;
};

extern "C" size_t c10_reported(Reported *reported, size_t most);
/* As the CPU's allocator does, from inside libc10.so itself. */
extern "C" void c10_report(void *address, int64_t bytes, int type, int index);

#endif
