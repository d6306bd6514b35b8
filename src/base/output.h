/*
 * Buffered text output to a file descriptor, used by every report. Works without stdio and without malloc,
 * since the library writes reports while the traced program is being torn down. Errors stick: write on, ask
 * once at the end.
 */
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

struct output {
    int fd;
    int error;     /* the first errno, 0 when all went well */
    uint64_t left; /* bytes that may be written still; beyond, the error is EFBIG */
    size_t used;
    char buffer[16384];
};

/* Without a limit. */
void output_init(struct output *out, int fd);
void output_limit(struct output *out, uint64_t bytes);
void output_bytes(struct output *out, const char *bytes, size_t count);
void output_text(struct output *out, const char *text);
void output_format(struct output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD; what a terminal must not get
 * (utf8_is_printable) is escaped. NULL gives null. */
void output_json_string(struct output *out, const char *text);
/* The same for inside a <script> of an HTML page: nothing in it can end the script or begin a comment, and no
 * line separator is bare. */
void output_json_string_in_html(struct output *out, const char *text);
/* Text for a terminal: control characters, and bytes that are not UTF-8, are shown as \xNN. */
void output_safe(struct output *out, const char *text);
/* Writes what is left. Returns 0 or the first errno. */
int output_flush(struct output *out);

#endif
