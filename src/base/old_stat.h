/*
 * Included before everything else in what other people's programs load, so that it loads where the C library
 * is older than where it was built: up to glibc 2.32, stat, fstat and lstat were no functions of libc.so.6
 * but calls of __xstat, __fxstat and __lxstat, which it still has (sources: glibc's NEWS for 2.33, and
 * <bits/stat.h> of 2.32).
 */
#ifndef BASE_OLD_STAT_H
#define BASE_OLD_STAT_H

#include <sys/stat.h>

#if defined(__x86_64__) || defined(__aarch64__)

#ifdef __x86_64__
#define OLD_STAT_VERSION 1
#else
#define OLD_STAT_VERSION 0
#endif

int __xstat(int version, const char *path, struct stat *status);
int __fxstat(int version, int fd, struct stat *status);
int __lxstat(int version, const char *path, struct stat *status);

#define stat(path, status)  __xstat(OLD_STAT_VERSION, path, status)
#define fstat(fd, status)   __fxstat(OLD_STAT_VERSION, fd, status)
#define lstat(path, status) __lxstat(OLD_STAT_VERSION, path, status)

#endif

#endif
