/*
 * Symbol sources for reports (report/report.h): dynsym for the library, DWARF for the command-line tool.
 */
#ifndef SYMBOLS_SYMBOLS_H
#define SYMBOLS_SYMBOLS_H

#include "base/arena.h"
#include "report/report.h"

/* Reads the symbol tables (.symtab, else .dynsym) of the modules' files. No malloc, no dynamic linker. Names
 * are demangled; there are no lines and no inlined calls. NULL when memory ran out. Library and tool. */
struct symbol_source *dynsym_source_create(struct arena *arena);
/* Closes the few files it keeps open; it may be used on, and opens them again. The rest goes with the arena.
 */
void dynsym_source_close(struct symbol_source *source);

/* libdw: functions, files, lines and inlined calls; demangled. Tool only. NULL when memory ran out. */
struct symbol_source *dwarf_source_create(void);
void dwarf_source_destroy(struct symbol_source *source);
/* A sentence on why this module's frames have no names, or NULL when its file, or its debug file found by
 * build-id, can be read. Lives as long as the source. */
const char *dwarf_source_problem(struct symbol_source *source, const struct module *module);

#endif
