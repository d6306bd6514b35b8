/* gpumemtrace doctor: why a program is not recorded, or would not be. */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/output.h"
#include "command.h"
#include "destination.h"

#define CAPTURE_SECONDS 10

static const struct {
    const char *name;
    checker *check;
} machine_checks[] =
    {
#define AS_ROW(name, function) {name, function},
        MACHINE_CHECKS(AS_ROW)},
  program_checks[] = {PROGRAM_CHECKS(AS_ROW)
#undef AS_ROW
};

static const char *const finding_names[] = {
    [FINDING_GOOD] = "ok", [FINDING_ODD] = "note", [FINDING_BAD] = "BAD"};

/* Reads until the end, or until the time is up. */
static bool drain(int fd, char *text, size_t bytes)
{
    size_t used = 0;
    char rest[4096] = "";
    time_t deadline = time(NULL) + CAPTURE_SECONDS;
    text[0] = 0;
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = time(NULL) > deadline ? 0 : poll(&wait, 1, CAPTURE_SECONDS * 1000);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        bool has_room = used + 1 < bytes;
        ssize_t got = read(fd, has_room ? text + used : rest, has_room ? bytes - 1 - used : sizeof(rest));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return true;
        used += has_room ? (size_t)got : 0;
        text[used] = 0;
    }
}

/* The environment with one more variable. NULL when there is no memory; free() it. */
static char **extend_environment(char *assignment)
{
    size_t count = 0, kept = 0, name = strcspn(assignment, "=") + 1;
    while (environ[count])
        count++;
    char **extended = calloc(count + 2, sizeof(*extended));
    for (size_t i = 0; extended && i < count; i++)
        if (strncmp(environ[i], assignment, name) != 0)
            extended[kept++] = environ[i];
    if (extended)
        extended[kept] = assignment;
    return extended;
}

int doctor_capture(char *const argv[], const char *variable, const char *value, char *text, size_t bytes)
{
    posix_spawn_file_actions_t actions;
    int pipes[2], status = -1;
    pid_t child;
    char *assignment = NULL;
    text[0] = 0;
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return -1;
    if (variable && asprintf(&assignment, "%s=%s", variable, value) < 0)
        assignment = NULL;
    char **extended = assignment ? extend_environment(assignment) : NULL;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDERR_FILENO);
    int error = posix_spawnp(&child, argv[0], &actions, NULL, argv, extended ? extended : environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pipes[1]);
    if (error == 0) {
        bool ended = drain(pipes[0], text, bytes);
        if (!ended)
            kill(child, SIGKILL);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        status = ended ? status : -1;
    }
    close(pipes[0]);
    free(extended);
    free(assignment);
    return status;
}

static enum finding say(struct output *out, const char *name, checker *check)
{
    struct words words = {0};
    enum finding finding = check(&words);
    if (finding == FINDING_NONE)
        return finding;
    output_format(out, "%-5s %-9s ", finding_names[finding], name);
    output_safe(out, words.text);
    output_text(out, "\n");
    output_flush(out); /* the next check may take a while */
    return finding;
}

static int doctor_main(const struct command *command, int argc, char **argv)
{
    struct output out;
    const char *value;
    bool bad = false;
    while (options_next(command, argc, argv, &value) != OPTION_END)
        continue;
    output_init(&out, STDOUT_FILENO);
    for (size_t i = 0; i < sizeof(machine_checks) / sizeof(*machine_checks); i++)
        bad |= say(&out, machine_checks[i].name, machine_checks[i].check) == FINDING_BAD;
    if (optind < argc)
        program_find(argv + optind);
    for (size_t i = 0; optind < argc && i < sizeof(program_checks) / sizeof(*program_checks); i++)
        bad |= say(&out, program_checks[i].name, program_checks[i].check) == FINDING_BAD;
    int status = finish_printing(&out);
    return status == STATUS_GOOD && bad ? STATUS_GATE_FAILED : status;
}

const struct command doctor_command = {
    .name = "doctor",
    .arguments = "[-- PROGRAM [ARGUMENT…]]",
    .summary = "Says why a program is not recorded, or would not be, and what to do about it",
    .details = "Looks at the installation, the driver, libunwind and the folder for the files; of a PROGRAM, "
               "whether\n"
               "LD_PRELOAD reaches it: that it is not static, setuid or built with musl, that a wrapper does "
               "not start\n"
               "it elsewhere, and that its Python is one whose stacks can be read. The program is not run (a "
               "Python\n"
               "is asked for its version). The status is 1 when something is bad.",
    .example = "  gpumemtrace doctor\n"
               "  gpumemtrace doctor -- torchrun --nproc-per-node 4 train.py\n",
    .takes_command = 1,
    .run = doctor_main,
};
