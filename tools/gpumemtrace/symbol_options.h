/*
 * The options of every subcommand that names functions: where a recording's files are, when it was made in a
 * container or on another machine.
 */
#ifndef GPUMEMTRACE_SYMBOL_OPTIONS_H
#define GPUMEMTRACE_SYMBOL_OPTIONS_H

#include "command.h"
#include "symbols/symbols.h"

enum { OPTION_SYSROOT = OPTION_LONG_ONLY + 1000, OPTION_DEBUG_DIR };

#define SYMBOL_OPTION_ROWS                                                                                   \
    {OPTION_SYSROOT, "sysroot", "DIR", "look below DIR for the recorded programs, libraries and sources"},   \
    {                                                                                                        \
        OPTION_DEBUG_DIR, "debug-dir", "DIR", "look in DIR too, by build-id and by name; may be repeated"    \
    }

#define DEBUG_DIRS_MAX 64

struct symbol_options {
    struct symbol_places places;
    const char *debug_dirs[DEBUG_DIRS_MAX];
};

/* Takes the option if it is one of them. What is no folder ends the process, with a sentence. Begin with a
 * zeroed struct, which must stay where it is. */
void symbol_options_take(struct symbol_options *options, const struct command *command, int id,
                         const char *value);
void symbol_options_release(struct symbol_options *options);

#endif
