/*
 * Manual pages from the same tables as --help: `gpumemtrace help-man [COMMAND]` writes one in the man macros,
 * `help-man --list` names the commands, and `help-man --environment` writes what libgpumemtrace(7) says of
 * the variables, when the project is installed. Nothing a person types, so --help does not list it.
 */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "base/version.h"
#include "command.h"
#include "destination.h"
#include "preload/variables.h"

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
    static const struct {
        const char *name, *otherwise, *meaning;
    } variables[] = {
#define AS_ROW(name, field, wanted, otherwise, meaning) {name, otherwise, meaning},
        CONFIG_VARIABLES(AS_ROW)
#undef AS_ROW
    };
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
        if (!variables[i].meaning)
            continue;
        output_format(out, ".TP\n.BR %s \" (", variables[i].name);
        write_plain(out, variables[i].otherwise);
        output_text(out, ")\"\n");
        write_plain(out, variables[i].meaning);
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
    output_text(out, ".SH ENVIRONMENT\nWhat the library is told, by whoever starts the program:\n");
    write_variables(out);
    output_text(out, ".PP\nWhat this tool is told:\n.TP\n.B GPUMEMTRACE_LIBRARY\nWhere "
                     "libgpumemtrace.so is, if not beside this tool nor in ../lib.\n");
    write_statuses(out);
    output_text(out, ".SH SEE ALSO\n");
    for (size_t i = 0; i < count; i++)
        output_format(out, ".BR gpumemtrace\\-%s (1),\n", commands[i]->name);
    output_text(out, ".BR libgpumemtrace (7),\n.BR gpumemtrace\\-trace (5)\n");
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
    output_text(out, ".SH SEE ALSO\n.BR gpumemtrace (1),\n.BR libgpumemtrace (7)\n");
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
    if (name && strcmp(name, "--environment") == 0) {
        write_variables(&out);
        written = true;
    }
    for (size_t i = 0; name && i < count; i++) {
        if (strcmp(commands[i]->name, name) != 0)
            continue;
        write_command_page(&out, commands[i]);
        written = true;
    }
    int status = finish_printing(&out);
    return written ? status : STATUS_UNUSABLE;
}
