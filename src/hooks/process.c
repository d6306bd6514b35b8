/*
 * Ways out of a process that run no atexit handler. Python's os._exit, multiprocessing children and torchrun
 * workers end here.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "hooks/export.h"
#include "preload/life.h"

/* As the C library's own: all threads end, and where the kernel should ever return, it is asked again. */
static _Noreturn void leave(int status)
{
    preload_finish();
    for (;;) {
        syscall(SYS_exit_group, status);
        syscall(SYS_exit, status);
    }
}

EXPORT _Noreturn void _exit(int status)
{
    leave(status);
}

EXPORT _Noreturn void _Exit(int status)
{
    leave(status);
}
