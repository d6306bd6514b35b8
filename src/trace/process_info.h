/* Who was traced: collected by the library at the start, read back from the header and the PROCESS record. */
#ifndef TRACE_PROCESS_INFO_H
#define TRACE_PROCESS_INFO_H

#include <stdbool.h>
#include <stdint.h>

enum process_end { PROCESS_EXITED, PROCESS_KILLED, PROCESS_RUNNING };

struct process_info {
    uint32_t pid, ppid;
    const char *host, *exe;
    uint32_t argument_count;
    const char *const *arguments;
    int rank; /* -1: none */
    uint64_t start_realtime_ns, start_monotonic_ns, process_start_ticks;
    const char *boot_id, *session;
    uint64_t duration_ns;
    enum process_end end;
    bool complete; /* every event that happened is in it */
};

#endif
