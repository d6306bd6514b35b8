/*
 * What a subcommand is: one row in main.c's table, with its help and options as data, so that --help, the
 * parser and whatever is made from them later say the same.
 */
#ifndef GPUMEMTRACE_COMMAND_H
#define GPUMEMTRACE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

/* Exit statuses. */
enum {
    STATUS_GOOD = 0,
    STATUS_GATE_FAILED = 1,
    STATUS_UNUSABLE = 2, /* wrong usage or input that cannot be read */
};

struct option_row {
    int id; /* the letter of its short form, or OPTION_LONG_ONLY and up */
    const char *name;
    const char *value; /* what the help calls its value; NULL: it takes none */
    const char *help;
};

#define OPTION_LONG_ONLY 256
#define OPTION_END       (-1)

struct command {
    const char *name;
    const char *arguments; /* for the usage line */
    const char *summary;   /* one line */
    const char *details;   /* a paragraph for its own help */
    const char *example;   /* lines, each a command or a comment */
    const struct option_row *options;
    size_t option_count;
    int takes_command; /* the first word that is no option begins a command line that is not ours to read */
    int (*run)(const struct command *command, int argc, char **argv);
};

extern const struct command run_command, report_command, diff_command, merge_command, export_command,
    top_command, doctor_command, completion_command;

/* All of them. */
const struct command *const *command_list(size_t *count);
/* Writes a manual page: of the tool, or of the command of that name; or a part, see manual.c. An exit status.
 */
int manual_write(const struct command *const *commands, size_t count, const char *name);

/* The next option's id, with its value in *value; OPTION_END when only words are left, from argv[optind] on.
 * Prints the help and ends the process for --help, and says what is wrong and ends it for anything unknown.
 */
int options_next(const struct command *command, int argc, char **argv, const char **value);

/* An option's value as a whole number; anything else ends the process with a sentence. */
size_t option_number(const struct command *command, const char *option, const char *value);

/* "gpumemtrace: subject: why" on stderr, in one line. `subject` may be NULL. */
void complain(const char *subject, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same of a file that could not be read, with what may help. */
void complain_unreadable(const char *path, const char *why);
/* The same, with where to read more, and the process ends with STATUS_UNUSABLE. */
void usage_error(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* "; did you mean 'report'?" where one of `names` is near enough to `word`, else "". `before` stands in front
 * of the name ("--" of an option). Good until the next call. */
const char *did_you_mean(const char *before, const char *word, const char *const *names, size_t count);

#endif
