/* Inlined calls of a function; see dwarf_scopes.h. */
#include "symbols/dwarf_scopes.h"

#include <dwarf.h>

#include "base/list.h"

#define NO_PARENT UINT32_MAX

struct inlined {
    Dwarf_Die die;
    uint32_t parent; /* the inlined call around this one */
};

struct dwarf_scopes {
    struct arena *arena;
    struct range_list ranges; /* ids index `inlined` */
    struct list inlined;
    uint32_t looks; /* at entries, so far */
};

bool dwarf_has_code(Dwarf_Die *die)
{
    return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

void dwarf_add_ranges(struct range_list *list, struct arena *arena, Dwarf_Die *die, uint32_t id)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t offset = 0;
    while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0)
        if (start > 0) /* at 0 lies what the linker dropped */
            range_list_add(list, arena, start, end, id);
}

/* Adds one inlined call; returns its number, or its parent's when memory ran out. */
static uint32_t add_inlined(struct dwarf_scopes *scopes, Dwarf_Die *die, uint32_t parent)
{
    uint32_t number = scopes->inlined.count;
    struct inlined *added = list_reach(&scopes->inlined, number);
    if (!added)
        return parent;
    added->die = *die;
    added->parent = parent;
    dwarf_add_ranges(&scopes->ranges, scopes->arena, die, number);
    return number;
}

static void collect(struct dwarf_scopes *scopes, Dwarf_Die *around, uint32_t parent, int depth)
{
    Dwarf_Die child;
    if (depth == DWARF_NESTING_MAX || dwarf_child(around, &child) != 0)
        return;
    do {
        if (++scopes->looks > DWARF_ENTRIES_MAX)
            return;
        switch (dwarf_tag(&child)) {
        case DW_TAG_inlined_subroutine:
            collect(scopes, &child, add_inlined(scopes, &child, parent), depth + 1);
            break;
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
            collect(scopes, &child, parent, depth + 1);
            break;
        default:
            break;
        }
    } while (dwarf_siblingof(&child, &child) == 0);
}

struct dwarf_scopes *dwarf_scopes_create(Dwarf_Die *function, struct arena *arena)
{
    struct dwarf_scopes *scopes = arena_alloc(arena, sizeof(*scopes));
    if (!scopes)
        return NULL;
    scopes->arena = arena;
    list_init(&scopes->inlined, arena, sizeof(struct inlined));
    collect(scopes, function, NO_PARENT, 0);
    range_list_flatten(&scopes->ranges, arena);
    return scopes;
}

size_t dwarf_scopes_find(const struct dwarf_scopes *scopes, Dwarf_Addr pc, Dwarf_Die *chain, size_t max)
{
    const struct range *range = range_list_find(&scopes->ranges, pc);
    size_t count = 0;
    for (uint32_t i = range ? range->id : NO_PARENT; i != NO_PARENT && count < max;) {
        const struct inlined *inlined = list_at(&scopes->inlined, i);
        chain[count++] = inlined->die;
        i = inlined->parent;
    }
    return count;
}
