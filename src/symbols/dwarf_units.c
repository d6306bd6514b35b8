/* Units, functions and inlined calls of one module's DWARF; see dwarf_units.h. */
#include "symbols/dwarf_units.h"

#include <dwarf.h>
#include <string.h>

#include "base/list.h"
#include "symbols/dwarf_scopes.h"
#include "symbols/range_list.h"

/* PyTorch has some 20,000; a made-up file may have one every few bytes. */
#define UNITS_MAX (1u << 20)

struct function {
    Dwarf_Die die;
    struct dwarf_scopes *scopes; /* NULL: not looked at yet */
};

struct unit {
    Dwarf_Die die;   /* has the line table */
    Dwarf_Die scope; /* has the functions: the split unit's, where there is one */
    bool has_functions;
    uint32_t looks;           /* at entries, so far */
    struct range_list ranges; /* ids index `functions` */
    struct list functions;
};

struct dwarf_units {
    struct arena *arena;
    struct range_list ranges; /* ids index `units` */
    struct unit *units;
    size_t count;
};

static size_t count_units(Dwarf *dwarf)
{
    Dwarf_CU *unit = NULL;
    size_t count = 0;
    while (count < UNITS_MAX && dwarf_get_units(dwarf, unit, &unit, NULL, NULL, NULL, NULL) == 0)
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
    if (!units || room == 0)
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
        dwarf_add_ranges(&units->ranges, arena, &die, (uint32_t)units->count++);
    }
    range_list_flatten(&units->ranges, arena);
    return units;
}

static void add_function(struct unit *unit, struct arena *arena, Dwarf_Die *die)
{
    uint32_t number = unit->functions.count;
    struct function *function = list_reach(&unit->functions, number);
    if (!function)
        return;
    function->die = *die;
    dwarf_add_ranges(&unit->ranges, arena, die, number);
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
    if (depth == DWARF_NESTING_MAX || dwarf_child(parent, &child) != 0)
        return;
    do {
        int tag = dwarf_tag(&child);
        if (++unit->looks > DWARF_ENTRIES_MAX)
            return;
        if (tag == DW_TAG_subprogram && dwarf_has_code(&child))
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
        list_init(&unit->functions, units->arena, sizeof(struct function));
        collect_functions(unit, units->arena, &unit->scope, 0);
        range_list_flatten(&unit->ranges, units->arena);
    }
    return unit;
}

static struct function *find_function(struct dwarf_units *units, struct unit *unit, Dwarf_Addr pc)
{
    const struct range *range = range_list_find(&unit->ranges, pc);
    struct function *function = range ? list_at(&unit->functions, range->id) : NULL;
    if (function && !function->scopes)
        function->scopes = dwarf_scopes_create(&function->die, units->arena);
    return function;
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
    struct function *function = find_function(units, unit, pc);
    memset(places, 0, DWARF_CHAIN_MAX * sizeof(*places));
    if (function && function->scopes)
        inlined = dwarf_scopes_find(function->scopes, pc, chain, DWARF_CHAIN_MAX - 1);
    if (inlined > 0 && dwarf_getsrcfiles(&unit->scope, &files, &file_count) != 0)
        files = NULL;
    locate_pc(&places[0], &unit->die, pc);
    for (size_t i = 0; i < inlined; i++) {
        name_place(&places[i], &chain[i]);
        locate_call(&places[i + 1], &chain[i], files, file_count);
    }
    if (function)
        name_place(&places[inlined], &function->die);
    return inlined + 1;
}
