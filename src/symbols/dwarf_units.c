/* Units, functions and inlined calls of one module's DWARF; see dwarf_units.h. */
#include "symbols/dwarf_units.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/range_list.h"

/* Deeper nesting of scopes is not followed: the file may be made up. */
#define NESTING_MAX 100

struct unit {
    Dwarf_Die die;   /* has the line table */
    Dwarf_Die scope; /* has the functions: the split unit's, where there is one */
    bool has_functions;
    struct range_list functions; /* ids index `dies` */
    Dwarf_Die *dies;
    size_t die_count, die_room;
};

struct dwarf_units {
    struct arena *arena;
    struct range_list ranges; /* ids index `units` */
    struct unit *units;
    size_t count;
};

static void add_ranges(struct range_list *list, struct arena *arena, Dwarf_Die *die, uint32_t id)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t offset = 0;
    while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0)
        if (start > 0) /* at 0 lies what the linker dropped */
            range_list_add(list, arena, start, end, id);
}

static size_t count_units(Dwarf *dwarf)
{
    Dwarf_CU *unit = NULL;
    size_t count = 0;
    while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, NULL, NULL) == 0)
        count++;
    return count;
}

struct dwarf_units *dwarf_units_create(Dwarf *dwarf, struct arena *arena)
{
    size_t room = count_units(dwarf);
    struct dwarf_units *units = arena_alloc(arena, sizeof(*units));
    Dwarf_CU *cursor = NULL;
    Dwarf_Die die, split;
    uint8_t kind;
    if (!units || room == 0 || room > UINT32_MAX)
        return NULL;
    units->arena = arena;
    units->units = arena_alloc(arena, room * sizeof(*units->units));
    if (!units->units)
        return NULL;
    while (units->count < room && dwarf_get_units(dwarf, cursor, &cursor, NULL, &kind, &die, &split) == 0) {
        if (kind != DW_UT_compile && kind != DW_UT_skeleton)
            continue;
        struct unit *unit = &units->units[units->count];
        unit->die = die;
        unit->scope = kind == DW_UT_skeleton && dwarf_tag(&split) != DW_TAG_invalid ? split : die;
        add_ranges(&units->ranges, arena, &die, (uint32_t)units->count++);
    }
    range_list_sort(&units->ranges);
    return units;
}

static void add_function(struct unit *unit, struct arena *arena, Dwarf_Die *die)
{
    if (unit->die_count == unit->die_room) {
        size_t room = unit->die_room ? unit->die_room * 2 : 64;
        Dwarf_Die *dies = arena_alloc(arena, room * sizeof(*dies));
        if (!dies)
            return;
        if (unit->die_count > 0)
            memcpy(dies, unit->dies, unit->die_count * sizeof(*dies));
        unit->dies = dies;
        unit->die_room = room;
    }
    unit->dies[unit->die_count] = *die;
    add_ranges(&unit->functions, arena, die, (uint32_t)unit->die_count++);
}

static bool may_hold_functions(int tag)
{
    switch (tag) {
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block:
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
        return true;
    default:
        return false;
    }
}

/* All functions with code below `parent`: methods of local classes lie inside the function that has them. */
static void collect_functions(struct unit *unit, struct arena *arena, Dwarf_Die *parent, int depth)
{
    Dwarf_Die child;
    if (depth == NESTING_MAX || dwarf_child(parent, &child) != 0)
        return;
    do {
        int tag = dwarf_tag(&child);
        if (tag == DW_TAG_subprogram &&
            (dwarf_hasattr(&child, DW_AT_low_pc) || dwarf_hasattr(&child, DW_AT_ranges)))
            add_function(unit, arena, &child);
        if (may_hold_functions(tag))
            collect_functions(unit, arena, &child, depth + 1);
    } while (dwarf_siblingof(&child, &child) == 0);
}

static struct unit *find_unit(struct dwarf_units *units, Dwarf_Addr pc)
{
    const struct range *range = range_list_find(&units->ranges, pc);
    struct unit *unit = range ? &units->units[range->id] : NULL;
    if (unit && !unit->has_functions) {
        unit->has_functions = true;
        collect_functions(unit, units->arena, &unit->scope, 0);
        range_list_sort(&unit->functions);
    }
    return unit;
}

/* Fills `chain` with the inlined calls around `pc` below `parent`, outermost first; returns the new count. */
static size_t find_inlined(Dwarf_Die *parent, Dwarf_Addr pc, Dwarf_Die *chain, size_t count, int depth)
{
    Dwarf_Die child;
    if (depth == NESTING_MAX || dwarf_child(parent, &child) != 0)
        return count;
    do {
        int tag = dwarf_tag(&child);
        bool inlined = tag == DW_TAG_inlined_subroutine;
        if (!inlined && tag != DW_TAG_lexical_block && tag != DW_TAG_try_block && tag != DW_TAG_catch_block)
            continue;
        bool has_code = dwarf_hasattr(&child, DW_AT_low_pc) || dwarf_hasattr(&child, DW_AT_ranges);
        if (has_code ? dwarf_haspc(&child, pc) <= 0 : inlined)
            continue;
        if (inlined && count < DWARF_CHAIN_MAX - 1)
            chain[count++] = child;
        size_t deeper = find_inlined(&child, pc, chain, count, depth + 1);
        if (has_code || deeper > count)
            return deeper;
    } while (dwarf_siblingof(&child, &child) == 0);
    return count;
}

static const char *text_attribute(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

static void name_place(struct dwarf_place *place, Dwarf_Die *die)
{
    place->linkage_name = text_attribute(die, DW_AT_linkage_name);
    if (!place->linkage_name)
        place->linkage_name = text_attribute(die, DW_AT_MIPS_linkage_name);
    place->plain_name = dwarf_diename(die);
}

static Dwarf_Word number_attribute(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) == 0 ? value : 0;
}

/* Where the inlined function was called from: the place of the function around it. */
static void locate_call(struct dwarf_place *place, Dwarf_Die *inlined, Dwarf_Files *files, size_t file_count)
{
    Dwarf_Word file = number_attribute(inlined, DW_AT_call_file);
    Dwarf_Word line = number_attribute(inlined, DW_AT_call_line);
    if (files && file > 0 && file < file_count)
        place->file = dwarf_filesrc(files, file, NULL, NULL);
    else if (files && dwarf_hasattr(inlined, DW_AT_call_file) && file_count > 0)
        place->file = dwarf_filesrc(files, 0, NULL, NULL);
    place->line = line <= INT32_MAX ? (int)line : 0;
}

static void locate_pc(struct dwarf_place *place, Dwarf_Die *unit, Dwarf_Addr pc)
{
    Dwarf_Line *line = dwarf_getsrc_die(unit, pc);
    if (!line)
        return;
    place->file = dwarf_linesrc(line, NULL, NULL);
    if (dwarf_lineno(line, &place->line) != 0 || place->line < 0)
        place->line = 0;
}

size_t dwarf_units_find(struct dwarf_units *units, Dwarf_Addr pc, struct dwarf_place places[DWARF_CHAIN_MAX])
{
    Dwarf_Die chain[DWARF_CHAIN_MAX];
    Dwarf_Files *files = NULL;
    size_t inlined = 0, file_count = 0;
    struct unit *unit = find_unit(units, pc);
    if (!unit)
        return 0;
    const struct range *range = range_list_find(&unit->functions, pc);
    Dwarf_Die *function = range ? &unit->dies[range->id] : NULL;
    memset(places, 0, DWARF_CHAIN_MAX * sizeof(*places));
    if (function)
        inlined = find_inlined(function, pc, chain, 0, 0);
    if (inlined > 0 && dwarf_getsrcfiles(&unit->scope, &files, &file_count) != 0)
        files = NULL;
    locate_pc(&places[0], &unit->die, pc);
    for (size_t i = 0; i < inlined; i++) {
        Dwarf_Die *die = &chain[inlined - 1 - i];
        name_place(&places[i], die);
        locate_call(&places[i + 1], die, files, file_count);
    }
    if (function)
        name_place(&places[inlined], function);
    return inlined + 1;
}
