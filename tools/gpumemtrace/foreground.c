/* Running a child in the foreground; see foreground.h. */
#include "foreground.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* What people and batch systems send to a job. All others act on us as on any program. */
static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

static void handled_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(*passed_on); i++)
        sigaddset(set, passed_on[i]);
}

/* To the program, or, when it has ended, to what it left behind. */
static void pass_on(pid_t child, int number)
{
    if (child > 0) {
        kill(child, number);
        return;
    }
    FILE *children = fopen("/proc/thread-self/children", "re");
    for (int left; children && fscanf(children, "%d", &left) == 1;)
        kill(left, number);
    if (children)
        fclose(children);
}

/* Returns once the child, and with `follow` all that became ours, have ended. The handled signals are
 * blocked.
 */
static int wait_and_pass_signals(pid_t child, bool follow, const sigset_t *handled)
{
    siginfo_t signal;
    int status, result = 0;
    for (;;) {
        pid_t ended = waitpid(follow ? -1 : child, &status, WNOHANG);
        if (ended == child) {
            result = status;
            child = 0;
        }
        if (child == 0 && !follow)
            return result;
        if (ended > 0)
            continue;
        if (ended < 0 && errno != EINTR)
            return result;
        int number = sigwaitinfo(handled, &signal);
        /* The kernel's own come from the terminal, which sent them to the child as well. */
        if (number > 0 && number != SIGCHLD && signal.si_code != SI_KERNEL && signal.si_pid != child)
            pass_on(child, number);
    }
}

int foreground_run(char *const argv[], bool follow, int *wait_status)
{
    posix_spawnattr_t attributes;
    sigset_t handled, before;
    pid_t child;
    handled_signals(&handled);
    /* Whoever started us may ignore SIGCHLD, and then no status could be had. */
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &handled, &before);
    if (follow)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &before);
    int error = posix_spawnp(&child, argv[0], NULL, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    if (error == 0)
        *wait_status = wait_and_pass_signals(child, follow, &handled);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return error;
}

void foreground_end_like(int wait_status)
{
    if (!WIFSIGNALED(wait_status))
        exit(WEXITSTATUS(wait_status));
    int number = WTERMSIG(wait_status);
    const struct rlimit none = {0, 0};
    sigset_t only;
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0); /* a core handler behind a pipe does not ask for the limit */
    signal(number, SIG_DFL);
    sigemptyset(&only);
    sigaddset(&only, number);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    raise(number);
    exit(128 + number);
}
