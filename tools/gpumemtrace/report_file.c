/* Writing the files beside a recording; see report_file.h. */
#include "report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "gpumemtrace/trace.h"

bool has_suffix(const char *path, const char *suffix)
{
    size_t length = strlen(path), tail = strlen(suffix);
    return length > tail && strcmp(path + length - tail, suffix) == 0;
}

char *report_file_beside(const char *recording, const char *suffix)
{
    char *path;
    int stem = (int)(strlen(recording) - strlen(TRACE_SUFFIX));
    return asprintf(&path, "%.*s%s", stem, recording, suffix) < 0 ? NULL : path;
}

/* 0 or an errno. */
static int write_whole(const struct rendering *rendering, const char *path, report_file_writer *writer)
{
    struct output out;
    char *temporary;
    if (asprintf(&temporary, "%s.part", path) < 0)
        return ENOMEM;
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0) {
        output_init(&out, fd);
        output_limit(&out, rendering_limit(rendering));
        error = writer(rendering, &out) ? output_flush(&out) : ENOMEM;
        if (close(fd) != 0 && error == 0)
            error = errno;
        if (error == 0 && rename(temporary, path) != 0)
            error = errno;
        if (error != 0)
            unlink(temporary);
    }
    free(temporary);
    return error;
}

void report_file_write(const struct rendering *rendering, const char *path, report_file_writer *writer)
{
    int error = path ? write_whole(rendering, path, writer) : ENOMEM;
    if (error)
        complain(path ? path : "report", "%s", strerror(error));
}

static bool write_page(const struct rendering *rendering, struct output *out)
{
    return page_write(rendering->report, rendering->timeline, rendering->recording.events_since_ns, out);
}

void report_file_page(const char *recording)
{
    struct rendering rendering;
    char error[512];
    if (rendering_open_for_page(&rendering, recording, NULL, NULL, recording, error, sizeof(error)) != 0) {
        complain(recording, "%s", error);
        return;
    }
    char *path = report_file_beside(recording, ".html");
    report_file_write(&rendering, path, write_page);
    free(path);
    rendering_close(&rendering);
}
