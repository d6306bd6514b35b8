/*
 * One opened ELF file with its debug information, its own or a separate one: from an address to names. Not
 * kept: whoever asks remembers the answers.
 */
#ifndef SYMBOLS_DWARF_FILE_H
#define SYMBOLS_DWARF_FILE_H

#include "base/arena.h"
#include "report/report.h"
#include "symbols/debug_files.h"
#include "symbols/dwarf_units.h"

struct dwarf_file;

/* Takes the opened file's descriptor. `module` names it. NULL when it cannot be read, or for want of memory.
 * Everything but what libdwfl holds is in `arena`. */
struct dwarf_file *dwarf_file_create(struct debug_files *files, const struct module *module,
                                     struct elf_file *file, struct arena *arena);
void dwarf_file_destroy(struct dwarf_file *file);
/* Fills `names` for the return address `offset`, in the file's own addresses; returns how many, 0: none. */
size_t dwarf_file_find(struct dwarf_file *file, uint64_t offset, struct native_name names[DWARF_CHAIN_MAX]);
/* Whether all its functions have symbols, not only those that other modules may call. */
bool dwarf_file_has_symtab(const struct dwarf_file *file);

#endif
