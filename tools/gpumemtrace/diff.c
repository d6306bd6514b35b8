/* gpumemtrace diff: what changed between runs, and whether it is more than it may be. */
#include "diff.h"

#include <getopt.h>
#include <stdlib.h>

#include "command.h"
#include "destination.h"
#include "run_length.h"
#include "symbol_options.h"

#define TOP_DEFAULT 20

enum {
    OPTION_JSON = OPTION_LONG_ONLY,
    OPTION_MARKDOWN,
    OPTION_JUNIT,
    OPTION_FAIL_ON,
    OPTION_BASELINE,
    OPTION_LENGTH
};

static const struct option_row options[] = {
    {OPTION_FAIL_ON, "fail-on", "CONDITION",
     "end with status 1 if it holds: peak>+5%, leak>0, …; may be repeated"},
    {OPTION_BASELINE, "baseline", "FILE", "one more run before; the spread of several is tolerated"},
    {OPTION_LENGTH, "length", "TIMES",
     "AFTER did so many times the work: 2, 0.5; 1: compare counts as they are"},
    {OPTION_JSON, "json", NULL, "for programs, in the schema gpumemtrace.diff/1: every place"},
    {OPTION_MARKDOWN, "markdown", NULL, "for a comment on a pull request"},
    {OPTION_JUNIT, "junit", "FILE", "write the conditions to FILE as test cases too"},
    {'n', "top", "N", "list the N biggest changes (20; 0: all)"},
    SYMBOL_OPTION_ROWS,
};

typedef void writer(const struct diff *diff, struct output *out);

struct request {
    writer *write;
    const char *junit;
    double length; /* 0: not said */
    struct symbol_options symbols;
};

static int load(struct saved_report *report, const char *path, const struct symbol_places *places)
{
    char error[512];
    if (saved_report_load(report, path, places, error, sizeof(error)) == 0)
        return 0;
    complain_unreadable(path, error);
    return -1;
}

static int write_to(const char *path, const struct diff *diff, writer *write)
{
    struct destination to;
    if (!destination_open(&to, path))
        return STATUS_UNUSABLE;
    write(diff, &to.out);
    return destination_close(&to, true);
}

static int compare(struct diff *diff, const struct request *request)
{
    if (comparison_make(&diff->comparison, diff->before, diff->before_count, &diff->after, request->length) !=
        0) {
        complain(NULL, "not enough memory");
        return STATUS_UNUSABLE;
    }
    diff->failed = gates_check(&diff->gates, &diff->comparison);
    int status = write_to(NULL, diff, request->write);
    if (status == STATUS_GOOD && request->junit)
        status = write_to(request->junit, diff, diff_write_junit);
    if (status == STATUS_GOOD && diff->failed > 0) {
        gates_complain(&diff->gates, NULL);
        status = STATUS_GATE_FAILED;
    }
    comparison_release(&diff->comparison);
    return status;
}

static int load_and_compare(struct diff *diff, const struct request *request)
{
    const struct symbol_places *places = &request->symbols.places;
    int status = STATUS_UNUSABLE;
    size_t loaded = 0;
    while (loaded < diff->before_count &&
           load(&diff->before[loaded], diff->before_paths[loaded], places) == 0)
        loaded++;
    if (loaded == diff->before_count && load(&diff->after, diff->after_path, places) == 0) {
        status = compare(diff, request);
        saved_report_release(&diff->after);
    }
    while (loaded > 0)
        saved_report_release(&diff->before[--loaded]);
    return status;
}

static void add_before(struct diff *diff, const struct command *command, const char *path)
{
    if (diff->before_count == BASELINES_MAX)
        usage_error(command, "more than %d runs before", BASELINES_MAX);
    diff->before_paths[diff->before_count++] = path;
}

static double read_length(const struct command *command, const char *value)
{
    char *end;
    double length = strtod(value, &end);
    if (*end != 0 || end == value || !(length >= LENGTH_LEAST && length <= 1 / LENGTH_LEAST))
        usage_error(command,
                    "option '--length' needs how many times as long the run is, as 2 or 0.5, not '%s'",
                    value);
    return length;
}

static void read_options(const struct command *command, int argc, char **argv, struct diff *diff,
                         struct request *request)
{
    const char *value;
    for (int id; (id = options_next(command, argc, argv, &value)) != OPTION_END;) {
        if (id == OPTION_JSON)
            request->write = diff_write_json;
        if (id == OPTION_MARKDOWN)
            request->write = diff_write_markdown;
        if (id == OPTION_JUNIT)
            request->junit = value;
        if (id == OPTION_FAIL_ON)
            gates_add(&diff->gates, command, value);
        if (id == OPTION_BASELINE)
            add_before(diff, command, value);
        if (id == OPTION_LENGTH)
            request->length = read_length(command, value);
        if (id == 'n')
            diff->top = option_number(command, "--top", value);
        symbol_options_take(&request->symbols, command, id, value);
    }
}

/* The words that are no options: runs, the last of them the one to judge, and further conditions. */
static void read_words(const struct command *command, int count, char **words, struct diff *diff)
{
    int runs = 0;
    for (int i = 0; i < count; i++) {
        if (gates_take_word(&diff->gates, words[i]))
            continue;
        if (diff->after_path)
            add_before(diff, command, diff->after_path);
        diff->after_path = words[i];
        runs++;
    }
    if (diff->before_count == 0 || runs == 0)
        usage_error(command, "two recordings or reports are compared, not %d", runs);
}

static int diff_main(const struct command *command, int argc, char **argv)
{
    struct request request = {.write = diff_write_text};
    struct diff *diff = calloc(1, sizeof(*diff)); /* too big for a stack */
    if (!diff) {
        complain(NULL, "not enough memory");
        return STATUS_UNUSABLE;
    }
    diff->top = TOP_DEFAULT;
    read_options(command, argc, argv, diff, &request);
    read_words(command, argc - optind, argv + optind, diff);
    if (request.junit && diff->gates.count == 0)
        usage_error(command, "option '--junit' lists conditions, and there is no --fail-on");
    int status = load_and_compare(diff, &request);
    symbol_options_release(&request.symbols);
    free(diff);
    return status;
}

const struct command diff_command = {
    .name = "diff",
    .arguments = "[OPTION…] BEFORE… AFTER",
    .summary = "Compares runs: the peaks, and what is still allocated at each place; a gate for CI",
    .details =
        "Each is a recording (.gmt) or a report (.json). Places are matched by their functions and files, "
        "not\n"
        "by line numbers or addresses, so that runs of two versions of a program can be compared.\n"
        "\n"
        "A CONDITION is [WHERE:]METRIC>LIMIT. METRIC is peak (of each device, and of host memory), leak\n"
        "(what is still allocated at the end) or growth (bytes per second at places that grow). WHERE is a\n"
        "kind of memory (device, device:0, managed, pinned, …) or site:PATTERN, all places with PATTERN in\n"
        "their title. LIMIT is a size (8G, 64M, 0) or, with +, how much more than before (+64M, +5%).\n"
        "Of several runs before, + counts from the highest, and their spread is tolerated on top;\n"
        "where they differ in length, only those as long as AFTER count, or no spread is tolerated.\n"
        "\n"
        "A run may be longer than the other: by its steps, its phases, or how often most places allocate. "
        "Then\n"
        "what goes on all through a run is compared by that, and totals and conditions are as they are; "
        "growth\n"
        "is the condition that does not depend on a run's length.",
    .example = "  gpumemtrace diff before.gmt after.gmt\n"
               "  gpumemtrace diff --length 2 short.gmt long.gmt\n"
               "  gpumemtrace diff --json main.json branch.json\n"
               "  gpumemtrace diff --fail-on 'peak>+5%' 'leak>0' -- main.json branch.json\n"
               "  gpumemtrace diff --markdown --fail-on 'site:train.py:peak>+64M' main*.json branch.json\n",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .run = diff_main,
};
