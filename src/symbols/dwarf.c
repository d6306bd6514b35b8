/*
 * Names, files and lines of native frames for the command-line tool, through elfutils. A module's file is
 * opened when one of its frames is asked for, once for all modules that turn out to be one file, and each
 * address in it is looked up once. A file that is no longer the one that was recorded is never read as if it
 * were.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/hash.h"
#include "symbols/debug_files.h"
#include "symbols/dwarf_file.h"
#include "symbols/symbols.h"

#define OUT_OF_MEMORY "Out of memory while reading debug information."

struct resolved {
    uint64_t offset;
    size_t count;
    const struct native_name *names;
    UT_hash_handle hh;
};

struct opened_file {
    struct opened_file *next;
    uint64_t device, inode;    /* one file may have many names */
    struct dwarf_file *file;   /* NULL: cannot be read */
    struct resolved *resolved; /* by offset */
};

struct known_module {
    const struct module *module;
    enum elf_problem problem;
    const char *sentence;     /* NULL: can be read */
    struct opened_file *file; /* NULL: cannot be read */
    UT_hash_handle hh;
};

struct dwarf_source {
    struct symbol_source source;
    struct arena arena;
    const char *sysroot;
    struct debug_files *files;
    struct opened_file *opened;
    struct known_module *modules;
};

/* Takes the descriptor. NULL when memory ran out, or the file cannot be read. */
static struct opened_file *find_opened(struct dwarf_source *source, const struct module *module,
                                       struct elf_file *file)
{
    struct opened_file *found = source->opened;
    while (found && (found->device != file->device || found->inode != file->inode))
        found = found->next;
    if (found) {
        elf_close(file);
        return found->file ? found : NULL;
    }
    found = arena_alloc(&source->arena, sizeof(*found));
    if (!found) {
        elf_close(file);
        return NULL;
    }
    *found = (struct opened_file){.next = source->opened, .device = file->device, .inode = file->inode};
    source->opened = found;
    found->file = dwarf_file_create(source->files, module, file, &source->arena);
    return found->file ? found : NULL;
}

static const char *describe(struct dwarf_source *source, const struct known_module *of)
{
    char text[4096 + 256];
    snprintf(text, sizeof(text), "%s%s %s: its functions are shown as offsets.",
             source->sysroot ? source->sysroot : "", of->module->path, elf_problem_text(of->problem));
    const char *kept = arena_copy(&source->arena, text, strlen(text));
    return kept ? kept : OUT_OF_MEMORY;
}

static struct known_module *find_module(struct dwarf_source *source, const struct module *module)
{
    struct known_module *found;
    struct elf_file file;
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
    found->problem = debug_files_open(source->files, module, &file);
    if (found->problem == ELF_NONE)
        found->file = find_opened(source, module, &file);
    if (found->problem == ELF_NONE && !found->file)
        found->problem = ELF_NOT_ELF;
    if (found->problem != ELF_NONE)
        found->sentence = describe(source, found);
    return found;
}

/* Looks an address up once and keeps the answer, NULL when there is no memory for it. */
static struct resolved *resolve_once(struct dwarf_source *source, struct opened_file *of, uint64_t offset)
{
    struct native_name names[DWARF_CHAIN_MAX];
    struct resolved *found;
    HASH_FIND(hh, of->resolved, &offset, sizeof(offset), found);
    if (found)
        return found;
    size_t count = dwarf_file_find(of->file, offset, names);
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
    const struct known_module *of = max > 0 && offset > 0 && module ? find_module(arg, module) : NULL;
    const struct resolved *found = of && of->file ? resolve_once(arg, of->file, offset) : NULL;
    if (!found || found->count == 0)
        return 0;
    size_t count = found->count < max ? found->count : max;
    memcpy(names, found->names, count * sizeof(*names));
    names[count - 1] = found->names[found->count - 1]; /* the function itself, whatever had to be left out */
    return count;
}

static const char *dwarf_why(void *arg, const struct module *module)
{
    const struct known_module *of = find_module(arg, module);
    if (!of)
        return NULL;
    if (!of->file)
        return elf_problem_text(of->problem);
    return dwarf_file_has_symtab(of->file->file) ? "no symbol there" : "stripped, no debug file found";
}

const char *dwarf_source_problem(struct symbol_source *source, const struct module *module)
{
    const struct known_module *of = find_module(source->source, module);
    return of ? of->sentence : OUT_OF_MEMORY;
}

const char *dwarf_source_trouble(struct symbol_source *source)
{
    const struct dwarf_source *of = source->source;
    return debug_files_trouble(of->files);
}

/* libdwfl keeps each file open, and a process of PyTorch has some hundreds. */
static void allow_many_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

struct symbol_source *dwarf_source_create(const struct symbol_places *places)
{
    struct arena arena = {0};
    struct dwarf_source *source = arena_alloc(&arena, sizeof(*source));
    if (!source)
        return NULL;
    source->arena = arena;
    source->sysroot = places ? places->sysroot : NULL;
    source->source = (struct symbol_source){.resolve = dwarf_resolve, .why = dwarf_why, .source = source};
    allow_many_files();
    source->files = debug_files_create(places, &source->arena);
    if (source->files)
        return &source->source;
    dwarf_source_destroy(&source->source);
    return NULL;
}

void dwarf_source_destroy(struct symbol_source *source)
{
    struct dwarf_source *of = source ? source->source : NULL;
    if (!of)
        return;
    HASH_CLEAR(hh, of->modules);
    for (struct opened_file *file = of->opened; file; file = file->next) {
        HASH_CLEAR(hh, file->resolved);
        dwarf_file_destroy(file->file);
    }
    if (of->files)
        debug_files_destroy(of->files);
    struct arena arena = of->arena; /* `of` itself lies in it */
    arena_release(&arena);
}
