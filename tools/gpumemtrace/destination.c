/* Where output goes (destination.h). */
#include "destination.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* What is not there yet, or is a plain file under this very name. */
static int open_named(struct destination *to, const char *path)
{
    struct stat there;
    bool is_there = lstat(path, &there) == 0;
    if (!is_there || S_ISREG(there.st_mode)) {
        int fd = open_aside(to, path);
        if (fd >= 0)
            fchmod(fd, is_there ? there.st_mode & 0777 : rights_of_new_files());
        if (fd >= 0)
            return fd;
    }
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

bool destination_open(struct destination *to, const char *path)
{
    to->path = path && strcmp(path, "-") != 0 ? path : NULL;
    to->aside = NULL;
    int fd = to->path ? open_named(to, path) : STDOUT_FILENO;
    output_init(&to->out, fd);
    return fd >= 0 || status_of(errno, path) == STATUS_GOOD;
}

bool destination_open_own(struct destination *to, const char *path)
{
    to->path = path;
    to->aside = NULL;
    int fd = open_aside(to, path);
    output_init(&to->out, fd);
    return fd >= 0 || status_of(errno, path) == STATUS_GOOD;
}

int destination_close(struct destination *to, bool whole)
{
    int error = output_flush(&to->out);
    if (to->path && close(to->out.fd) != 0 && error == 0)
        error = errno;
    if (to->aside && whole && error == 0 && rename(to->aside, to->path) != 0)
        error = errno;
    if (to->aside && (!whole || error != 0))
        unlink(to->aside);
    free(to->aside);
    to->aside = NULL;
    return status_of(error, to->path);
}

int finish_printing(struct output *out)
{
    return status_of(output_flush(out), NULL);
}
