/* Bytes in the units the CUDA tools and PyTorch print, for whoever needs the text and not an output. */
#ifndef BASE_SIZE_H
#define BASE_SIZE_H

#include <stdint.h>

#define SIZE_TEXT_MAX 16

/* "1.50 GiB", "3.0 MiB", "512 B"; rounded half up. Returns `text`. */
const char *size_text(char text[SIZE_TEXT_MAX], uint64_t bytes);

#endif
