/* Where output goes (destination.h). */
#include "destination.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/transfer.h"
#include "command.h"

static int status_of(int error, const char *path)
{
    if (error == 0)
        return STATUS_GOOD;
    complain(path ? path : "standard output", "%s", strerror(error));
    return STATUS_UNUSABLE;
}

/* A name that nothing has: two writers of one file do not meet, and nobody else's file is written to. */
static int open_aside(struct destination *to, const char *path)
{
    if (asprintf(&to->aside, "%s.partXXXXXX", path) < 0) {
        to->aside = NULL;
        errno = ENOMEM;
        return -1;
    }
    int fd = mkostemp(to->aside, O_CLOEXEC);
    if (fd < 0) {
        int error = errno;
        free(to->aside);
        to->aside = NULL;
        errno = error;
    }
    return fd;
}

static mode_t rights_of_new_files(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

#define LINKS_MAX 40 /* as many as the kernel follows */

static bool is_of_proc(const char *path)
{
    struct statfs system;
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    bool is = fd >= 0 && fstatfs(fd, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
    if (fd >= 0)
        close(fd);
    return is;
}

/* The name at the end of the links: what is to be replaced there. NULL where it is no name of its own, as
 * /dev/stdout, which leads to an open file by /proc/self/fd, and where it could not be found out. */
static char *follow_links(const char *path)
{
    char *name = strdup(path), text[PATH_MAX];
    for (int i = 0; name && i < LINKS_MAX; i++) {
        ssize_t length = readlink(name, text, sizeof(text));
        if (length < 0)
            return name;
        if (length == (ssize_t)sizeof(text) || is_of_proc(name))
            break;
        const char *slash = text[0] == '/' ? NULL : strrchr(name, '/');
        char *next;
        if (asprintf(&next, "%.*s%.*s", slash ? (int)(slash + 1 - name) : 0, name, (int)length, text) < 0)
            break;
        free(name);
        name = next;
    }
    free(name);
    return NULL;
}

/* What is not there yet, and plain files that would have been written to in place: those of one name. */
static bool can_be_replaced(const char *name, struct stat *there, bool *is_there)
{
    *is_there = lstat(name, there) == 0;
    return !*is_there || (S_ISREG(there->st_mode) && there->st_nlink == 1 && access(name, W_OK) == 0);
}

/* Owner, group and rights of the file that it will replace. */
static bool take_rights(int fd, const struct stat *there)
{
    struct stat own;
    if (fstat(fd, &own) != 0)
        return false;
    bool is_same = own.st_uid == there->st_uid && own.st_gid == there->st_gid;
    return (is_same || fchown(fd, there->st_uid, there->st_gid) == 0) &&
           fchmod(fd, there->st_mode & 0777) == 0;
}

static void drop_aside(struct destination *to)
{
    if (to->aside)
        unlink(to->aside);
    free(to->aside);
    free(to->target);
    to->aside = to->target = NULL;
}

static int open_named(struct destination *to, const char *path)
{
    struct stat there;
    bool is_there;
    to->target = follow_links(path);
    if (to->target && can_be_replaced(to->target, &there, &is_there)) {
        int fd = open_aside(to, to->target);
        if (fd >= 0 && (is_there ? take_rights(fd, &there) : fchmod(fd, rights_of_new_files()) == 0))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    drop_aside(to);
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

bool destination_open(struct destination *to, const char *path)
{
    to->path = path && strcmp(path, "-") != 0 ? path : NULL;
    to->aside = to->target = NULL;
    int fd = to->path ? open_named(to, path) : STDOUT_FILENO;
    output_init(&to->out, fd);
    return fd >= 0 || status_of(errno, path) == STATUS_GOOD;
}

bool destination_open_own(struct destination *to, const char *path)
{
    to->path = path;
    to->aside = to->target = NULL;
    int fd = open_aside(to, path);
    output_init(&to->out, fd);
    return fd >= 0 || status_of(errno, path) == STATUS_GOOD;
}

/* 0 or an errno. */
static int copy(const char *from, const char *name)
{
    char part[1 << 16];
    int source = open(from, O_RDONLY | O_CLOEXEC);
    int fd = source >= 0 ? open(name, O_WRONLY | O_TRUNC | O_CLOEXEC) : -1;
    int error = fd >= 0 ? 0 : errno;
    ssize_t got = 0;
    while (error == 0 && (got = read(source, part, sizeof(part))) != 0)
        error = got < 0 ? errno : transfer_write(fd, part, (size_t)got);
    if (fd >= 0 && close(fd) != 0 && error == 0)
        error = errno;
    if (source >= 0)
        close(source);
    return error;
}

/* What is mounted on a name, or lies in a folder that is not ours to change, may be written to all the same.
 */
static int put_in_place(const struct destination *to)
{
    if (rename(to->aside, to->target ? to->target : to->path) == 0)
        return 0;
    int error = errno;
    bool is_held = error == EBUSY || error == EPERM || error == EACCES;
    return to->target && is_held ? copy(to->aside, to->target) : error;
}

int destination_close(struct destination *to, bool whole)
{
    int error = output_flush(&to->out);
    if (to->path && close(to->out.fd) != 0 && error == 0)
        error = errno;
    if (to->aside && whole && error == 0)
        error = put_in_place(to);
    drop_aside(to); /* after a rename, that name is gone */
    return status_of(error, to->path);
}

int finish_printing(struct output *out)
{
    return status_of(output_flush(out), NULL);
}
