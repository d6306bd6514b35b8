/* Reads a Python str object as UTF-8 without calling Python. */
#ifndef CAPTURE_PYTHON_NAMES_H
#define CAPTURE_PYTHON_NAMES_H

#include <stddef.h>

#include "capture/python_layout.h"

/* Copies `text`, a borrowed PyUnicodeObject or NULL, to `buffer`, cut between characters where it does not
 * fit and always NUL-terminated. Bytes that Python could not decode (PEP 383) come out as they were; what
 * else is not UTF-8, and NUL, becomes U+FFFD. */
void python_text(const struct python_layout *layout, const void *text, char *buffer, size_t bytes);

#endif
