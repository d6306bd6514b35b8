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
    bool tried, is_missing; /* the library */
    void *library, *client; /* NULL: not to be had */
    unsigned asked;
    int error; /* an errno: no server answered, and none is asked again */
};

enum debuginfod_kind { DEBUGINFOD_DEBUG_FILE, DEBUGINFOD_EXECUTABLE };

/* A descriptor, or -1: not asked, or not found. Begin with a zeroed struct. */
int debuginfod_fetch(struct debuginfod *of, enum debuginfod_kind kind, const uint8_t *id, size_t id_bytes);
/* Why it was of no use, as a sentence; NULL: it was, or was not wanted. */
#define DEBUGINFOD_TROUBLE_MAX 256
const char *debuginfod_trouble(const struct debuginfod *of, char text[DEBUGINFOD_TROUBLE_MAX]);
void debuginfod_close(struct debuginfod *of);

#endif
