/*
 * Debug information over the network, by elfutils' client: only where the user set DEBUGINFOD_URLS, and only
 * where its library is installed, which is opened when first needed. The client keeps what it fetched, and
 * obeys its own variables (DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME, DEBUGINFOD_PROGRESS).
 */
#ifndef SYMBOLS_DEBUGINFOD_H
#define SYMBOLS_DEBUGINFOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct debuginfod {
    bool tried;
    void *library, *client; /* NULL: not to be had */
    unsigned asked;
};

enum debuginfod_kind { DEBUGINFOD_DEBUG_FILE, DEBUGINFOD_EXECUTABLE };

/* A descriptor, or -1: not asked, or not found. Begin with a zeroed struct. */
int debuginfod_fetch(struct debuginfod *of, enum debuginfod_kind kind, const uint8_t *id, size_t id_bytes);
/* Whether the user wants it, but the library is missing. */
bool debuginfod_is_missing(struct debuginfod *of);
void debuginfod_close(struct debuginfod *of);

#endif
