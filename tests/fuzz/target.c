/* Files in memory, recordings among them, and failing, for fuzz targets (target.h). */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"
#include "gpumemtrace/trace.h"

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

struct fuzz_file fuzz_recording(const uint8_t *data, size_t size)
{
    union {
        struct trace_header header;
        uint8_t bytes[TRACE_HEADER_SIZE];
    } page = {.header = {.magic = TRACE_MAGIC,
                         .version = TRACE_VERSION,
                         .header_size = TRACE_HEADER_SIZE,
                         .committed = TRACE_HEADER_SIZE + size,
                         .state = TRACE_EXITED,
                         .pid = 4711,
                         .start_realtime_ns = UINT64_C(1700000000000000000),
                         .end_ns = 9000}};
    if (size >= sizeof TRACE_MAGIC && memcmp(data, TRACE_MAGIC, sizeof TRACE_MAGIC) == 0)
        return fuzz_file(data, size);
    struct fuzz_file file = fuzz_file(&page, sizeof page);
    require(write(file.fd, data, size) == (ssize_t)size);
    return file;
}

void fuzz_require_harmless(const char *text, size_t size)
{
    require(strlen(text) == size);
    for (uint32_t code; *text; text += utf8_next(text, &code)) {
        utf8_next(text, &code);
        require(code == '\n' || utf8_is_printable(code));
    }
}
