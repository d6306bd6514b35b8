/*
 * Completion for shells, from the same tables as --help: `gpumemtrace completion SHELL` writes a script that
 * knows the commands, their options, and the values that an option takes where they are few.
 */
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "command.h"
#include "destination.h"
#include "export/export.h"
#include "live.h"

/* A list of words that ends with NULL. */
#define WORDS_MAX 32

/* What that option's value can be; `words` is empty where it can be anything. */
static void find_values(const struct command *command, const struct option_row *row,
                        const char *words[WORDS_MAX])
{
    static const struct {
        const char *command, *option;
        const char *words[5];
    } fixed[] = {
        {"run", "stacks", {"mixed", "python", "native", "none"}},
        {"run", "report", {"text,json", "text", "json", "none"}},
        {"export", "layer", {"driver", "framework"}},
    };
    size_t count = 0;
    if (strcmp(command->name, "export") == 0 && strcmp(row->name, "format") == 0)
        for (size_t i = 0; i < export_format_count && count + 1 < WORDS_MAX; i++)
            words[count++] = export_formats[i].name;
    if (strcmp(command->name, "export") == 0 && strcmp(row->name, "value") == 0)
        for (int i = 0; i < EXPORT_VALUE_COUNT; i++)
            words[count++] = export_value_names[i];
    if (strcmp(command->name, "top") == 0 && strcmp(row->name, "sort") == 0)
        for (int i = 0; i < LIVE_ORDER_COUNT; i++)
            words[count++] = live_order_names[i];
    for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
        if (strcmp(command->name, fixed[i].command) == 0 && strcmp(row->name, fixed[i].option) == 0)
            for (const char *const *word = fixed[i].words; *word; word++)
                words[count++] = *word;
    words[count] = NULL;
}

static void write_words(struct output *out, const char *const *words)
{
    for (const char *between = ""; *words; words++, between = " ") {
        output_text(out, between);
        output_text(out, *words);
    }
}

/* Inside single quotes of sh, zsh and fish. */
static void write_quoted(struct output *out, const char *text, const char *escaped)
{
    for (; *text; text++) {
        if (*text == '\'')
            output_text(out, "'\\''");
        else if (strchr(escaped, *text))
            output_format(out, "\\%c", *text);
        else
            output_bytes(out, text, 1);
    }
}

struct commands {
    const struct command *const *list;
    size_t count;
};

static void write_bash_values(struct output *out, const struct command *command)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option_row *row = &command->options[i];
        const char *words[WORDS_MAX];
        find_values(command, row, words);
        if (!words[0])
            continue;
        output_format(out, "        '%s --%s'", command->name, row->name);
        if (row->id < OPTION_LONG_ONLY)
            output_format(out, " | '%s -%c'", command->name, row->id);
        output_text(out, ") COMPREPLY=($(compgen -W '");
        write_words(out, words);
        output_text(out, "' -- \"$word\")); return ;;\n");
    }
}

static void write_bash(struct output *out, const struct commands *commands)
{
    output_text(out, "# bash completion for gpumemtrace\n"
                     "_gpumemtrace()\n{\n"
                     "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} "
                     "command=${COMP_WORDS[1]} i\n"
                     "    if [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
                     "    if [ \"$word\" = = ]; then word=; fi\n"
                     "    COMPREPLY=()\n"
                     "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                     "        COMPREPLY=($(compgen -W '--help --version");
    for (size_t i = 0; i < commands->count; i++)
        output_format(out, " %s", commands->list[i]->name);
    output_text(out,
                "' -- \"$word\"))\n        return\n    fi\n"
                "    for ((i = 2; i < COMP_CWORD; i++)); do\n" /* what follows "--" is another program's */
                "        if [ \"${COMP_WORDS[i]}\" = -- ]; then\n"
                "            if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); fi\n"
                "            return\n        fi\n    done\n"
                "    case \"$command $before\" in\n");
    for (size_t i = 0; i < commands->count; i++)
        write_bash_values(out, commands->list[i]);
    output_text(out, "    esac\n    case $word in\n    -*)\n        case $command in\n");
    for (size_t i = 0; i < commands->count; i++) {
        const struct command *command = commands->list[i];
        output_format(out, "        %s) COMPREPLY=($(compgen -W '--help", command->name);
        for (size_t k = 0; k < command->option_count; k++)
            output_format(out, " --%s", command->options[k].name);
        output_text(out, "' -- \"$word\")) ;;\n");
    }
    output_text(out,
                "        esac\n        ;;\n    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n    esac\n}\n"
                "complete -o filenames -F _gpumemtrace gpumemtrace\n");
}

static void write_zsh_option(struct output *out, const struct command *command, const struct option_row *row)
{
    const char *words[WORDS_MAX];
    find_values(command, row, words);
    int forms = row->id < OPTION_LONG_ONLY ? 2 : 1;
    for (int is_short = 0; is_short < forms; is_short++) {
        output_text(out, " \\\n            '*");
        if (is_short)
            output_format(out, "-%c", row->id);
        else
            output_format(out, "--%s%s", row->name, row->value ? "=" : "");
        output_text(out, "[");
        write_quoted(out, row->help, "[]:\\");
        output_text(out, "]");
        if (row->value) {
            output_format(out, ":%s:", row->value);
            if (words[0]) {
                output_text(out, "(");
                write_words(out, words);
                output_text(out, ")");
            } else {
                output_text(out, "_files");
            }
        }
        output_text(out, "'");
    }
}

static void write_zsh(struct output *out, const struct commands *commands)
{
    output_text(out, "#compdef gpumemtrace\n"
                     "_gpumemtrace() {\n"
                     "    local -a commands\n    commands=(\n");
    for (size_t i = 0; i < commands->count; i++) {
        output_format(out, "        '%s:", commands->list[i]->name);
        write_quoted(out, commands->list[i]->summary, ":\\");
        output_text(out, "'\n");
    }
    output_text(out, "    )\n"
                     "    if ((CURRENT == 2)); then\n"
                     "        _describe command commands\n"
                     "        return\n"
                     "    fi\n"
                     "    local command=$words[2]\n"
                     "    words=(gpumemtrace \"${(@)words[3,-1]}\")\n"
                     "    ((CURRENT--))\n"
                     "    case $command in\n");
    for (size_t i = 0; i < commands->count; i++) {
        const struct command *command = commands->list[i];
        output_format(out, "    %s)\n        _arguments -S", command->name);
        for (size_t k = 0; k < command->option_count; k++)
            write_zsh_option(out, command, &command->options[k]);
        output_format(out, " \\\n            '--help[print help and end]' \\\n            '%s'\n        ;;\n",
                      command->takes_command ? "*::program:_normal" : "*:file:_files");
    }
    output_text(out, "    esac\n}\n"
                     "if [ \"$funcstack[1]\" = _gpumemtrace ]; then _gpumemtrace \"$@\"; else compdef "
                     "_gpumemtrace gpumemtrace; fi\n");
}

static void write_fish_option(struct output *out, const struct command *command, const struct option_row *row)
{
    const char *words[WORDS_MAX];
    find_values(command, row, words);
    output_format(out, "complete -c gpumemtrace -n '__fish_seen_subcommand_from %s' -l %s", command->name,
                  row->name);
    if (row->id < OPTION_LONG_ONLY)
        output_format(out, " -s %c", row->id);
    if (row->value)
        output_text(out, " -r");
    if (words[0]) {
        output_text(out, " -f -a '");
        write_words(out, words);
        output_text(out, "'");
    }
    output_text(out, " -d '");
    write_quoted(out, row->help, "\\");
    output_text(out, "'\n");
}

static void write_fish(struct output *out, const struct commands *commands)
{
    output_text(out, "# fish completion for gpumemtrace\n");
    for (size_t i = 0; i < commands->count; i++) {
        const struct command *command = commands->list[i];
        output_format(out, "complete -c gpumemtrace -n __fish_use_subcommand -f -a %s -d '", command->name);
        write_quoted(out, command->summary, "\\");
        output_text(out, "'\n");
        for (size_t k = 0; k < command->option_count; k++)
            write_fish_option(out, command, &command->options[k]);
    }
}

static const struct {
    const char *name;
    void (*write)(struct output *out, const struct commands *commands);
} shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};

#define SHELL_COUNT (sizeof(shells) / sizeof(*shells))

static int completion_main(const struct command *command, int argc, char **argv)
{
    const char *value, *names[SHELL_COUNT];
    struct commands commands;
    struct output out;
    while (options_next(command, argc, argv, &value) != OPTION_END)
        continue;
    if (argc - optind != 1)
        usage_error(command, "which shell: bash, zsh or fish?");
    commands.list = command_list(&commands.count);
    for (size_t i = 0; i < SHELL_COUNT; i++) {
        names[i] = shells[i].name;
        if (strcmp(argv[optind], names[i]) != 0)
            continue;
        output_init(&out, STDOUT_FILENO);
        shells[i].write(&out, &commands);
        return finish_printing(&out);
    }
    usage_error(command, "there is no completion for '%s'%s", argv[optind],
                did_you_mean("", argv[optind], names, SHELL_COUNT));
}

const struct command completion_command = {
    .name = "completion",
    .arguments = "bash|zsh|fish",
    .summary = "Writes a script that completes commands, options and values in a shell",
    .details = "An installed gpumemtrace has them in their places already.",
    .example = "  gpumemtrace completion bash >~/.local/share/bash-completion/completions/gpumemtrace\n"
               "  gpumemtrace completion fish >~/.config/fish/completions/gpumemtrace.fish\n"
               "  source <(gpumemtrace completion zsh)\n",
    .run = completion_main,
};
