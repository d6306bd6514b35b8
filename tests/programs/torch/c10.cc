/* libc10.so as far as a tracer meets it: the reporter, which here notes what it is told (c10.h). */
#include "c10.h"

#include <mutex>
#include <vector>

static std::mutex lock;
static std::vector<Reported> log_of_reports;

static void note(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved, c10::Device device)
{
    std::lock_guard<std::mutex> guard(lock);
    log_of_reports.push_back(
        {reinterpret_cast<uint64_t>(address), bytes, allocated, reserved, device.type, device.index});
}

#if C10_FORM == 10
void c10::reportMemoryUsageToProfiler(void *object, int64_t bytes, Device device)
{
    note(object, bytes, 0, 0, device);
}
#else
void c10::reportMemoryUsageToProfiler(void *address, int64_t bytes, Sum allocated, Sum reserved,
                                      Device device)
{
    note(address, bytes, static_cast<uint64_t>(allocated), static_cast<uint64_t>(reserved), device);
}

void c10::reportOutOfMemoryToProfiler(int64_t bytes, Sum allocated, Sum reserved, Device device)
{
    note(nullptr, bytes, static_cast<uint64_t>(allocated), static_cast<uint64_t>(reserved), device);
}
#endif

size_t c10_reported(Reported *reported, size_t most)
{
    std::lock_guard<std::mutex> guard(lock);
    for (size_t i = 0; i < log_of_reports.size() && i < most; i++)
        reported[i] = log_of_reports[i];
    return log_of_reports.size();
}

void c10_report(void *address, int64_t bytes, int type, int index)
{
    c10::Device device = {static_cast<int8_t>(type), static_cast<int8_t>(index)};
#if C10_FORM == 10
    c10::reportMemoryUsageToProfiler(address, bytes, device);
#else
    c10::reportMemoryUsageToProfiler(address, bytes, 0, 0, device);
#endif
}
