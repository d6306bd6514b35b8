/*
 * Symbol sources for reports (report/report.h): dynsym for the library, DWARF for the command-line tool.
 */
#ifndef SYMBOLS_SYMBOLS_H
#define SYMBOLS_SYMBOLS_H

#include "base/arena.h"
#include "report/report.h"

/* Reads .dynsym of the modules' files, mapped read-only one at a time. No malloc, no dynamic linker. Names are as in
 * the file: not demangled. NULL when memory ran out. Library and tool. */
struct symbol_source *dynsym_source_create(struct arena *arena);

/* libdw: functions, files, lines and inlined calls; demangled. Tool only. NULL when memory ran out. */
struct symbol_source *dwarf_source_create(void);
void dwarf_source_destroy(struct symbol_source *source);

#endif
