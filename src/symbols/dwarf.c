/*
 * Names, files and lines of native frames for the command-line tool, through elfutils: DWARF in the module's
 * file or in a separate debug file, found by libdwfl in the usual folders, by build-id, and by debuginfod
 * where the user set DEBUGINFOD_URLS. A file that is no longer the one that was recorded is never read as if
 * it were.
 */
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "symbols/demangle.h"
#include "symbols/dwarf_units.h"
#include "symbols/elf_file.h"
#include "symbols/range_list.h"
#include "symbols/source_path.h"
#include "symbols/symbols.h"

#define NAME_MAX_BYTES 16384

struct resolved {
    uint64_t offset;
    size_t count;
    const struct native_name *names;
    UT_hash_handle hh;
};

struct dwarf_module {
    const struct module *module;
    const char *problem; /* NULL: can be read */
    Dwfl *dwfl;
    Dwfl_Module *file;
    Dwarf_Addr file_bias; /* libdwfl's address minus the one in the file */
    Dwarf_Addr debug_bias;
    struct dwarf_units *units;   /* NULL: no DWARF */
    struct resolved *resolved;   /* by offset */
    struct range_list functions; /* of the symbol tables, in libdwfl's addresses; ids are symbol indices */
    UT_hash_handle hh;
};

struct dwarf_source {
    struct symbol_source source;
    struct arena arena;
    struct dwarf_module *modules;
};

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

static const char *keep(struct dwarf_source *source, const char *text)
{
    return text ? arena_copy(&source->arena, text, strlen(text)) : NULL;
}

/* "…/.build-id/ab/cdef….debug": where distributions keep debug files. They have the addresses of the
 * original. */
static bool debug_file_path(const struct module *module, char *path, size_t size)
{
    int used = snprintf(path, size, "/usr/lib/debug/.build-id/%02x/", module->build_id[0]);
    for (uint32_t i = 1; i < module->build_id_bytes && (size_t)used + 3 < size; i++)
        used += snprintf(path + used, size - (size_t)used, "%02x", module->build_id[i]);
    return snprintf(path + used, size - (size_t)used, ".debug") < (int)(size - (size_t)used);
}

/* The recorded file is gone or another: looks for its debug file, or the file itself, by build-id. */
static Dwfl_Module *report_by_build_id(Dwfl *dwfl, const struct module *module)
{
    char path[256];
    Dwarf_Addr bias;
    if (module->build_id_bytes < 2)
        return NULL;
    Dwfl_Module *found = debug_file_path(module, path, sizeof(path))
                             ? dwfl_report_elf(dwfl, module->path, path, -1, 0, true)
                             : NULL;
    if (found)
        return found;
    found = dwfl_report_module(dwfl, module->path, module->start - module->bias, module->end - module->bias);
    if (found && dwfl_module_report_build_id(found, module->build_id, (int)module->build_id_bytes, 0) == 0 &&
        dwfl_module_getelf(found, &bias))
        return found;
    return NULL;
}

static const char *describe(struct dwarf_source *source, const struct module *module,
                            enum elf_problem problem)
{
    char text[4096 + 256];
    snprintf(text, sizeof(text), "%s %s: its functions are shown as offsets", module->path,
             elf_problem_text(problem));
    return keep(source, text);
}

static void open_file(struct dwarf_source *source, struct dwarf_module *of)
{
    struct elf_file checked;
    enum elf_problem problem = elf_open_module(&checked, of->module);
    of->dwfl = dwfl_begin(&callbacks);
    if (!of->dwfl) {
        elf_close(&checked);
        of->problem = "out of memory while reading debug information";
        return;
    }
    dwfl_report_begin(of->dwfl);
    if (problem == ELF_NONE) /* takes the descriptor: what was checked is what is read */
        of->file = dwfl_report_elf(of->dwfl, of->module->path, of->module->path, checked.fd, 0, true);
    if (problem == ELF_NONE && !of->file) {
        elf_close(&checked);
        problem = ELF_NOT_ELF;
    }
    if (!of->file)
        of->file = report_by_build_id(of->dwfl, of->module);
    dwfl_report_end(of->dwfl, NULL, NULL);
    if (!of->file || !dwfl_module_getelf(of->file, &of->file_bias)) {
        of->file = NULL;
        of->problem = describe(source, of->module, problem);
    }
}

static void read_functions(struct dwarf_source *source, struct dwarf_module *of)
{
    int count = dwfl_module_getsymtab(of->file);
    for (int i = 1; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr start;
        if (dwfl_module_getsym_info(of->file, i, &symbol, &start, NULL, NULL, NULL) &&
            elf_is_function(&symbol))
            range_list_add(&of->functions, &source->arena, start, start + symbol.st_size, (uint32_t)i);
    }
    range_list_sort(&of->functions);
}

static struct dwarf_module *find_module(struct dwarf_source *source, const struct module *module)
{
    struct dwarf_module *found;
    HASH_FIND_PTR(source->modules, &module, found);
    if (found)
        return found;
    found = arena_alloc(&source->arena, sizeof(*found));
    if (!found)
        return NULL;
    found->module = module;
    HASH_ADD_PTR(source->modules, module, found);
    if (!hash_added(found))
        return NULL;
    open_file(source, found);
    if (!found->file)
        return found;
    Dwarf *dwarf = dwfl_module_getdwarf(found->file, &found->debug_bias);
    if (dwarf)
        found->units = dwarf_units_create(dwarf, &source->arena);
    read_functions(source, found);
    return found;
}

/* The best symbol of the function at `address`, NULL when there is none; belongs to libdwfl. */
static const char *symbol_at(const struct dwarf_module *of, Dwarf_Addr address)
{
    const struct range *function = range_list_find(&of->functions, address);
    const char *best = NULL;
    int best_rank = -1;
    for (const struct range *alias = function; alias && alias >= of->functions.ranges; alias--) {
        GElf_Sym symbol;
        GElf_Addr start;
        if (alias->start != function->start)
            break;
        const char *name =
            dwfl_module_getsym_info(of->file, (int)alias->id, &symbol, &start, NULL, NULL, NULL);
        int rank = name ? elf_name_rank(&symbol, name) : -1;
        if (rank >= best_rank && name && name[0]) {
            best = name;
            best_rank = rank;
        }
    }
    return best;
}

/* The mangled names say most; the plain name of a function is only its last part. */
static const char *function_name(struct dwarf_source *source, const struct dwarf_place *place,
                                 const char *symbol)
{
    char text[NAME_MAX_BYTES];
    const char *mangled[] = {place->linkage_name, symbol},
               *plain[] = {place->plain_name, symbol, place->linkage_name};
    for (size_t i = 0; i < sizeof(mangled) / sizeof(*mangled); i++)
        if (mangled[i] && demangle(mangled[i], text, sizeof(text)) > 0)
            return keep(source, text);
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        if (plain[i] && readable_name(plain[i], text, sizeof(text)) > 0)
            return keep(source, text);
    return NULL;
}

static size_t name_address(struct dwarf_source *source, struct dwarf_module *of, uint64_t offset,
                           struct native_name *names)
{
    struct dwarf_place places[DWARF_CHAIN_MAX];
    Dwarf_Addr address = offset - 1 + of->file_bias; /* inside the call, not behind it */
    const char *symbol = symbol_at(of, address);
    size_t count = of->units ? dwarf_units_find(of->units, address - of->debug_bias, places) : 0;
    if (count == 0 && symbol) {
        memset(&places[0], 0, sizeof(places[0]));
        count = 1;
    }
    for (size_t i = 0; i < count; i++) {
        char path[SOURCE_PATH_MAX];
        names[i] = (struct native_name){
            .function = function_name(source, &places[i], i == count - 1 ? symbol : NULL),
            .file = places[i].file ? keep(source, source_path(places[i].file, path)) : NULL,
            .line = places[i].line,
        };
    }
    return count;
}

/* Looks an address up once and keeps the answer, NULL when there is no memory for it. */
static struct resolved *resolve_once(struct dwarf_source *source, const struct module *module,
                                     uint64_t offset)
{
    struct dwarf_module *of = find_module(source, module);
    struct native_name names[DWARF_CHAIN_MAX];
    struct resolved *found;
    if (!of)
        return NULL;
    HASH_FIND(hh, of->resolved, &offset, sizeof(offset), found);
    if (found)
        return found;
    size_t count = of->file ? name_address(source, of, offset, names) : 0;
    found = arena_alloc(&source->arena, sizeof(*found));
    if (!found)
        return NULL;
    found->offset = offset;
    found->names =
        count > 0 ? (void *)arena_copy(&source->arena, (char *)names, count * sizeof(*names)) : NULL;
    found->count = found->names ? count : 0;
    HASH_ADD(hh, of->resolved, offset, sizeof(offset), found);
    return found;
}

static size_t dwarf_resolve(void *arg, const struct module *module, uint64_t offset,
                            struct native_name *names, size_t max)
{
    struct resolved *found = max > 0 && offset > 0 && module ? resolve_once(arg, module, offset) : NULL;
    if (!found || found->count == 0)
        return 0;
    size_t count = found->count < max ? found->count : max;
    memcpy(names, found->names, count * sizeof(*names));
    names[count - 1] = found->names[found->count - 1]; /* the function itself, whatever had to be left out */
    return count;
}

const char *dwarf_source_problem(struct symbol_source *source, const struct module *module)
{
    struct dwarf_module *of = find_module(source->source, module);
    return of ? of->problem : "out of memory while reading debug information";
}

struct symbol_source *dwarf_source_create(void)
{
    struct arena arena = {0};
    struct dwarf_source *source = arena_alloc(&arena, sizeof(*source));
    if (!source)
        return NULL;
    source->arena = arena;
    source->source = (struct symbol_source){.resolve = dwarf_resolve, .source = source};
    return &source->source;
}

void dwarf_source_destroy(struct symbol_source *source)
{
    struct dwarf_source *of = source ? source->source : NULL;
    struct dwarf_module *module, *next;
    if (!of)
        return;
    HASH_ITER (hh, of->modules, module, next) {
        HASH_CLEAR(hh, module->resolved);
        if (module->dwfl)
            dwfl_end(module->dwfl);
    }
    HASH_CLEAR(hh, of->modules);
    struct arena arena = of->arena; /* `of` itself lies in it */
    arena_release(&arena);
}
