/*
 * A recording in every format of `gpumemtrace export`, as a page, and as a process of a job that `gpumemtrace
 * merge` adds up. What is JSON must be JSON, and nothing that is text may control a terminal. SQLite's
 * database is left out: it is slow to make, and takes the same names and figures.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "report/page/page.h"
#include "target.h"
#include "tools/gpumemtrace/merge.h"
#include "tools/gpumemtrace/rendering.h"

/* More than anything in a few kilobytes can need but by naming one long text again and again. */
#define OUTPUT_MAX (1 << 22)

/* What a page has around its data: nothing, so that the whole of it is JSON. */
const char page_before_data[1], page_after_data[1];
const uint32_t page_before_data_bytes, page_after_data_bytes;

static struct fuzz_file begin(struct output *out)
{
    struct fuzz_file file = fuzz_file("", 0);
    output_init(out, file.fd);
    output_limit(out, OUTPUT_MAX);
    return file;
}

static void end(struct fuzz_file *file, struct output *out, bool is_text, bool is_json)
{
    size_t size;
    if (output_flush(out) == 0) {
        char *text = fuzz_contents(file->fd, &size);
        if (is_text)
            fuzz_require_harmless(text, size);
        json_t *json = is_json ? json_loadb(text, size, 0, NULL) : NULL;
        require(!is_json || json);
        json_decref(json);
        free(text);
    }
    fuzz_file_close(file);
}

static void write_exports(const struct rendering *rendering, const char *path)
{
    struct output out;
    char error[512];
    for (size_t i = 0; i < export_format_count; i++) {
        const struct export_format *format = &export_formats[i];
        struct export_request request = {.report = rendering->report,
                                         .path = path,
                                         .layer = i % 2 ? LAYER_DRIVER : LAYER_FRAMEWORK,
                                         .value = (enum export_value)(i % EXPORT_VALUE_COUNT)};
        if (strcmp(format->name, "sqlite") == 0)
            continue;
        struct fuzz_file file = begin(&out);
        bool is_json = strcmp(format->name, "speedscope") == 0 || strcmp(format->name, "perfetto") == 0;
        bool is_table = strcmp(format->name, "csv") == 0; /* its lines end with CR too */
        if (format->write(&request, &out, error, sizeof error) == 0)
            end(&file, &out, !format->binary && !is_table, is_json);
        else
            fuzz_file_close(&file);
    }
    struct fuzz_file file = begin(&out);
    if (page_write(rendering->report, rendering->timeline, rendering->recording.events_since_ns, &out))
        end(&file, &out, true, true);
    else
        fuzz_file_close(&file);
}

static void write_job(const char *path)
{
    static struct merge merge;
    struct saved_report report;
    struct output out;
    char error[512];
    memset(&merge, 0, sizeof merge);
    for (int i = 0; i < 2; i++)
        if (saved_report_load(&report, path, NULL, error, sizeof error) == 0) {
            job_add(&merge.job, &report);
            saved_report_release(&report);
        }
    if (merge.job.process_count > 0 && job_finish(&merge.job) == 0) {
        struct fuzz_file text = begin(&out);
        merge_write_text(&merge, &out);
        end(&text, &out, true, false);
        struct fuzz_file json = begin(&out);
        merge_write_json(&merge, &out);
        end(&json, &out, true, true);
    }
    job_release(&merge.job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_file file = fuzz_recording(data, size);
    struct rendering rendering;
    char error[512] = "";
    if (rendering_open_for_page(&rendering, file.path, NULL, NULL, "recording.gmt", error, sizeof error) ==
        0) {
        write_exports(&rendering, file.path);
        rendering_close(&rendering);
        write_job(file.path);
    }
    fuzz_file_close(&file);
    return 0;
}
