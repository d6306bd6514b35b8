/*
 * The recordings of one `gpumemtrace run`: those that carry its token. A process that ended by itself wrote
 * its own reports; for one that was killed they are written here.
 */
#ifndef GPUMEMTRACE_SESSION_H
#define GPUMEMTRACE_SESSION_H

#define SESSION_TOKEN_BYTES 33 /* 32 hexadecimal digits and NUL; fits trace_header.session */

/* 0, or an errno when the kernel has no randomness to give. */
int session_create(char token[SESSION_TOKEN_BYTES]);

/* What the recordings' names match, for glob() and for a shell; NULL when there is no memory. free() it. */
char *session_names(const char *pattern);

/* Writes the missing reports of the session's recordings whose names match `pattern`, as GPUMEMTRACE_OUTPUT
 * has it, and shows each recording to `each`; `reports` is GPUMEMTRACE_REPORT or NULL. Problems are told on
 * stderr. */
void session_finish(const char *token, const char *pattern, const char *reports,
                    void (*each)(const char *recording, void *arg), void *arg);

#endif
