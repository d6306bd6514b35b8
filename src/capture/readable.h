/* Whether memory can be read, for pointers that may not be any. Asks the kernel: slow, and changes errno. */
#ifndef CAPTURE_READABLE_H
#define CAPTURE_READABLE_H

#include <stdbool.h>
#include <stddef.h>

bool is_readable(const void *start, size_t bytes);

#endif
