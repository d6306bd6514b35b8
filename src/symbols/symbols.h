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

/* Where a recording's files are, when it was made elsewhere. Absolute paths, which outlive the source. */
struct symbol_places {
    const char *sysroot; /* in the place of "/"; NULL: "/" itself */
    size_t debug_dir_count;
    const char *const *debug_dirs; /* with files or debug files, by path, by name or by build-id */
};

/* libdw: functions, files, lines and inlined calls; demangled. Tool only. `places` may be NULL. NULL when
 * memory ran out. */
struct symbol_source *dwarf_source_create(const struct symbol_places *places);
void dwarf_source_destroy(struct symbol_source *source);
/* A sentence on why this module's frames have no names, or NULL when its file, or another with its symbols,
 * can be read. Lives as long as the source. */
const char *dwarf_source_problem(struct symbol_source *source, const struct module *module);
/* A sentence on what went wrong while names were looked up, or NULL. */
const char *dwarf_source_trouble(struct symbol_source *source);

#endif
