/* One file through libdwfl, which is told where separate debug files are; see dwarf_file.h. */
#include "symbols/dwarf_file.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "symbols/demangle.h"
#include "symbols/range_list.h"
#include "symbols/source_path.h"

#define NAME_MAX_BYTES 16384

struct dwarf_file {
    struct arena *arena;
    struct debug_files *files;
    const struct module *module;
    uint64_t device, inode;
    bool searching, searched;
    char debug_path[PATH_MAX]; /* of the separate debug file; empty: none */
    Dwfl *dwfl;
    Dwfl_Module *opened;
    Dwarf_Addr bias; /* libdwfl's address minus the one in the file */
    Dwarf_Addr debug_bias;
    struct dwarf_units *units; /* NULL: no DWARF */
    bool has_symtab;
    struct range_list functions; /* of the symbol tables, in libdwfl's addresses; ids are symbol indices */
};

/* Relative names in the file lead from there. */
static void remember_path(struct dwarf_file *file, int fd)
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, file->debug_path, sizeof(file->debug_path) - 1);
    file->debug_path[length > 0 ? length : 0] = 0;
}

static int find_separate(struct dwarf_file *file, Dwfl_Module *opened, const char *link_name,
                         uint32_t checksum)
{
    struct debug_wish wish = {.link_name = link_name,
                              .path = file->module->path,
                              .has_checksum = link_name != NULL,
                              .checksum = checksum,
                              .device = file->device,
                              .inode = file->inode};
    struct elf_file separate;
    Elf64_Shdr table;
    GElf_Addr address;
    if (file->searched) /* in vain, for the symbols; now it wants the DWARF */
        return -1;
    file->searched = true;
    int bytes = dwfl_module_build_id(opened, &wish.id, &address);
    wish.id_bytes = bytes > 0 && bytes <= BUILD_ID_MAX ? (size_t)bytes : 0;
    if (debug_files_open_separate(file->files, &wish, &separate)) {
        remember_path(file, separate.fd);
        file->has_symtab |= elf_section(&separate, SHT_SYMTAB, &table);
    }
    return separate.fd;
}

/* What several debug files have in common, made by dwz. */
static int find_shared(struct dwarf_file *file, Dwfl_Module *opened)
{
    struct debug_wish wish = {.path = file->debug_path[0] ? file->debug_path : file->module->path};
    struct elf_file shared;
    const void *id;
    Dwarf_Addr bias;
    Dwarf *dwarf = dwfl_module_getdwarf(opened, &bias);
    ssize_t bytes = dwarf ? dwelf_dwarf_gnu_debugaltlink(dwarf, &wish.link_name, &id) : 0;
    if (bytes <= 0 || bytes > BUILD_ID_MAX)
        return -1;
    wish.id = id;
    wish.id_bytes = (size_t)bytes;
    debug_files_open_separate(file->files, &wish, &shared);
    return shared.fd;
}

/* libdwfl asks for the separate debug file, with the name and checksum that the file may have for it; and,
 * with a name only, for what that shares with others. */
static int find_debuginfo(Dwfl_Module *opened, void **userdata, const char *module_name, Dwarf_Addr base,
                          const char *path, const char *link_name, GElf_Word checksum, char **found_path)
{
    struct dwarf_file *file = *userdata;
    (void)module_name, (void)base, (void)path, (void)found_path;
    if (file->searching)
        return -1;
    file->searching = true;
    int fd = link_name && checksum == 0 ? find_shared(file, opened)
                                        : find_separate(file, opened, link_name, checksum);
    file->searching = false;
    return fd;
}

static const Dwfl_Callbacks callbacks = {
    .find_debuginfo = find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

/* Adds one symbol, if it is a function; see elf_needs_section(). */
static void add_function(struct dwarf_file *file, int index)
{
    GElf_Sym symbol;
    GElf_Addr start;
    GElf_Shdr section = {0};
    Elf *elf = NULL;
    if (!dwfl_module_getsym_info(file->opened, index, &symbol, &start, NULL, &elf, NULL) ||
        !elf_is_function(&symbol))
        return;
    if (elf_needs_section(&symbol) &&
        (!gelf_getshdr(elf_getscn(elf, symbol.st_shndx), &section) || !(section.sh_flags & SHF_EXECINSTR)))
        return;
    if (symbol.st_size == 0)
        range_list_add_open(&file->functions, file->arena, start,
                            start + (section.sh_addr + section.sh_size - symbol.st_value), (uint32_t)index);
    else
        range_list_add(&file->functions, file->arena, start, start + symbol.st_size, (uint32_t)index);
}

static void read_debug_information(struct dwarf_file *file)
{
    int count = dwfl_module_getsymtab(file->opened);
    Dwarf *dwarf = dwfl_module_getdwarf(file->opened, &file->debug_bias);
    if (dwarf)
        file->units = dwarf_units_create(dwarf, file->arena);
    for (int i = 1; i < count; i++)
        add_function(file, i);
    range_list_sort(&file->functions);
}

/* Opens it by libdwfl, which takes the descriptor when all went well. */
static bool begin(struct dwarf_file *file, int fd)
{
    void **userdata;
    file->dwfl = dwfl_begin(&callbacks);
    if (!file->dwfl)
        return false;
    dwfl_report_begin(file->dwfl);
    file->opened = dwfl_report_elf(file->dwfl, file->module->path, file->module->path, fd, 0, true);
    dwfl_report_end(file->dwfl, NULL, NULL);
    if (!file->opened)
        return false;
    dwfl_module_info(file->opened, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
    *userdata = file;
    return true;
}

struct dwarf_file *dwarf_file_create(struct debug_files *files, const struct module *module,
                                     struct elf_file *file, struct arena *arena)
{
    Elf64_Shdr table;
    struct dwarf_file *created = arena_alloc(arena, sizeof(*created));
    if (created) {
        created->arena = arena;
        created->files = files;
        created->module = module;
        created->device = file->device;
        created->inode = file->inode;
        created->has_symtab = elf_section(file, SHT_SYMTAB, &table);
    }
    if (!created || !begin(created, file->fd)) {
        elf_close(file);
        dwarf_file_destroy(created);
        return NULL;
    }
    if (!dwfl_module_getelf(created->opened, &created->bias)) {
        dwarf_file_destroy(created);
        return NULL;
    }
    read_debug_information(created);
    return created;
}

void dwarf_file_destroy(struct dwarf_file *file)
{
    if (file && file->dwfl)
        dwfl_end(file->dwfl);
}

bool dwarf_file_has_symtab(const struct dwarf_file *file)
{
    return file->has_symtab;
}

/* The best symbol of the function at `address`, NULL when there is none; belongs to libdwfl. */
static const char *symbol_at(const struct dwarf_file *file, Dwarf_Addr address)
{
    const struct range *function = range_list_find(&file->functions, address);
    const char *best = NULL;
    int best_rank = -1;
    for (const struct range *alias = function; alias && alias >= file->functions.ranges; alias--) {
        GElf_Sym symbol;
        GElf_Addr start;
        if (alias->start != function->start)
            break;
        const char *name =
            dwfl_module_getsym_info(file->opened, (int)alias->id, &symbol, &start, NULL, NULL, NULL);
        int rank = name ? elf_name_rank(&symbol, name) : -1;
        if (rank >= best_rank && name && name[0]) {
            best = name;
            best_rank = rank;
        }
    }
    return best;
}

static const char *keep(struct dwarf_file *file, const char *text)
{
    return arena_copy(file->arena, text, strlen(text));
}

/* The mangled names say most; the plain name of a function is only its last part. */
static const char *function_name(struct dwarf_file *file, const struct dwarf_place *place, const char *symbol)
{
    char text[NAME_MAX_BYTES];
    const char *mangled[] = {place->linkage_name, symbol},
               *plain[] = {place->plain_name, symbol, place->linkage_name};
    for (size_t i = 0; i < sizeof(mangled) / sizeof(*mangled); i++)
        if (mangled[i] && demangle(mangled[i], text, sizeof(text)) > 0)
            return keep(file, text);
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        if (plain[i] && readable_name(plain[i], text, sizeof(text)) > 0)
            return keep(file, text);
    return NULL;
}

size_t dwarf_file_find(struct dwarf_file *file, uint64_t offset, struct native_name names[DWARF_CHAIN_MAX])
{
    struct dwarf_place places[DWARF_CHAIN_MAX];
    Dwarf_Addr address = offset - 1 + file->bias; /* inside the call, not behind it */
    const char *symbol = symbol_at(file, address);
    size_t count = file->units ? dwarf_units_find(file->units, address - file->debug_bias, places) : 0;
    if (count == 0 && symbol) {
        memset(&places[0], 0, sizeof(places[0]));
        count = 1;
    }
    for (size_t i = 0; i < count; i++) {
        char path[SOURCE_PATH_MAX];
        names[i] = (struct native_name){
            .function = function_name(file, &places[i], i == count - 1 ? symbol : NULL),
            .file = places[i].file ? keep(file, source_path(places[i].file, path)) : NULL,
            .line = places[i].line,
        };
    }
    return count;
}
