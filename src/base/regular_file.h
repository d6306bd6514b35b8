/*
 * Opens files that a recording names, and a recording may be anyone's: only regular files are ever opened for
 * reading, and none of the kernel's own (/proc, /sys), so that no device is touched, no FIFO waited for, and
 * nothing changed by being read.
 */
#ifndef BASE_REGULAR_FILE_H
#define BASE_REGULAR_FILE_H

/* A descriptor, or -1 with errno: EINVAL when it is no regular file, or `path` is not absolute. `root`: NULL,
 * or a folder that stands for "/": nothing outside it is opened, links are followed as by a process that has
 * it as its root (before Linux 5.6: as they are). No malloc. */
int regular_file_open(const char *root, const char *path);

#endif
