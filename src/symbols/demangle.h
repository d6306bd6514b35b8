/* Names of functions as their authors wrote them: C++ (Itanium ABI), Rust and C. No malloc, no stdio. */
#ifndef SYMBOLS_DEMANGLE_H
#define SYMBOLS_DEMANGLE_H

#include <stddef.h>

/* Longer names are not demangled: it needs stack in proportion, some 70 bytes a byte. */
#define DEMANGLE_INPUT_MAX 8192

/* Writes the readable form, NUL-terminated, cut to `size`, without marks of clones, and returns its length.
 * 0, and an empty text: the name is not a mangled one. */
size_t demangle(const char *name, char *text, size_t size);
/* The same, and a name that is not mangled is taken as it is, without marks of clones. */
size_t readable_name(const char *name, char *text, size_t size);

#endif
