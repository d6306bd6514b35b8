/*
 * From an address to functions, files and lines in one module's DWARF, inlined calls included. libdw does the
 * reading; what is kept here are sorted tables of units and of each visited unit's functions, because libdw's
 * own look-ups walk a whole unit for every address, and find nothing in clang's output, which has no
 * .debug_aranges.
 */
#ifndef SYMBOLS_DWARF_UNITS_H
#define SYMBOLS_DWARF_UNITS_H

#include <elfutils/libdw.h>
#include <stddef.h>

#include "base/arena.h"

#define DWARF_CHAIN_MAX 64

/* One function at an address: innermost inlined call first, the function that has the code last. */
struct dwarf_place {
    const char *linkage_name; /* mangled; NULL: has none */
    const char *plain_name;   /* as in the source, unqualified; NULL: unknown */
    const char *file;         /* NULL: unknown */
    int line;                 /* 0: unknown */
};

struct dwarf_units;

/* NULL when there is nothing in it, or no memory. Everything is in `arena`; strings belong to `dwarf`. */
struct dwarf_units *dwarf_units_create(Dwarf *dwarf, struct arena *arena);
/* `pc` is inside the call instruction. Returns how many places it filled; 0: the address is not covered. */
size_t dwarf_units_find(struct dwarf_units *units, Dwarf_Addr pc, struct dwarf_place places[DWARF_CHAIN_MAX]);

#endif
