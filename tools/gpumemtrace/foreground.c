/* Running a child in the foreground; see foreground.h. */
#include "foreground.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
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

/* Returns once the child has ended. The handled signals are blocked. */
static int wait_and_pass_signals(pid_t child, const sigset_t *handled)
{
    siginfo_t signal;
    int status;
    for (;;) {
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child)
            return status;
        if (ended < 0 && errno != EINTR)
            return 0;
        int number = sigwaitinfo(handled, &signal);
        /* The kernel's own come from the terminal, which sent them to the child as well. */
        if (number > 0 && number != SIGCHLD && signal.si_code != SI_KERNEL && signal.si_pid != child)
            kill(child, number);
    }
}

int foreground_run(char *const argv[], int *wait_status)
{
    extern char **environ;
    posix_spawnattr_t attributes;
    sigset_t handled, before;
    pid_t child;
    handled_signals(&handled);
    /* Whoever started us may ignore SIGCHLD, and then no status could be had. */
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &handled, &before);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &before);
    int error = posix_spawnp(&child, argv[0], NULL, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    if (error == 0)
        *wait_status = wait_and_pass_signals(child, &handled);
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
