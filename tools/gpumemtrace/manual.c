/*
 * Manual pages from the same tables as --help: `gpumemtrace help-man [COMMAND]` writes one in the man macros,
 * and `help-man --list` names the commands, when the project is installed. Nothing a person types, so --help
 * does not list it.
 */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "base/version.h"
#include "command.h"

/* The variables that the library reads. X(name, meaning) */
#define VARIABLES(X)                                                                                         \
    X("GPUMEMTRACE_OUTPUT", "where the files go, without suffix: %p pid, %h host, %r rank, %e program")      \
    X("GPUMEMTRACE_REPORT",                                                                                  \
      "which reports are written at exit: text,json (the default), text, json or none")                      \
    X("GPUMEMTRACE_STACKS", "mixed (the default), python, native or none")                                   \
    X("GPUMEMTRACE_DEPTH", "frames kept of each kind (64)")                                                  \
    X("GPUMEMTRACE_MAX_TRACE", "largest recording, in bytes or with K, M or G (1G)")                         \
    X("GPUMEMTRACE_SUPPRESSIONS", "file of what is kept on purpose, a line leak:PATTERN each")               \
    X("GPUMEMTRACE_NVML", "0: NVML, which tells what other processes hold of a GPU, is not asked")           \
    X("GPUMEMTRACE_QUIET", "1: no line on standard error at exit")                                           \
    X("GPUMEMTRACE_DISABLE", "1: do nothing")

/* Text as it is: no word of it is a request of roff's, and a hyphen is one that can be copied. */
static void write_plain(struct output *out, const char *text)
{
    for (bool line_begins = true; *text; text++) {
        if (line_begins && (*text == '.' || *text == '\''))
            output_text(out, "\\&");
        if (*text == '\\')
            output_text(out, "\\e");
        else if (*text == '-')
            output_text(out, "\\-");
        else
            output_bytes(out, text, 1);
        line_begins = *text == '\n';
    }
}

static void write_head(struct output *out, const char *command, const char *summary)
{
    output_format(out, ".TH GPUMEMTRACE%s%s 1 \"\" \"gpumemtrace %s\" \"User Commands\"\n.SH NAME\n",
                  command[0] ? "\\-" : "", command, GPUMEMTRACE_VERSION);
    output_format(out, "gpumemtrace%s%s \\- ", command[0] ? "\\-" : "", command);
    write_plain(out, summary);
    output_text(out, "\n.SH SYNOPSIS\n");
}

static void write_variables(struct output *out)
{
    static const char *const variables[][2] = {
#define AS_ROW(name, meaning) {name, meaning},
        VARIABLES(AS_ROW)
#undef AS_ROW
    };
    output_text(out, ".SH ENVIRONMENT\n");
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
        output_format(out, ".TP\n.B %s\n", variables[i][0]);
        write_plain(out, variables[i][1]);
        output_text(out, "\n");
    }
}

static void write_statuses(struct output *out)
{
    output_text(out, ".SH EXIT STATUS\n0: good. 1: a condition of \\-\\-fail\\-on holds, or doctor found "
                     "something bad. 2: "
                     "wrong usage, or input that cannot be read; one line on standard error says what.\n");
}

static void write_main_page(struct output *out, const struct command *const *commands, size_t count)
{
    write_head(out, "", "records every CUDA memory allocation of a program");
    output_text(out, ".B gpumemtrace\n.I COMMAND\n[\\fIOPTION\\fR…] …\n.SH DESCRIPTION\n"
                     "Records every CUDA memory allocation of a program with the Python and native stack "
                     "that made it, and "
                     "says what leaked, what made the peak and how fragmented memory is. Each command has a "
                     "page of its own, "
                     "gpumemtrace\\-COMMAND(1).\n.SH COMMANDS\n");
    for (size_t i = 0; i < count; i++) {
        output_format(out, ".TP\n.B %s\n", commands[i]->name);
        write_plain(out, commands[i]->summary);
        output_text(out, ".\n");
    }
    write_variables(out);
    write_statuses(out);
    output_text(out, ".SH SEE ALSO\n");
    for (size_t i = 0; i < count; i++)
        output_format(out, ".BR gpumemtrace\\-%s (1)%s\n", commands[i]->name, i + 1 < count ? "," : "");
}

static void write_option(struct output *out, const struct option_row *row)
{
    output_text(out, ".TP\n");
    if (row->id < OPTION_LONG_ONLY)
        output_format(out, "\\fB\\-%c\\fR, ", row->id);
    output_text(out, "\\fB\\-\\-");
    write_plain(out, row->name);
    output_text(out, "\\fR");
    if (row->value)
        output_format(out, "=\\fI%s\\fR", row->value);
    output_text(out, "\n");
    write_plain(out, row->help);
    output_text(out, "\n");
}

static void write_command_page(struct output *out, const struct command *command)
{
    static const struct option_row help = {'h', "help", NULL, "print help and end"};
    write_head(out, command->name, command->summary);
    output_format(out, ".B gpumemtrace %s\n", command->name);
    write_plain(out, command->arguments);
    output_text(out, "\n.SH DESCRIPTION\n.nf\n"); /* some of it are tables */
    write_plain(out, command->details);
    output_text(out, "\n.fi\n.SH OPTIONS\n");
    for (size_t i = 0; i < command->option_count; i++)
        write_option(out, &command->options[i]);
    write_option(out, &help);
    output_text(out, ".SH EXAMPLES\n.nf\n");
    write_plain(out, command->example);
    output_text(out, ".fi\n");
    write_statuses(out);
    output_text(out, ".SH SEE ALSO\n.BR gpumemtrace (1)\n");
}

int manual_write(const struct command *const *commands, size_t count, const char *name)
{
    struct output out;
    bool written = !name;
    output_init(&out, STDOUT_FILENO);
    if (!name)
        write_main_page(&out, commands, count);
    if (name && strcmp(name, "--list") == 0) {
        for (size_t i = 0; i < count; i++)
            output_format(&out, "%s\n", commands[i]->name);
        written = true;
    }
    for (size_t i = 0; name && i < count; i++) {
        if (strcmp(commands[i]->name, name) != 0)
            continue;
        write_command_page(&out, commands[i]);
        written = true;
    }
    return output_flush(&out) == 0 && written ? STATUS_GOOD : STATUS_UNUSABLE;
}
