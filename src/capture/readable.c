/* The kernel's word on addresses (readable.h), by a system call that reads memory and then does nothing. */
#include "capture/readable.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096 /* the smallest there is */

/* The kernel copies 8 bytes before it finds that -1 is nothing to do with a signal mask. */
static bool is_word_readable(uintptr_t address)
{
    return syscall(SYS_rt_sigprocmask, -1, address & ~(uintptr_t)7, NULL, 8) == 0 || errno != EFAULT;
}

bool is_readable(const void *start, size_t bytes)
{
    uintptr_t address = (uintptr_t)start;
    if (bytes == 0 || address + bytes < address)
        return false;
    for (uintptr_t at = address; at < address + bytes; at += PAGE)
        if (!is_word_readable(at))
            return false;
    return is_word_readable(address + bytes - 1);
}
