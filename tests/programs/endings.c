/*
 * Takes three blocks of memory, gives one back and ends: endings HOW [SIGNAL]. Prints "worked" before. What
 * is freed in handlers and destructors, where those run, is the second block.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

static address blocks[3];
static void *context;
static const char *self, *argument;

static void free_second(void)
{
    if (cuCtxSetCurrent(context) == 0) /* any thread may be the last */
        cuMemFree_v2(blocks[1]);
}

static void end_by_return(void)
{
}

static void end_by_exit(void)
{
    exit(7);
}

static void end_by_quick_exit(void)
{
    quick_exit(7);
}

static void end_by__exit(void)
{
    _exit(7);
}

static void end_by__Exit(void)
{
    _Exit(7);
}

static void end_by_raw_exit(void)
{
    syscall(SYS_exit_group, 7);
}

static void end_by_abort(void)
{
    abort();
}

static void end_by_signal(void)
{
    raise(atoi(argument));
}

static void end_by_fault(void)
{
    *(volatile int *)16 = 1;
}

/* The program's own handler goes on to the default, as many do. */
static void handle(int signal_number)
{
    static const char text[] = "handled\n";
    if (write(STDOUT_FILENO, text, sizeof text - 1) > 0)
        signal(signal_number, SIG_DFL);
}

static void end_by_handled_fault(void)
{
    signal(SIGSEGV, handle);
    *(volatile int *)16 = 1;
}

static void *exit_elsewhere(void *unused)
{
    (void)unused;
    exit(7);
}

static void end_by_exit_in_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, exit_elsewhere, NULL);
    pthread_join(thread, NULL);
}

static void *allocate_forever(void *unused)
{
    address block;
    cuCtxSetCurrent(context);
    for (;;) {
        if (cuMemAlloc_v2(&block, 4096) != 0 || cuMemFree_v2(block) != 0)
            return unused;
    }
}

/* Returns with threads in the middle of their work. */
static void end_by_threads(void)
{
    for (int i = 0; i < 8; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, allocate_forever, NULL);
    }
    usleep(20000);
}

static void *outlive(void *unused)
{
    (void)unused;
    usleep(20000);
    return NULL;
}

static void end_by_pthread_exit(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, outlive, NULL);
    pthread_exit(NULL);
}

extern char **environ;

static void end_by_execv(void)
{
    char *const arguments[] = {(char *)self, "none", NULL};
    execv(self, arguments);
}

static void end_by_execve(void)
{
    char *const arguments[] = {(char *)self, "none", NULL};
    execve(self, arguments, environ);
}

static void end_by_execvp(void)
{
    char *const arguments[] = {(char *)self, "none", NULL};
    execvp(self, arguments);
}

static void end_by_execvpe(void)
{
    char *const arguments[] = {(char *)self, "none", NULL};
    execvpe(self, arguments, environ);
}

static void end_by_execl(void)
{
    execl(self, self, "none", (char *)NULL);
}

static void end_by_execlp(void)
{
    execlp(self, self, "none", (char *)NULL);
}

static void end_by_execle(void)
{
    execle(self, self, "none", (char *)NULL, environ);
}

static void end_by_fexecve(void)
{
    char *const arguments[] = {(char *)self, "none", NULL};
    fexecve(open(self, O_RDONLY | O_CLOEXEC), arguments, environ);
}

static void end_by_execveat(void)
{
    char *const arguments[] = {(char *)self, "none", NULL};
    execveat(AT_FDCWD, self, arguments, environ, 0);
}

/* It fails, and the program goes on. */
static void end_by_failed_exec(void)
{
    address block;
    for (int i = 0; i < 3; i++) {
        if (execl("/no/such/program", "program", (char *)NULL) != -1 || cuMemAlloc_v2(&block, 1 << 20) != 0)
            exit(3);
    }
    perror("exec");
    exit(7);
}

/* The child replaces itself; the parent goes on. */
static void end_by_vfork(void)
{
    int status;
    pid_t pid = vfork();
    if (pid == 0) {
        execl(self, self, "none", (char *)NULL);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    pid = vfork();
    if (pid == 0)
        _exit(5);
    waitpid(pid, &status, 0);
    exit(WEXITSTATUS(status) == 5 ? 7 : 1);
}

static const struct {
    const char *name;
    void (*end)(void);
} ways[] = {
    {"return", end_by_return},
    {"exit", end_by_exit},
    {"quick_exit", end_by_quick_exit},
    {"_exit", end_by__exit},
    {"_Exit", end_by__Exit},
    {"raw_exit", end_by_raw_exit},
    {"abort", end_by_abort},
    {"signal", end_by_signal},
    {"fault", end_by_fault},
    {"handled_fault", end_by_handled_fault},
    {"exit_in_thread", end_by_exit_in_thread},
    {"threads", end_by_threads},
    {"pthread_exit", end_by_pthread_exit},
    {"execv", end_by_execv},
    {"execve", end_by_execve},
    {"execvp", end_by_execvp},
    {"execvpe", end_by_execvpe},
    {"execl", end_by_execl},
    {"execlp", end_by_execlp},
    {"execle", end_by_execle},
    {"fexecve", end_by_fexecve},
    {"execveat", end_by_execveat},
    {"failed_exec", end_by_failed_exec},
    {"vfork", end_by_vfork},
};

int main(int argc, char **argv)
{
    const struct rlimit no_core = {0, 0};
    const char *how = argc > 1 ? argv[1] : "none";
    if (strcmp(how, "none") == 0)
        return 7; /* what exec brought */
    self = argv[0];
    argument = argc > 2 ? argv[2] : NULL;
    setrlimit(RLIMIT_CORE, &no_core);
    if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0 || cuCtxSetCurrent(context) != 0)
        return 2;
    atexit(free_second);
    at_quick_exit(free_second);
    for (int i = 0; i < 3; i++) {
        if (cuMemAlloc_v2(&blocks[i], (size_t)(i + 1) << 20) != 0)
            return 2;
    }
    cuMemFree_v2(blocks[0]);
    if (write(STDOUT_FILENO, "worked\n", 7) != 7)
        return 2;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(how, ways[i].name) == 0) {
            ways[i].end();
            return 7;
        }
    }
    return 9;
}
