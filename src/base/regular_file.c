/* Opening regular files, and nothing else; see regular_file.h. */
#include "base/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* O_NONBLOCK: opening a FIFO waits for its other end otherwise. */
#define READING (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

/* Of Linux 5.6; older headers do not have them. */
#define OPENAT2         437
#define RESOLVE_IN_ROOT 0x10

struct how {
    uint64_t flags, mode, resolve;
};

static int open_joined(const char *root, const char *path, int flags)
{
    char whole[PATH_MAX];
    if (snprintf(whole, sizeof whole, "%s/%s", root, path) < (int)sizeof whole)
        return open(whole, flags);
    errno = ENAMETOOLONG;
    return -1;
}

static int open_in(const char *root, const char *path, int flags)
{
    struct how how = {.flags = (uint64_t)flags, .resolve = RESOLVE_IN_ROOT};
    int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    int fd = (int)syscall(OPENAT2, folder, path, &how, sizeof how);
    int error = errno;
    close(folder);
    if (fd < 0 && (error == ENOSYS || error == EPERM)) /* an old kernel; a sandbox that does not know it */
        return open_joined(root, path, flags);
    errno = error;
    return fd;
}

/* Their files are regular only by name: reading one can take something away (kernel messages), wait, or not
 * end. Numbers of <linux/magic.h>: proc, sysfs, debugfs, tracefs, securityfs, cgroup, cgroup2, selinuxfs,
 * efivarfs, bpf, pstore. */
static const unsigned long not_of_files[] = {0x9fa0,     0x62656572, 0x64626720, 0x74726163,
                                             0x73636673, 0x27e0eb,   0x63677270, 0xf97cff8c,
                                             0xde5e81e4, 0xcafe4a11, 0x6165676c};

static int is_of_files(int fd)
{
    struct statfs system;
    if (fstatfs(fd, &system) != 0)
        return 1;
    for (size_t i = 0; i < sizeof not_of_files / sizeof *not_of_files; i++)
        if ((unsigned long)system.f_type == not_of_files[i])
            return 0;
    return 1;
}

/* A descriptor of a regular file, or -1. */
static int open_checked(const char *root, const char *path, int flags)
{
    struct stat info;
    int fd = root ? open_in(root, path, flags) : open(path, flags);
    if (fd < 0)
        return -1;
    int error = fstat(fd, &info) != 0 ? errno : S_ISREG(info.st_mode) && is_of_files(fd) ? 0 : EINVAL;
    if (error == 0)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

int regular_file_open(const char *root, const char *path)
{
    if (path[0] != '/') {
        errno = EINVAL;
        return -1;
    }
    /* Opening is a deed for some devices (a watchdog starts): with O_PATH it is none. */
    int look = open_checked(root, path, O_PATH | O_CLOEXEC);
    if (look < 0)
        return -1;
    close(look);
    return open_checked(root, path, READING);
}
