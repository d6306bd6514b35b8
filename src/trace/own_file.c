/* A descriptor that may be closed under us (own_file.h). */
#include "trace/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where descriptors of a program rarely come to lie, the best first: it may have few. Never 0, 1 or 2: if
 * they are closed, who prints would print into our file. */
static const int lowest[] = {1000, 200, 50, 10, 3};

static int move_up(int fd)
{
    int moved = -1;
    for (size_t i = 0; i < sizeof lowest / sizeof *lowest && moved < 0; i++)
        moved = fcntl(fd, F_DUPFD_CLOEXEC, lowest[i]);
    if (moved < 0)
        return fd;
    close(fd);
    return moved;
}

static bool is_of(const struct own_file *file, int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && status.st_dev == file->device && status.st_ino == file->inode;
}

int own_file_create(struct own_file *file, const char *path)
{
    struct stat status;
    size_t length = strlen(path);
    file->is_open = false;
    if (length >= sizeof file->path)
        return ENAMETOOLONG;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    fd = move_up(fd);
    int error = fd <= STDERR_FILENO ? EMFILE : fstat(fd, &status) != 0 ? errno : 0;
    if (error != 0) {
        close(fd);
        unlink(path);
        return error;
    }
    memcpy(file->path, path, length + 1);
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->fd = fd;
    file->is_open = true;
    return 0;
}

int own_file_fd(struct own_file *file)
{
    if (file->is_open && is_of(file, file->fd))
        return file->fd;
    /* Not a FIFO's, which would wait: it may be anything that lies there now. */
    int fd = file->is_open ? open(file->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fd = move_up(fd);
        if (fd > STDERR_FILENO && is_of(file, fd))
            return file->fd = fd;
        close(fd);
    }
    errno = EBADF;
    return -1;
}

bool own_file_reopen(struct own_file *file)
{
    file->fd = -1;
    file->is_open = true;
    file->is_open = own_file_fd(file) >= 0;
    return file->is_open;
}

void own_file_close(struct own_file *file)
{
    if (file->is_open && is_of(file, file->fd))
        close(file->fd);
    file->is_open = false;
}
