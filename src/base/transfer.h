/* Reading and writing on where the kernel did only a part of it or was interrupted. Async-signal-safe; errno
 * is not kept. */
#ifndef BASE_TRANSFER_H
#define BASE_TRANSFER_H

#include <stddef.h>

/* How many of so many bytes were read: fewer at the end of the file, or when it cannot be read on. */
size_t transfer_read(int fd, void *to, size_t bytes);
/* Writes all of them: 0, or the errno that stopped it. */
int transfer_write(int fd, const void *from, size_t bytes);

#endif
