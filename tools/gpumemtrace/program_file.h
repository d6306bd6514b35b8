/*
 * The file of machine code that starts when a program is named: found in PATH, through scripts and their
 * interpreters, and what its ELF header says of who loads it. Nothing is run.
 */
#ifndef GPUMEMTRACE_PROGRAM_FILE_H
#define GPUMEMTRACE_PROGRAM_FILE_H

#include <elf.h>
#include <limits.h>
#include <stdbool.h>

struct program_file {
    const char *name;      /* as it was given */
    char path[PATH_MAX];   /* "": not found */
    char script[PATH_MAX]; /* "": it is no script */
    bool is_elf, is_dynamic;
    Elf64_Half machine;         /* EM_NONE: not of 64 bits */
    char interpreter[PATH_MAX]; /* of the machine code: the dynamic linker */
};

void program_file_find(const char *name, struct program_file *program);

/* musl's dynamic linker ends a program into which LD_PRELOAD brings a library made for glibc. */
bool program_is_of_musl(const struct program_file *program);

#endif
