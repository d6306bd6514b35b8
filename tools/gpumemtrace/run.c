/* gpumemtrace run: starts a program under the library, and ends as it ends. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "foreground.h"
#include "install_paths.h"
#include "preload_name.h"
#include "program_file.h"
#include "report_file.h"
#include "run_outcome.h"
#include "session.h"

#define DEFAULT_PATTERN "gpumemtrace.%p"

/* As shells and env(1) have it, for a command that cannot be started. */
#define STATUS_CANNOT_EXECUTE 126
#define STATUS_NOT_FOUND      127

enum {
    OPTION_SIMULATE = OPTION_LONG_ONLY,
    OPTION_STACKS,
    OPTION_DEPTH,
    OPTION_REPORT,
    OPTION_HTML,
    OPTION_FAIL_ON,
    OPTION_BASELINE,
    OPTION_FOLLOW
};

static const struct option_row options[] = {
    {'o', "output", "STEM", "name the files STEM.gmt, .txt, .json; %p pid, %h host, %r rank, %e program"},
    {OPTION_STACKS, "stacks", "KIND", "mixed (the default), python, native or none"},
    {OPTION_DEPTH, "depth", "N", "record at most N native and N Python frames of a stack"},
    {OPTION_REPORT, "report", "KINDS", "text,json (the default), text, json or none"},
    {OPTION_HTML, "html", NULL, "write STEM.html too: a page for a browser, with pictures to click"},
    {'q', "quiet", NULL, "no summary at the end"},
    {OPTION_FAIL_ON, "fail-on", "CONDITION",
     "end with status 1 if it holds for a process: peak>8G, leak>0, …, as for diff"},
    {OPTION_BASELINE, "baseline", "FILE",
     "the run that conditions like peak>+5% compare with; may be repeated"},
    {OPTION_FOLLOW, "follow", NULL, "wait for the processes that the program leaves behind, too"},
    {OPTION_SIMULATE, "simulate", NULL, "use the simulated GPU, on a machine that has none"},
};

/* Options that only hand their value on to the library. */
static const struct {
    int id;
    const char *variable;
} handed_on[] = {
    {'o', "GPUMEMTRACE_OUTPUT"},         {OPTION_STACKS, "GPUMEMTRACE_STACKS"},
    {OPTION_DEPTH, "GPUMEMTRACE_DEPTH"}, {OPTION_REPORT, "GPUMEMTRACE_REPORT"},
    {'q', "GPUMEMTRACE_QUIET"},
};

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

static void set(const char *name, const char *value)
{
    if (setenv(name, value, 1) == 0)
        return;
    complain(name, "%s", strerror(errno));
    exit(STATUS_UNUSABLE);
}

/* Whether the list names the file already. */
static bool is_listed(const char *list, const char *path)
{
    size_t length = strlen(path);
    for (const char *at = list; at && *at;) {
        size_t word = strcspn(at, PRELOAD_SEPARATORS);
        if (word == length && memcmp(at, path, length) == 0)
            return true;
        at += word + (at[word] ? 1 : 0);
    }
    return false;
}

/* A sanitizer's runtime ends the program when anything is loaded before it. Returns the length of what must
 * stay at the front, its separator included. */
static size_t length_of_sanitizers(const char *list)
{
    static const char *const runtimes[] = {"libasan.", "libtsan.", "libubsan.", "liblsan.", "libclang_rt."};
    const char *at = list;
    for (bool found = true; found && *at;) {
        size_t word = strcspn(at, PRELOAD_SEPARATORS);
        const char *slash = memrchr(at, '/', word), *name = slash ? slash + 1 : at;
        found = false;
        for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++)
            found |= strncmp(name, runtimes[i], strlen(runtimes[i])) == 0;
        if (found)
            at += word + strspn(at + word, PRELOAD_SEPARATORS);
    }
    return (size_t)(at - list);
}

static void put_in_preload(const char *library)
{
    const char *list = setting("LD_PRELOAD");
    char *whole;
    if (is_listed(list, library))
        return;
    int front = list ? (int)length_of_sanitizers(list) : 0;
    const char *rest = list ? list + front : "";
    bool open_end = front > 0 && !strchr(PRELOAD_SEPARATORS, list[front - 1]);
    if (asprintf(&whole, "%.*s%s%s%s%s", front, list ? list : "", open_end ? ":" : "", library,
                 *rest ? ":" : "", rest) < 0) {
        complain("LD_PRELOAD", "not enough memory");
        exit(STATUS_UNUSABLE);
    }
    set("LD_PRELOAD", whole);
    free(whole);
}

static int preload_library(const char *program_name)
{
    static struct program_file program; /* too big for a stack */
    char library[PATH_MAX], name[PATH_MAX];
    program_file_find(program_name, &program);
    if (program_is_of_musl(&program)) {
        complain(program_name, "uses musl, and the library is made for glibc: it runs unrecorded");
        return 0;
    }
    if (find_library(library, sizeof(library)) != 0) {
        const char *given = setting("GPUMEMTRACE_LIBRARY");
        complain(
            given ? given : "libgpumemtrace.so",
            given ? "GPUMEMTRACE_LIBRARY names it, and it is not there"
                  : "not found beside this program nor in ../lib; GPUMEMTRACE_LIBRARY can say where it is");
        return -1;
    }
    int error = preload_name(library, name);
    if (error) {
        complain(library, "LD_PRELOAD cannot hold its path, and no link to it can be made: %s",
                 strerror(error));
        return -1;
    }
    put_in_preload(name);
    return 0;
}

static int prepend_simulated_gpu(void)
{
    char folder[PATH_MAX];
    if (find_simgpu(folder, sizeof(folder)) != 0) {
        complain("simulated GPU",
                 "its libcuda.so.1 is not beside this program nor in ../lib/gpumemtrace/simgpu");
        return -1;
    }
    const char *rest = setting("LD_LIBRARY_PATH");
    char *whole;
    if (asprintf(&whole, "%s%s%s", folder, rest ? ":" : "", rest ? rest : "") < 0) {
        complain("LD_LIBRARY_PATH", "not enough memory");
        return -1;
    }
    set("LD_LIBRARY_PATH", whole);
    free(whole);
    return 0;
}

/* The library resolves a relative name against the folder of the process it is in; all of a run's files
 * belong to the folder the run was started in. That folder is no pattern: its own % signs are doubled. */
static void make_output_absolute(void)
{
    char folder[PATH_MAX], escaped[2 * PATH_MAX], *to = escaped, *whole;
    const char *pattern = setting("GPUMEMTRACE_OUTPUT");
    if (!pattern)
        pattern = DEFAULT_PATTERN;
    if (pattern[0] == '/' || !getcwd(folder, sizeof(folder)))
        return;
    for (const char *at = folder; *at; at++) {
        if (*at == '%')
            *to++ = '%';
        *to++ = *at;
    }
    *to = 0;
    if (asprintf(&whole, "%s/%s", strcmp(escaped, "/") == 0 ? "" : escaped, pattern) < 0)
        return;
    set("GPUMEMTRACE_OUTPUT", whole);
    free(whole);
}

/* The folders that -o names, as far as they are the same for all processes. What cannot be made here is said
 * when a recording cannot be written. */
static void make_output_folders(void)
{
    char path[PATH_MAX];
    const char *pattern = setting("GPUMEMTRACE_OUTPUT");
    snprintf(path, sizeof(path), "%.*s", pattern ? (int)strcspn(pattern, "%") : 0, pattern ? pattern : "");
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (path[0])
            mkdir(path, 0777);
        *slash = '/';
    }
}

struct request {
    bool names_output;
    bool simulate, follow, quiet, html;
    struct run_outcome outcome;
};

static void take_option(const struct command *command, int id, const char *value, struct request *request)
{
    struct run_outcome *outcome = &request->outcome;
    request->simulate |= id == OPTION_SIMULATE;
    request->follow |= id == OPTION_FOLLOW;
    request->html |= id == OPTION_HTML;
    if (id == OPTION_FAIL_ON)
        gates_add(&outcome->gates, command, value);
    if (id == OPTION_BASELINE && outcome->baseline_count == BASELINES_MAX)
        usage_error(command, "more than %d baselines", BASELINES_MAX);
    if (id == OPTION_BASELINE)
        outcome->baselines[outcome->baseline_count++] = value;
    if (id == OPTION_BASELINE && access(value, R_OK) != 0) {
        complain(value, "%s", strerror(errno)); /* now, not after hours */
        exit(STATUS_UNUSABLE);
    }
    request->names_output |= id == 'o';
    if (id == 'o' && !value[0])
        usage_error(command, "option '--output' needs a name");
    for (size_t i = 0; i < sizeof(handed_on) / sizeof(*handed_on); i++)
        if (id == handed_on[i].id)
            set(handed_on[i].variable, value ? value : "1");
}

static void read_options(const struct command *command, int argc, char **argv, struct request *request)
{
    const char *value;
    for (;;) {
        int id = options_next(command, argc, argv, &value);
        if (id != OPTION_END)
            take_option(command, id, value, request);
        /* Several conditions may follow one --fail-on; what follows "--" is the program's. */
        else if (optind < argc && strcmp(argv[optind - 1], "--") != 0 &&
                 gates_take_word(&request->outcome.gates, argv[optind]))
            optind++;
        else
            break;
    }
    if (optind == argc)
        usage_error(command, "which program?");
    if (gates_need_baseline(&request->outcome.gates) && request->outcome.baseline_count == 0)
        usage_error(command, "a condition with + compares with a run before, and there is no --baseline");
    const char *quiet = setting("GPUMEMTRACE_QUIET");
    request->quiet = quiet && strcmp(quiet, "0") != 0;
}

/* The program's own failure is passed on as it is: it says more than ours. */
static int conclude(const struct request *request, int wait_status)
{
    int status = run_outcome_status(&request->outcome);
    if (status == STATUS_GOOD || !WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0)
        foreground_end_like(wait_status);
    return status;
}

static void take_recording(const char *recording, void *arg)
{
    struct request *request = arg;
    if (!request->quiet || request->outcome.gates.count > 0) /* else nobody asks what came of it */
        run_outcome_take(recording, &request->outcome);
    if (request->html)
        report_file_page(recording);
}

static int run_program(char **argv, struct request *request)
{
    char token[SESSION_TOKEN_BYTES], folder[PATH_MAX];
    int wait_status;
    int error = session_create(token);
    if (error) {
        complain("session", "%s", strerror(error));
        return STATUS_UNUSABLE;
    }
    set("GPUMEMTRACE_SESSION", token);
    set("GPUMEMTRACE_QUIET", "1"); /* what each process would say is said once, at the end */
    make_output_absolute();
    if (request->names_output)
        make_output_folders();
    if ((request->simulate && prepend_simulated_gpu() != 0) || preload_library(argv[0]) != 0)
        return STATUS_UNUSABLE;
    error = foreground_run(argv, request->follow, &wait_status);
    preload_name_forget();
    if (error) {
        complain(argv[0], "%s", strerror(error));
        return error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_EXECUTE;
    }
    const char *pattern = setting("GPUMEMTRACE_OUTPUT");
    char *names = session_names(pattern ? pattern : DEFAULT_PATTERN);
    request->outcome.folder = getcwd(folder, sizeof(folder));
    request->outcome.names = names;
    session_finish(token, pattern ? pattern : DEFAULT_PATTERN, setting("GPUMEMTRACE_REPORT"), take_recording,
                   request);
    if (!request->quiet)
        run_outcome_say(&request->outcome);
    free(names);
    return conclude(request, wait_status);
}

static int run_main(const struct command *command, int argc, char **argv)
{
    struct request *request = calloc(1, sizeof(*request)); /* too big for a stack */
    if (!request) {
        complain(NULL, "not enough memory");
        return STATUS_UNUSABLE;
    }
    read_options(command, argc, argv, request);
    int status = run_program(argv + optind, request);
    free(request);
    return status;
}

const struct command run_command = {
    .name = "run",
    .arguments = "[OPTION…] -- PROGRAM [ARGUMENT…]",
    .summary = "Runs a program and records its CUDA memory; reports are written whatever way it ends",
    .details =
        "The program keeps the terminal, gets the signals, and its exit status or signal is passed on. Its\n"
        "children are recorded too, each in files of its own where the name has %p. At the end three lines "
        "say what\n"
        "to look at first. Conditions are those of 'gpumemtrace diff --help', held against each process by "
        "itself;\n"
        "the status is 1 if one holds and the program itself ended well.",
    .example = "  gpumemtrace run -- python3 train.py\n"
               "  gpumemtrace run -o out/train.%r -- torchrun --nproc-per-node 4 train.py\n"
               "  gpumemtrace run --simulate -- python3 train.py\n"
               "  gpumemtrace run --fail-on 'peak>8G' 'leak>0' -- python3 train.py\n"
               "  gpumemtrace run --baseline main.json --fail-on 'peak>+5%' -- python3 train.py\n",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .takes_command = 1,
    .run = run_main,
};
