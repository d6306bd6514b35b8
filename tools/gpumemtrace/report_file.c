/* Writing the files beside a recording; see report_file.h. */
#include "report_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "destination.h"
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

void report_file_write(const struct rendering *rendering, const char *path, report_file_writer *writer)
{
    struct destination to;
    bool whole = path != NULL;
    if (path && destination_open_own(&to, path)) {
        output_limit(&to.out, rendering_limit(rendering));
        whole = writer(rendering, &to.out);
        destination_close(&to, whole);
    }
    if (!whole)
        complain(path ? path : "report", "not enough memory");
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
