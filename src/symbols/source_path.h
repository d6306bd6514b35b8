/* Source paths as a compiler wrote them, made shorter without changing what they name. */
#ifndef SYMBOLS_SOURCE_PATH_H
#define SYMBOLS_SOURCE_PATH_H

#define SOURCE_PATH_MAX 4096

/* "./a//b/../c.c" becomes "a/c.c". Returns `text`, or `path` itself when it is longer than SOURCE_PATH_MAX.
 */
const char *source_path(const char *path, char text[SOURCE_PATH_MAX]);

#endif
