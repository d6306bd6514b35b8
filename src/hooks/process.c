/*
 * Ways out of a process that run no atexit handler: _exit, where Python's os._exit, multiprocessing children
 * and torchrun workers end, and exec, by which a program that restarts itself is gone without an end.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hooks/export.h"
#include "hooks/loader.h"
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

/* What the hooks of exec go on to. Looked for at the start, since a child between vfork() and exec may not
 * ask the dynamic linker. */
static struct {
    int (*_Atomic execv)(const char *, char *const[]);
    int (*_Atomic execve)(const char *, char *const[], char *const[]);
    int (*_Atomic execvp)(const char *, char *const[]);
    int (*_Atomic execvpe)(const char *, char *const[], char *const[]);
    int (*_Atomic fexecve)(int, char *const[], char *const[]);
    int (*_Atomic execveat)(int, const char *, char *const[], char *const[], int);
} next;

#define FIND(name)                                                                                           \
    do {                                                                                                     \
        if (atomic_load_explicit(&next.name, memory_order_acquire) == NULL)                                  \
            atomic_store_explicit(&next.name, (__typeof__(&name))loader_next(#name), memory_order_release);  \
    } while (0)

static __attribute__((constructor)) void find_all(void)
{
    FIND(execv);
    FIND(execve);
    FIND(execvp);
    FIND(execvpe);
    FIND(fexecve);
    FIND(execveat);
}

/* The program ends here if the call succeeds, and goes on as it was if it fails. What the C library's own
 * exec functions call in turn nobody can stand in for, so ours call no exported name either. */
#define EXEC(name, ...)                                                                                      \
    FIND(name);                                                                                              \
    __typeof__(&name) real = atomic_load_explicit(&next.name, memory_order_acquire);                         \
    if (real == NULL) {                                                                                      \
        errno = ENOSYS;                                                                                      \
        return -1;                                                                                           \
    }                                                                                                        \
    bool finished = preload_before_exec();                                                                   \
    int result = real(__VA_ARGS__);                                                                          \
    if (finished)                                                                                            \
        preload_after_exec_failed();                                                                         \
    return result

static int do_execv(const char *path, char *const argv[])
{
    EXEC(execv, path, argv);
}

EXPORT int execv(const char *path, char *const argv[])
{
    return do_execv(path, argv);
}

static int do_execve(const char *path, char *const argv[], char *const envp[])
{
    EXEC(execve, path, argv, envp);
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    return do_execve(path, argv, envp);
}

static int do_execvp(const char *file, char *const argv[])
{
    EXEC(execvp, file, argv);
}

EXPORT int execvp(const char *file, char *const argv[])
{
    return do_execvp(file, argv);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    EXEC(execvpe, file, argv, envp);
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    EXEC(fexecve, fd, argv, envp);
}

EXPORT int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags)
{
    EXEC(execveat, fd, path, argv, envp, flags);
}

/* The arguments from `first` to the NULL that ends them, as an array on the caller's stack, as the C library
 * itself does it; `rest` is left behind that NULL. */
#define COLLECT(argv, first, rest)                                                                           \
    size_t count = 1;                                                                                        \
    va_start(rest, first);                                                                                   \
    for (const char *at = first; at != NULL; at = va_arg(rest, const char *))                                \
        count++;                                                                                             \
    va_end(rest);                                                                                            \
    char *argv[count];                                                                                       \
    va_start(rest, first);                                                                                   \
    argv[0] = (char *)(uintptr_t)first;                                                                      \
    for (size_t i = 1; i < count; i++)                                                                       \
    argv[i] = va_arg(rest, char *)

EXPORT int execl(const char *path, const char *first, ...)
{
    va_list rest;
    COLLECT(argv, first, rest);
    va_end(rest);
    return do_execv(path, argv);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    va_list rest;
    COLLECT(argv, first, rest);
    va_end(rest);
    return do_execvp(file, argv);
}

EXPORT int execle(const char *path, const char *first, ...)
{
    va_list rest;
    COLLECT(argv, first, rest);
    char *const *envp = va_arg(rest, char *const *);
    va_end(rest);
    return do_execve(path, argv, envp);
}
