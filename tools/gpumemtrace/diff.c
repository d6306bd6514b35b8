/* gpumemtrace diff: what changed between two runs. */
#include "diff.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "symbol_options.h"

#define TOP_DEFAULT 20

enum { OPTION_JSON = OPTION_LONG_ONLY };

static const struct option_row options[] = {
    {OPTION_JSON, "json", NULL, "for programs, in the schema gpumemtrace.diff/1: every place"},
    {'n', "top", "N", "list the N biggest changes (20; 0: all)"},
    SYMBOL_OPTION_ROWS,
};

static int load(struct saved_report *report, const char *path, const struct symbol_places *places)
{
    char error[512];
    if (saved_report_load(report, path, places, error, sizeof(error)) == 0)
        return 0;
    complain(path, "%s", error);
    return -1;
}

static int write_diff(const struct diff *diff, bool json)
{
    struct output out;
    output_init(&out, STDOUT_FILENO);
    if (json)
        diff_write_json(diff, &out);
    else
        diff_write_text(diff, &out);
    int error = output_flush(&out);
    if (error == 0)
        return STATUS_GOOD;
    complain("standard output", "%s", strerror(error));
    return STATUS_UNUSABLE;
}

static int compare(struct diff *diff, bool json)
{
    if (comparison_make(&diff->comparison, &diff->before, &diff->after) != 0) {
        complain(NULL, "not enough memory");
        return STATUS_UNUSABLE;
    }
    int status = write_diff(diff, json);
    comparison_release(&diff->comparison);
    return status;
}

static size_t read_number(const struct command *command, const char *value)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || errno)
        usage_error(command, "option '--top' needs a number, not '%s'", value);
    return number;
}

static int diff_main(const struct command *command, int argc, char **argv)
{
    struct diff diff = {.top = TOP_DEFAULT};
    struct symbol_options symbols = {0};
    bool json = false;
    const char *value;
    for (int id; (id = options_next(command, argc, argv, &value)) != OPTION_END;) {
        json |= id == OPTION_JSON;
        if (id == 'n')
            diff.top = read_number(command, value);
        symbol_options_take(&symbols, command, id, value);
    }
    if (argc - optind != 2)
        usage_error(command, "two recordings or reports are compared, not %d", argc - optind);
    diff.before_path = argv[optind];
    diff.after_path = argv[optind + 1];
    if (load(&diff.before, diff.before_path, &symbols.places) != 0)
        return STATUS_UNUSABLE;
    int status = STATUS_UNUSABLE;
    if (load(&diff.after, diff.after_path, &symbols.places) == 0) {
        status = compare(&diff, json);
        saved_report_release(&diff.after);
    }
    saved_report_release(&diff.before);
    symbol_options_release(&symbols);
    return status;
}

const struct command diff_command = {
    .name = "diff",
    .arguments = "[OPTION…] BEFORE AFTER",
    .summary = "Compares two runs: the peaks, and what is still allocated at each place",
    .details = "Each is a recording (.gmt) or a report (.json). Places are matched by their functions and "
               "files, not\n"
               "by line numbers or addresses, so that runs of two versions of a program can be compared.",
    .example = "  gpumemtrace diff before.gmt after.gmt\n"
               "  gpumemtrace diff --json main.json branch.json\n",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .run = diff_main,
};
