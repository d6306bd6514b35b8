/*
 * Reading a recording while its process writes it: each look goes on where the last one ended, so that it
 * costs what happened since. The process is not touched and need not be asked. The file is untrusted, as in
 * reader.h.
 */
#ifndef TRACE_FOLLOW_H
#define TRACE_FOLLOW_H

#include <stdbool.h>

#include "trace/reader.h"

struct follow;

/* NULL with a sentence in `error`. Nothing is read yet. */
struct follow *follow_open(const char *path, char *error, size_t error_bytes);
/* Reads what was written since. *anew (may be NULL): the recording was read from its beginning, and all that
 * was taken from it before is gone. 0, or -1 with a sentence; then only follow_close() is left to do. */
int follow_read(struct follow *follow, bool *anew, char *error, size_t error_bytes);
/* Good until the next reading. Its duration_ns is that of the newest event, and `end` of now. */
const struct recording *follow_recording(const struct follow *follow);
void follow_close(struct follow *follow);

#endif
