/* Whole reads and writes (transfer.h). */
#include "base/transfer.h"

#include <errno.h>
#include <unistd.h>

size_t transfer_read(int fd, void *to, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t got = read(fd, (char *)to + done, bytes - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return done;
}

int transfer_write(int fd, const void *from, size_t bytes)
{
    const char *at = from;
    while (bytes > 0) {
        ssize_t sent = write(fd, at, bytes);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return sent < 0 ? errno : EIO;
        at += sent;
        bytes -= (size_t)sent;
    }
    return 0;
}
