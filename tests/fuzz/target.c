/* Files in memory, and failing, for fuzz targets (target.h). */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void fuzz_fail(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
    abort();
}

struct fuzz_file fuzz_file(const void *data, size_t size)
{
    struct fuzz_file file = {.fd = memfd_create("fuzz", MFD_CLOEXEC)};
    require(file.fd >= 0);
    require(size == 0 || write(file.fd, data, size) == (ssize_t)size);
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.fd);
    return file;
}

void fuzz_file_close(struct fuzz_file *file)
{
    close(file->fd);
    file->fd = -1;
}

char *fuzz_contents(int fd, size_t *size)
{
    struct stat status;
    require(fstat(fd, &status) == 0);
    *size = (size_t)status.st_size;
    char *text = malloc(*size + 1);
    require(text && pread(fd, text, *size, 0) == (ssize_t)*size);
    text[*size] = '\0';
    return text;
}
