/*
 * The calls inlined into one function, by address. Built once a function and searched in logarithmic time: a
 * generated function may have ten thousand of them.
 */
#ifndef SYMBOLS_DWARF_SCOPES_H
#define SYMBOLS_DWARF_SCOPES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "symbols/range_list.h"

/* The file may be made up: scopes nested deeper are not followed, nor more entries looked at in one unit or
 * one function, among which some may lead back to others. */
#define DWARF_NESTING_MAX 100
#define DWARF_ENTRIES_MAX (1u << 24)

struct dwarf_scopes;

/* NULL when memory ran out. */
struct dwarf_scopes *dwarf_scopes_create(Dwarf_Die *function, struct arena *arena);
/* The inlined calls that hold `pc`, innermost first, at most `max`; returns how many. */
size_t dwarf_scopes_find(const struct dwarf_scopes *scopes, Dwarf_Addr pc, Dwarf_Die *chain, size_t max);

/* Whether the entry itself has code, and adding the ranges of that code to a list. */
bool dwarf_has_code(Dwarf_Die *die);
void dwarf_add_ranges(struct range_list *list, struct arena *arena, Dwarf_Die *die, uint32_t id);

#endif
