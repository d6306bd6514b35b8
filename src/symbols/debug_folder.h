/*
 * One folder of ELF files whose names do not matter: which of them has a build-id. It is listed once, when it
 * is first asked, and not what is in its folders.
 */
#ifndef SYMBOLS_DEBUG_FOLDER_H
#define SYMBOLS_DEBUG_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct debug_folder {
    const char *path; /* absolute */
    bool listed;
    struct list files;
};

void debug_folder_init(struct debug_folder *folder, const char *path, struct arena *arena);
/* The name of the file with that build-id, rather of one with symbols; NULL: there is none. */
const char *debug_folder_find(struct debug_folder *folder, const uint8_t *id, size_t id_bytes);

#endif
