/* Option parsing, help and error lines, from each command's table (command.h). */
#include "command.h"
#include "destination.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"

#define OPTIONS_MAX 32
#define HELP_COLUMN 26

static void begin_complaint(struct output *out)
{
    output_init(out, STDERR_FILENO);
    output_text(out, "gpumemtrace: ");
}

static void finish_complaint(struct output *out, const char *format, va_list arguments)
{
    char text[8192];
    vsnprintf(text, sizeof(text), format, arguments);
    output_safe(out, text);
}

void complain(const char *subject, const char *format, ...)
{
    struct output out;
    va_list arguments;
    begin_complaint(&out);
    if (subject) {
        output_safe(&out, subject);
        output_text(&out, ": ");
    }
    va_start(arguments, format);
    finish_complaint(&out, format, arguments);
    va_end(arguments);
    output_text(&out, "\n");
    output_flush(&out);
}

void usage_error(const struct command *command, const char *format, ...)
{
    struct output out;
    va_list arguments;
    begin_complaint(&out);
    va_start(arguments, format);
    finish_complaint(&out, format, arguments);
    va_end(arguments);
    output_format(&out, " (gpumemtrace%s%s --help says more)\n", command ? " " : "",
                  command ? command->name : "");
    output_flush(&out);
    exit(STATUS_UNUSABLE);
}

static void print_option(struct output *out, const struct option_row *row)
{
    char left[128];
    int used = 0;
    if (row->id < OPTION_LONG_ONLY)
        used = snprintf(left, sizeof(left), "  -%c, ", row->id);
    else
        used = snprintf(left, sizeof(left), "      ");
    snprintf(left + used, sizeof(left) - (size_t)used, "--%s%s%s", row->name, row->value ? "=" : "",
             row->value ? row->value : "");
    output_format(out, "%-*s  %s\n", HELP_COLUMN, left, row->help);
}

static void print_help(const struct command *command)
{
    static const struct option_row help = {'h', "help", NULL, "print this and end"};
    struct output out;
    output_init(&out, STDOUT_FILENO);
    output_format(&out, "Usage: gpumemtrace %s %s\n%s.\n\n%s\n\nOptions:\n", command->name,
                  command->arguments, command->summary, command->details);
    for (size_t i = 0; i < command->option_count; i++)
        print_option(&out, &command->options[i]);
    print_option(&out, &help);
    output_format(&out, "\nExample:\n%s", command->example);
    exit(finish_printing(&out));
}

/* The same table as getopt_long() wants it. */
static void translate(const struct command *command, char *letters, struct option *longs)
{
    *letters++ = command->takes_command ? '+' : '-';
    if (!command->takes_command)
        letters--;
    *letters++ = ':';
    *letters++ = 'h';
    for (size_t i = 0; i < command->option_count && i < OPTIONS_MAX; i++) {
        const struct option_row *row = &command->options[i];
        *longs++ = (struct option){row->name, row->value ? required_argument : no_argument, NULL, row->id};
        if (row->id >= OPTION_LONG_ONLY)
            continue;
        *letters++ = (char)row->id;
        if (row->value)
            *letters++ = ':';
    }
    *longs++ = (struct option){"help", no_argument, NULL, 'h'};
    *longs = (struct option){0};
    *letters = 0;
}

/* "--fial-on=x": unknown, of several meanings when cut short, or with a value that it does not take. */
static void refuse_long(const struct command *command, const char *word)
{
    const char *names[OPTIONS_MAX];
    char name[64];
    size_t length = strcspn(word, "=");
    for (size_t i = 0; i < command->option_count && i < OPTIONS_MAX; i++)
        names[i] = command->options[i].name;
    snprintf(name, sizeof(name), "%.*s", (int)length, word);
    const char *hint = length > 2 ? did_you_mean("--", name + 2, names, command->option_count) : "";
    usage_error(command, "option '%s' cannot be understood%s", word, hint);
}

int options_next(const struct command *command, int argc, char **argv, const char **value)
{
    char letters[OPTIONS_MAX * 2 + 4];
    struct option longs[OPTIONS_MAX + 2];
    translate(command, letters, longs);
    opterr = 0;
    int word = optind;
    int id = getopt_long(argc, argv, letters, longs, NULL);
    *value = optarg;
    if (id == 'h')
        print_help(command);
    if (id == ':')
        usage_error(command, "option '%s' needs a value", argv[optind - 1]);
    if (id == '?' && optopt > 0 && optopt < OPTION_LONG_ONLY && strncmp(argv[word], "--", 2) != 0)
        usage_error(command, "there is no option '-%c'", optopt);
    if (id == '?')
        refuse_long(command, argv[optind - 1]);
    return id;
}

size_t option_number(const struct command *command, const char *option, const char *value)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || errno)
        usage_error(command, "option '%s' needs a number, not '%s'", option, value);
    return number;
}
