/* Who a process is, beyond a pid that is used again: read from /proc, in the library and in the tool. */
#ifndef TRACE_LIVENESS_H
#define TRACE_LIVENESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/process_info.h"

/* Field 22 of /proc/PID/stat, the start in clock ticks since boot; 0 when it cannot be read or the process
 * is a zombie. No malloc. */
uint64_t process_start_ticks(uint32_t pid);
/* /proc/sys/kernel/random/boot_id, NUL-terminated; empty when it cannot be read. */
void read_boot_id(char *text, size_t bytes);
/* Whether that very process still runs, on this boot of this machine. */
bool process_is_alive(const struct process_info *process);

#endif
