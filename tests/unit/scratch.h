/* Files of a test: a folder of this process's own that is gone when it exits, and bytes in and out of it. */
#ifndef UNIT_SCRATCH_H
#define UNIT_SCRATCH_H

#include <stddef.h>

/* The folder; made at the first call, removed at exit() of the process that made it. */
const char *scratch_folder(void);
/* FOLDER/name; good until the eighth next call. */
const char *scratch_path(const char *name);

void scratch_write(const char *path, const void *bytes, size_t count);
/* Fails the test unless the whole file fits. Returns its size. */
size_t scratch_read(const char *path, void *bytes, size_t max);

/* Runs `child` in a forked process, waits, and returns waitpid()'s status. A failed assertion there prints
 * what failed and ends the child by SIGABRT, so whoever expects 0 sees it. */
#define CHILD_SKIPPED 77
int in_child(void (*child)(void *), void *arg);

#endif
