/*
 * A JSON report, as `gpumemtrace diff` reads it. The bytes up to a NUL are the run before and those after it
 * the run after; without a NUL a run is compared with itself, and nothing may have changed.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"
#include "tools/gpumemtrace/diff.h"

static void write_diff(const struct diff *diff, void (*write)(const struct diff *, struct output *),
                       bool is_json)
{
    struct fuzz_file file = fuzz_file("", 0);
    struct output out;
    size_t size;
    output_init(&out, file.fd);
    write(diff, &out);
    require(output_flush(&out) == 0);
    char *text = fuzz_contents(file.fd, &size);
    fuzz_require_harmless(text, size);
    if (is_json) {
        json_t *json = json_loadb(text, size, 0, NULL);
        require(json);
        json_decref(json);
    }
    free(text);
    fuzz_file_close(&file);
}

static bool load(struct saved_report *report, const uint8_t *data, size_t size)
{
    struct fuzz_file file = fuzz_file(data, size);
    char error[512] = "";
    bool loaded = saved_report_load(report, file.path, NULL, error, sizeof error) == 0;
    require(loaded || error[0] != '\0');
    fuzz_file_close(&file);
    return loaded;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct diff diff;
    const uint8_t *end = memchr(data, 0, size);
    size_t first = end ? (size_t)(end - data) : size;
    bool same = end == NULL;
    memset(&diff, 0, sizeof diff);
    diff.before_count = 1;
    diff.before_paths[0] = "before";
    diff.after_path = "after";
    diff.top = 5;
    if (!load(&diff.before[0], data, first))
        return 0;
    if (load(&diff.after, same ? data : end + 1, same ? size : size - first - 1)) {
        require(comparison_make(&diff.comparison, diff.before, 1, &diff.after, 0) == 0);
        require(!same || diff.comparison.same);
        write_diff(&diff, diff_write_text, false);
        write_diff(&diff, diff_write_markdown, false);
        write_diff(&diff, diff_write_junit, false);
        write_diff(&diff, diff_write_json, true);
        comparison_release(&diff.comparison);
        saved_report_release(&diff.after);
    }
    saved_report_release(&diff.before[0]);
    return 0;
}
