/* Tells a process from a later one with its pid (liveness.h). */
#include "trace/liveness.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns the bytes read, NUL-terminated, or 0. */
static size_t read_small(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd < 0 ? -1 : read(fd, text, bytes - 1);
    if (fd >= 0)
        close(fd);
    text[count > 0 ? count : 0] = '\0';
    return count > 0 ? (size_t)count : 0;
}

uint64_t process_start_ticks(uint32_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", (unsigned)pid);
    if (read_small(path, text, sizeof text) == 0)
        return 0;
    /* The name in field 2 may hold anything, so fields are counted from its closing bracket. */
    const char *at = strrchr(text, ')');
    if (at != NULL && (strncmp(at, ") Z", 3) == 0 || strncmp(at, ") X", 3) == 0))
        return 0; /* dead, only not yet waited for */
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at, ' ');
        at = at == NULL ? NULL : at + 1;
    }
    uint64_t ticks = 0;
    for (; at != NULL && *at >= '0' && *at <= '9'; at++)
        ticks = ticks * 10 + (uint64_t)(*at - '0');
    return ticks;
}

void read_boot_id(char *text, size_t bytes)
{
    size_t count = read_small("/proc/sys/kernel/random/boot_id", text, bytes);
    if (count > 0 && text[count - 1] == '\n')
        text[count - 1] = '\0';
}

bool process_is_alive(const struct process_info *process)
{
    char boot_id[40];
    read_boot_id(boot_id, sizeof boot_id);
    return process->process_start_ticks != 0 && boot_id[0] != '\0' &&
           strcmp(boot_id, process->boot_id) == 0 &&
           process_start_ticks(process->pid) == process->process_start_ticks;
}
