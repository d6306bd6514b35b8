/*
 * What `gpumemtrace doctor` finds: one line for each thing that has to be so for a program to be recorded. A
 * check says how it is and, where that is bad, what to do. Checks never change anything, and never run the
 * program.
 */
#ifndef GPUMEMTRACE_DOCTOR_H
#define GPUMEMTRACE_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "report/words.h"

enum finding {
    FINDING_GOOD,
    FINDING_ODD,  /* something will be missing, or nothing could be told */
    FINDING_BAD,  /* nothing will be recorded */
    FINDING_NONE, /* does not apply: no line */
};

typedef enum finding checker(struct words *words);

/* Of the machine and this installation. X(name, function) */
#define MACHINE_CHECKS(X)                                                                                    \
    X("library", check_library)                                                                              \
    X("preload", check_preload)                                                                              \
    X("driver", check_driver)                                                                                \
    X("unwinder", check_unwinder)                                                                            \
    X("output", check_output)                                                                                \
    X("settings", check_settings)

/* Of a program, by what program_find() found. */
#define PROGRAM_CHECKS(X)                                                                                    \
    X("program", check_program)                                                                              \
    X("wrapper", check_wrapper)                                                                              \
    X("rights", check_rights)                                                                                \
    X("linking", check_linking)                                                                              \
    X("reach", check_reach)                                                                                  \
    X("python", check_python)

#define AS_CHECKER(name, function) checker function;
MACHINE_CHECKS(AS_CHECKER)
PROGRAM_CHECKS(AS_CHECKER)
#undef AS_CHECKER

/* Looks the program up as a shell would, and what interprets it if it is a script. Before PROGRAM_CHECKS. */
void program_find(char *const argv[]);

/* Runs `argv` with `variable=value` in its environment where `variable` is not NULL, without standard input;
 * what it writes on both outputs goes to `text`, cut to `bytes`. Its wait status, or -1 when it could not be
 * started or took too long. */
int doctor_capture(char *const argv[], const char *variable, const char *value, char *text, size_t bytes);

#endif
