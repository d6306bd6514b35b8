/* C++ (Itanium ABI) and Rust names as their authors wrote them. No malloc, no stdio. */
#ifndef SYMBOLS_DEMANGLE_H
#define SYMBOLS_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Longer names are left as they are: demangling needs stack in proportion. */
#define DEMANGLE_INPUT_MAX 8192

/* Writes the readable form, NUL-terminated and cut to `size`, and returns its length. 0, and an empty text:
 * the name is not a mangled one. */
size_t demangle(const char *name, char *text, size_t size);

#endif
