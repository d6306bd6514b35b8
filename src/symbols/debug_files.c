/* Searching for modules' files and debug files; see debug_files.h. */
#include "symbols/debug_files.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "symbols/debug_folder.h"
#include "symbols/debuginfod.h"

#define DISTRIBUTION "/usr/lib/debug"

struct debug_files {
    struct arena *arena;
    struct symbol_places places;
    struct debug_folder *folders; /* one for each of the user's */
    struct debuginfod debuginfod;
};

struct debug_files *debug_files_create(const struct symbol_places *places, struct arena *arena)
{
    struct debug_files *files = arena_alloc(arena, sizeof(*files));
    if (!files)
        return NULL;
    files->arena = arena;
    if (places)
        files->places = *places;
    files->folders = arena_alloc(arena, (files->places.debug_dir_count + 1) * sizeof(*files->folders));
    if (!files->folders)
        return NULL;
    for (size_t i = 0; i < files->places.debug_dir_count; i++)
        debug_folder_init(&files->folders[i], files->places.debug_dirs[i], arena);
    return files;
}

void debug_files_destroy(struct debug_files *files)
{
    debuginfod_close(&files->debuginfod);
}

const char *debug_files_trouble(const struct debug_files *files)
{
    char text[DEBUGINFOD_TROUBLE_MAX];
    const char *trouble = debuginfod_trouble(&files->debuginfod, text);
    return trouble ? arena_copy(files->arena, trouble, strlen(trouble)) : NULL;
}

/* Whether the file is what was looked for; closes it when not. */
static bool is_wanted(const struct debug_wish *wish, struct elf_file *file)
{
    uint8_t id[BUILD_ID_MAX];
    bool is = file->device != wish->device || file->inode != wish->inode;
    if (is && wish->id_bytes > 0)
        is = elf_build_id(file, id) == wish->id_bytes && memcmp(id, wish->id, wish->id_bytes) == 0;
    else if (is)
        is = wish->has_checksum && elf_checksum_is(file, wish->checksum);
    if (!is)
        elf_close(file);
    return is;
}

/* The file named by the pieces of a path put together, below `root`. */
static bool open_wanted(const struct debug_wish *wish, const char *root, struct elf_file *file,
                        const char *first, const char *second, const char *third)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof(path), "%s%s%s", first, second, third) < PATH_MAX &&
           elf_open_in(file, root, path) == ELF_NONE && is_wanted(wish, file);
}

#define ID_TEXT_MAX (2 * BUILD_ID_MAX + 2)

/* "ab/cdef…": how such files are named. */
static const char *id_text(const struct debug_wish *wish, char text[ID_TEXT_MAX])
{
    char *to = text;
    for (size_t i = 0; i < wish->id_bytes; i++)
        to += sprintf(to, i == 0 ? "%02x/" : "%02x", wish->id[i]);
    return text;
}

/* By build-id, on this machine. The user's folders may be a copy of /usr/lib/debug, of a .build-id folder, or
 * just hold files. */
static bool find_by_build_id(struct debug_files *files, const struct debug_wish *wish, struct elf_file *file)
{
    char id[ID_TEXT_MAX], below[ID_TEXT_MAX + sizeof("/.build-id/")];
    if (wish->id_bytes < 2)
        return false;
    snprintf(below, sizeof(below), "/.build-id/%s", id_text(wish, id));
    for (size_t i = 0; i < files->places.debug_dir_count; i++) {
        const char *folder = files->places.debug_dirs[i];
        if (open_wanted(wish, NULL, file, folder, below, ".debug") ||
            open_wanted(wish, NULL, file, folder, below + strlen("/.build-id"), ".debug"))
            return true;
        const char *name = debug_folder_find(&files->folders[i], wish->id, wish->id_bytes);
        if ((name && open_wanted(wish, NULL, file, folder, "/", name)) ||
            open_wanted(wish, NULL, file, folder, below, ""))
            return true;
    }
    return (files->places.sysroot &&
            open_wanted(wish, files->places.sysroot, file, DISTRIBUTION, below, ".debug")) ||
           open_wanted(wish, NULL, file, DISTRIBUTION, below, ".debug");
}

/* By the name that the module has for it: in a folder of the user's, beside the module, in .debug beside it,
 * or where distributions have a folder for each folder. */
static bool find_by_link(const struct debug_files *files, const struct debug_wish *wish,
                         struct elf_file *file)
{
    char folder[PATH_MAX];
    const char *root = files->places.sysroot, *slash = strrchr(wish->path, '/');
    if (!wish->link_name || !slash ||
        snprintf(folder, sizeof(folder), "%.*s/", (int)(slash - wish->path), wish->path) >= PATH_MAX)
        return false;
    if (wish->link_name[0] == '/')
        return open_wanted(wish, root, file, wish->link_name, "", "");
    for (size_t i = 0; i < files->places.debug_dir_count; i++)
        if (open_wanted(wish, NULL, file, files->places.debug_dirs[i], "/", wish->link_name) ||
            open_wanted(wish, NULL, file, files->places.debug_dirs[i], folder, wish->link_name))
            return true;
    return open_wanted(wish, root, file, folder, "", wish->link_name) ||
           open_wanted(wish, root, file, folder, ".debug/", wish->link_name) ||
           open_wanted(wish, root, file, DISTRIBUTION, folder, wish->link_name);
}

static bool fetch(struct debug_files *files, enum debuginfod_kind kind, const struct debug_wish *wish,
                  struct elf_file *file)
{
    int fd = debuginfod_fetch(&files->debuginfod, kind, wish->id, wish->id_bytes);
    return fd >= 0 && elf_take(file, fd) == ELF_NONE && is_wanted(wish, file);
}

bool debug_files_open_separate(struct debug_files *files, const struct debug_wish *wish,
                               struct elf_file *file)
{
    file->fd = -1;
    if (!find_by_build_id(files, wish, file) && !find_by_link(files, wish, file) &&
        !fetch(files, DEBUGINFOD_DEBUG_FILE, wish, file))
        return false;
    if (elf_inflates_well(file))
        return true;
    elf_close(file);
    return false;
}

/* Copied to one of the user's folders, under its path or by its name. */
static bool find_copy(const struct debug_files *files, const struct module *module, struct elf_file *file)
{
    const char *name = strrchr(module->path, '/');
    for (size_t i = 0; name && i < files->places.debug_dir_count; i++) {
        const char *paths[] = {module->path, name};
        for (size_t k = 0; k < sizeof(paths) / sizeof(*paths); k++) {
            char path[PATH_MAX];
            if (snprintf(path, sizeof(path), "%s%s", files->places.debug_dirs[i], paths[k]) >= PATH_MAX ||
                elf_open(file, path) != ELF_NONE)
                continue;
            if (elf_is_module(file, module))
                return true;
            elf_close(file);
        }
    }
    return false;
}

static bool find_elsewhere(struct debug_files *files, const struct module *module, struct elf_file *file)
{
    const struct debug_wish wish = {.id = module->build_id, .id_bytes = module->build_id_bytes};
    /* The other root may hold only a part of its machine: what has the build-id will do wherever it is. */
    bool is_here = files->places.sysroot && module->build_id_bytes > 0;
    return find_copy(files, module, file) || find_by_build_id(files, &wish, file) ||
           (is_here && elf_open_module(file, NULL, module) == ELF_NONE) ||
           fetch(files, DEBUGINFOD_DEBUG_FILE, &wish, file) ||
           fetch(files, DEBUGINFOD_EXECUTABLE, &wish, file);
}

enum elf_problem debug_files_open(struct debug_files *files, const struct module *module,
                                  struct elf_file *file)
{
    enum elf_problem problem = elf_open_module(file, files->places.sysroot, module);
    if (problem != ELF_NONE && !find_elsewhere(files, module, file))
        return problem;
    if (elf_inflates_well(file))
        return ELF_NONE;
    elf_close(file);
    return ELF_TOO_LARGE;
}
