/* A folder's files by build-id; see debug_folder.h. */
#include "symbols/debug_folder.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "symbols/elf_file.h"

/* A folder that was not meant, say of a home or of downloads, costs no more than this many looks. */
#define FILES_MAX 20000

struct named_id {
    const char *name;
    bool has_symbols;
    size_t id_bytes;
    uint8_t id[BUILD_ID_MAX];
};

void debug_folder_init(struct debug_folder *folder, const char *path, struct arena *arena)
{
    *folder = (struct debug_folder){.path = path};
    list_init(&folder->files, arena, sizeof(struct named_id));
}

static void look_at(struct debug_folder *folder, const char *name)
{
    char path[PATH_MAX];
    struct elf_file file;
    struct named_id found = {0};
    Elf64_Shdr section;
    if (snprintf(path, sizeof(path), "%s/%s", folder->path, name) >= PATH_MAX ||
        elf_open(&file, path) != ELF_NONE)
        return;
    found.id_bytes = elf_build_id(&file, found.id);
    found.has_symbols = elf_section(&file, SHT_SYMTAB, &section);
    elf_close(&file);
    found.name = found.id_bytes > 0 ? arena_copy(folder->files.arena, name, strlen(name)) : NULL;
    struct named_id *added = found.name ? list_reach(&folder->files, folder->files.count) : NULL;
    if (added)
        *added = found;
}

static void list_files(struct debug_folder *folder)
{
    DIR *open = opendir(folder->path);
    const struct dirent *entry;
    folder->listed = true;
    if (!open)
        return;
    for (int looks = 0; looks < FILES_MAX && (entry = readdir(open)); looks++)
        if (entry->d_type == DT_REG || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN)
            look_at(folder, entry->d_name);
    closedir(open);
}

const char *debug_folder_find(struct debug_folder *folder, const uint8_t *id, size_t id_bytes)
{
    const struct named_id *best = NULL;
    if (!folder->listed)
        list_files(folder);
    for (uint32_t i = 0; i < folder->files.count; i++) {
        const struct named_id *file = list_at(&folder->files, i);
        if (file->id_bytes == id_bytes && memcmp(file->id, id, id_bytes) == 0 &&
            (!best || (file->has_symbols && !best->has_symbols)))
            best = file;
    }
    return best ? best->name : NULL;
}
