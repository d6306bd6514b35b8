/* gpumemtrace: the command-line tool. Finds the subcommand and hands over to it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/output.h"
#include "base/version.h"
#include "command.h"
#include "destination.h"

static const struct command *const commands[] = {
    &run_command,    &report_command, &diff_command,   &merge_command,
    &export_command, &top_command,    &doctor_command, &completion_command,
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

const struct command *const *command_list(size_t *count)
{
    *count = COMMAND_COUNT;
    return commands;
}

static void print_help(struct output *out)
{
    output_text(out,
                "Usage: gpumemtrace COMMAND [OPTION…] …\n"
                "Records every CUDA memory allocation of a program, and says what leaked, what made the peak "
                "and how\nfragmented memory is.\n\nCommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        output_format(out, "  %-12s%s\n", commands[i]->name, commands[i]->summary);
    output_text(out, "\n'gpumemtrace COMMAND --help' says more about each.\n\nExample:\n"
                     "  gpumemtrace run -- python3 train.py\n");
}

static int print_about(const char *option)
{
    struct output out;
    output_init(&out, STDOUT_FILENO);
    if (strcmp(option, "--version") == 0)
        output_text(&out, "gpumemtrace " GPUMEMTRACE_VERSION "\n");
    else
        print_help(&out);
    return finish_printing(&out);
}

int main(int argc, char **argv)
{
    hash_draw_keys();
    if (argc < 2)
        usage_error(NULL, "which command?");
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0 ||
        strcmp(name, "--version") == 0)
        return print_about(name);
    if (strcmp(name, "help-man") == 0) /* for the build: see manual.c */
        return manual_write(commands, COMMAND_COUNT, argc > 2 ? argv[2] : NULL);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(name, commands[i]->name) == 0)
            return commands[i]->run(commands[i], argc - 1, argv + 1);
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i]->name;
    usage_error(NULL, "there is no command '%s'%s", name, did_you_mean("", name, names, COMMAND_COUNT));
}
