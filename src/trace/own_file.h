/*
 * A file of ours in a process that is not. The program may close all descriptors, as daemons do, and its next
 * open() then returns our number: whatever we did to it would be done to the program's file. So its own low
 * numbers, standard input and output among them, are left to the program, and every use asks first whether
 * the descriptor is still that of our file. Not locked.
 */
#ifndef TRACE_OWN_FILE_H
#define TRACE_OWN_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct own_file {
    bool is_open; /* false in zeroed memory, too */
    int fd;       /* for own_file_fd() alone */
    dev_t device;
    ino_t inode;
    char path[PATH_MAX];
};

/* Creates `path` (it must not exist; mode 0600; links are not followed). 0 or an errno; then no file is
 * left. */
int own_file_create(struct own_file *file, const char *path);
/* A descriptor to use at once, opened anew where it was closed under us; -1 and EBADF when the file cannot be
 * had any more. */
int own_file_fd(struct own_file *file);
/* After own_file_close(): the file it was, if that still lies where it did. False when not. */
bool own_file_reopen(struct own_file *file);
/* Closes what is still ours. */
void own_file_close(struct own_file *file);

#endif
