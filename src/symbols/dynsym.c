/*
 * Names of native frames from the symbol tables of the modules' own files, for the traced process: no malloc,
 * no stdio, no dynamic linker, and no trust in the files. Each file is read once, in one pass over its
 * symbols; what is kept is a sorted table of its functions and the names that were asked for.
 */
#include "symbols/symbols.h"

#include <string.h>

#include "symbols/demangle.h"
#include "symbols/elf_file.h"
#include "symbols/own_stack.h"
#include "symbols/range_list.h"

#define OPEN_FILES_MAX    4
#define NAME_MAX_BYTES    DEMANGLE_INPUT_MAX
#define SYMBOLS_PER_READ  4096
#define ALIASES_MAX       16
#define SECTION_LOOKS_MAX 65536 /* each is a read of its own, for the few symbols without type or size */
/* Bounds the memory for one file: 24 bytes a function, twice while sorting. */
#define SYMBOLS_MAX (UINT64_C(1) << 23)

struct dynsym_module {
    struct dynsym_module *next;
    const struct module *module;
    struct elf_file file;
    enum elf_problem problem;
    bool readable;           /* its table was read; the file may have to be opened again */
    uint64_t symbols_offset; /* of the symbol table in the file */
    uint64_t names_offset, names_bytes;
    struct range_list functions; /* ids: indices in the symbol table */
    const char **names;          /* one for each function; NULL: not asked yet */
};

struct dynsym_source {
    struct symbol_source source;
    struct arena *arena;
    struct dynsym_module *modules; /* the last used first */
    struct dynsym_module *open[OPEN_FILES_MAX];
    unsigned next_open;
    struct own_stack stack; /* for the demangler */
    char raw[NAME_MAX_BYTES + 1], readable[NAME_MAX_BYTES + 1];
};

/* Adds one symbol, if it is a function. `looks`: how many sections may be looked at still. */
static void add_function(struct dynsym_module *of, const Elf64_Sym *symbol, uint32_t index, unsigned *looks)
{
    Elf64_Shdr section;
    uint64_t start = symbol->st_value;
    if (!elf_is_function(symbol))
        return;
    if (elf_needs_section(symbol)) {
        if (*looks == 0)
            return;
        (*looks)--;
        if (!elf_section_at(&of->file, symbol->st_shndx, &section) || !(section.sh_flags & SHF_EXECINSTR))
            return;
        if (symbol->st_size == 0) {
            range_list_add_open(&of->functions, NULL, start, section.sh_addr + section.sh_size, index);
            return;
        }
    }
    range_list_add(&of->functions, NULL, start, start + symbol->st_size, index);
}

/* Adds the table's functions to the list. `symbols` has room for SYMBOLS_PER_READ. */
static void collect_functions(struct dynsym_module *of, uint64_t total, Elf64_Sym *symbols)
{
    unsigned looks = SECTION_LOOKS_MAX;
    for (uint64_t first = 0; first < total; first += SYMBOLS_PER_READ) {
        uint64_t count = total - first < SYMBOLS_PER_READ ? total - first : SYMBOLS_PER_READ;
        if (!elf_read(&of->file, of->symbols_offset + first * sizeof(*symbols), symbols,
                      count * sizeof(*symbols)))
            return;
        for (uint64_t i = 0; i < count && of->functions.count < of->functions.room; i++)
            add_function(of, &symbols[i], (uint32_t)(first + i), &looks);
    }
}

/* Reads one symbol table section; false when it gives no functions. */
static bool read_table(struct dynsym_source *source, struct dynsym_module *of, uint32_t section_type)
{
    Elf64_Shdr table, names;
    if (!elf_section(&of->file, section_type, &table) || table.sh_entsize != sizeof(Elf64_Sym) ||
        table.sh_size / sizeof(Elf64_Sym) == 0 || table.sh_size / sizeof(Elf64_Sym) > SYMBOLS_MAX ||
        !elf_section_at(&of->file, table.sh_link, &names) || names.sh_type != SHT_STRTAB)
        return false;
    of->symbols_offset = table.sh_offset;
    of->names_offset = names.sh_offset;
    of->names_bytes = names.sh_size;
    uint64_t total = table.sh_size / sizeof(Elf64_Sym);
    size_t buffer_bytes = SYMBOLS_PER_READ * sizeof(Elf64_Sym);
    of->functions = (struct range_list){0};
    Elf64_Sym *buffer =
        range_list_reserve(&of->functions, source->arena, total) ? pages_alloc(buffer_bytes) : NULL;
    if (!buffer)
        return false;
    collect_functions(of, total, buffer);
    pages_free(buffer, buffer_bytes);
    if (of->functions.count == 0 || !range_list_sort(&of->functions))
        return false;
    of->names = arena_alloc(source->arena, of->functions.count * sizeof(*of->names));
    return of->names != NULL;
}

/* Makes room among the few files kept open, and opens this one. */
static bool open_file(struct dynsym_source *source, struct dynsym_module *of)
{
    struct dynsym_module **slot = &source->open[source->next_open];
    if (of->file.fd >= 0)
        return true;
    of->problem = elf_open_module(&of->file, NULL, of->module);
    if (of->problem != ELF_NONE)
        return false;
    if (*slot)
        elf_close(&(*slot)->file);
    *slot = of;
    source->next_open = (source->next_open + 1) % OPEN_FILES_MAX;
    return true;
}

static struct dynsym_module *add_module(struct dynsym_source *source, const struct module *module)
{
    struct dynsym_module *added = arena_alloc(source->arena, sizeof(*added));
    if (!added)
        return NULL;
    added->module = module;
    added->file.fd = -1;
    added->next = source->modules;
    source->modules = added;
    added->problem = ELF_NOT_A_FILE;
    if (module->path && open_file(source, added))
        added->readable = read_table(source, added, SHT_SYMTAB) || read_table(source, added, SHT_DYNSYM);
    return added;
}

/* The module's entry, moved to the front: neighbouring frames are often of one module. */
static struct dynsym_module *find_module(struct dynsym_source *source, const struct module *module)
{
    for (struct dynsym_module **link = &source->modules; *link; link = &(*link)->next) {
        struct dynsym_module *found = *link;
        if (found->module != module)
            continue;
        *link = found->next;
        found->next = source->modules;
        source->modules = found;
        return found;
    }
    return add_module(source, module);
}

/* Reads the name of one symbol into `text`, which has room for NAME_MAX_BYTES + 1. */
static bool read_name(const struct dynsym_module *of, uint32_t index, Elf64_Sym *symbol, char *text)
{
    size_t step = 256; /* most names are shorter */
    if (!elf_read(&of->file, of->symbols_offset + index * sizeof(*symbol), symbol, sizeof(*symbol)) ||
        symbol->st_name >= of->names_bytes)
        return false;
    uint64_t left = of->names_bytes - symbol->st_name;
    size_t most = left < NAME_MAX_BYTES ? (size_t)left : NAME_MAX_BYTES;
    for (;; step = NAME_MAX_BYTES) {
        size_t bytes = most < step ? most : step;
        if (!elf_read(&of->file, of->names_offset + symbol->st_name, text, bytes))
            return false;
        text[bytes] = 0;
        if (bytes == most || memchr(text, 0, bytes))
            return text[0] != 0;
    }
}

static void make_readable(void *arg)
{
    struct dynsym_source *source = arg;
    readable_name(source->raw, source->readable, sizeof(source->readable));
}

/* The best of the names of the functions that start where `function` does, in the arena; NULL when there is
 * none. */
static const char *best_name(struct dynsym_source *source, const struct dynsym_module *of,
                             const struct range *function)
{
    const char *best = NULL;
    int best_rank = -1;
    for (const struct range *alias = function; alias >= of->functions.ranges; alias--) {
        Elf64_Sym symbol;
        if (alias->start != function->start || function - alias == ALIASES_MAX)
            break;
        if (!read_name(of, alias->id, &symbol, source->raw))
            continue;
        int rank = elf_name_rank(&symbol, source->raw);
        if (rank < best_rank)
            continue;
        best_rank = rank;
        source->readable[0] = 0;
        own_stack_call(&source->stack, make_readable, source);
        if (source->readable[0])
            best = arena_copy(source->arena, source->readable, strlen(source->readable));
    }
    return best;
}

static size_t dynsym_resolve(void *arg, const struct module *module, uint64_t offset,
                             struct native_name *names, size_t max)
{
    struct dynsym_source *source = arg;
    if (max == 0 || offset == 0)
        return 0;
    struct dynsym_module *of = find_module(source, module);
    /* A return address is one past its call, which may be the function's last instruction. */
    const struct range *function = of && of->readable ? range_list_find(&of->functions, offset - 1) : NULL;
    if (!function)
        return 0;
    const char **name = &of->names[function - of->functions.ranges];
    if (!*name && open_file(source, of))
        *name = best_name(source, of, function);
    if (!*name)
        return 0;
    names[0] = (struct native_name){.function = *name};
    return 1;
}

static const char *dynsym_why(void *arg, const struct module *module)
{
    struct dynsym_module *of = find_module(arg, module);
    if (!of)
        return NULL;
    if (of->problem != ELF_NONE)
        return elf_problem_text(of->problem);
    return of->readable ? "no symbol there" : "no symbols";
}

struct symbol_source *dynsym_source_create(struct arena *arena)
{
    struct dynsym_source *source = arena_alloc(arena, sizeof(*source));
    if (!source)
        return NULL;
    source->arena = arena;
    source->source = (struct symbol_source){.resolve = dynsym_resolve, .why = dynsym_why, .source = source};
    return &source->source;
}

void dynsym_source_close(struct symbol_source *source)
{
    struct dynsym_source *of = source->source;
    for (unsigned i = 0; i < OPEN_FILES_MAX; i++) {
        if (of->open[i])
            elf_close(&of->open[i]->file);
        of->open[i] = NULL;
    }
    own_stack_release(&of->stack);
}
