/*
 * Reading UTF-8 that nobody vouches for: names in a recording can hold any bytes, and go to terminals and
 * JSON.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_INVALID UINT32_MAX

/* Bytes of the character at `text`, which must not be at its terminating NUL, and its code point. A byte that
 * begins no well-formed character (RFC 3629: overlong forms and surrogates are none) is one character,
 * UTF8_INVALID. */
size_t utf8_next(const char *text, uint32_t *code);

/* False for what could move a terminal's cursor, hide, or reorder the text around it. */
bool utf8_is_printable(uint32_t code);

/* Terminal columns of a printable character: 0, 1 or 2. */
int utf8_columns(uint32_t code);

#endif
