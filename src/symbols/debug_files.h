/*
 * Where on this machine the files of a recording's modules are, and their separate debug files: at the
 * recorded path, under another root, in folders the user named, where distributions keep debug files, and by
 * debuginfod. A file counts only when it proves to be the recorded one: by build-id where there is one.
 */
#ifndef SYMBOLS_DEBUG_FILES_H
#define SYMBOLS_DEBUG_FILES_H

#include "base/arena.h"
#include "symbols/elf_file.h"
#include "symbols/symbols.h"

struct debug_files;

/* `places` as in symbols.h; everything is in `arena`. NULL when memory ran out. */
struct debug_files *debug_files_create(const struct symbol_places *places, struct arena *arena);
void debug_files_destroy(struct debug_files *files);
/* What is wrong with debuginfod, if the user asked for it: a sentence, in the arena. NULL: nothing. */
const char *debug_files_trouble(const struct debug_files *files);

/* Opens the module's own file, or one of the same build-id that has its symbols. Otherwise fd is -1, and the
 * answer says what is wrong with the file at the recorded path. */
enum elf_problem debug_files_open(struct debug_files *files, const struct module *module,
                                  struct elf_file *file);

/* A separate debug file that is looked for. */
struct debug_wish {
    size_t id_bytes; /* 0: no build-id, the checksum has to do */
    const uint8_t *id;
    const char *link_name; /* NULL: unknown; a relative one is below the folder of `path`, among others */
    const char *path;      /* of the file that has the name: as recorded, or as found */
    bool has_checksum;
    uint32_t checksum;      /* of the whole file, as .gnu_debuglink has it */
    uint64_t device, inode; /* not this one, of which it is known that it is not enough */
};

/* False, and fd is -1: there is none. */
bool debug_files_open_separate(struct debug_files *files, const struct debug_wish *wish,
                               struct elf_file *file);

#endif
