/*
 * A recording, as `gpumemtrace report` reads it, through the ledger to both reports. The JSON must be JSON,
 * and neither output may hold what could control a terminal.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"
#include "tools/gpumemtrace/rendering.h"

static void write_all(const struct report *report)
{
    static const struct report_text_options options[] = {
        {0}, {.full = true}, {.native = true}, {.full = true, .native = true}};
    for (size_t i = 0; i <= sizeof options / sizeof *options; i++) {
        struct fuzz_file file = fuzz_file("", 0);
        struct output out;
        size_t size;
        output_init(&out, file.fd);
        if (i < sizeof options / sizeof *options)
            report_write_text(report, &options[i], &out);
        else
            report_write_json(report, &out);
        require(output_flush(&out) == 0);
        char *text = fuzz_contents(file.fd, &size);
        fuzz_require_harmless(text, size);
        if (i == sizeof options / sizeof *options) {
            json_t *json = json_loadb(text, size, 0, NULL);
            require(json);
            json_decref(json);
        }
        free(text);
        fuzz_file_close(&file);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_file file = fuzz_recording(data, size);
    struct rendering rendering;
    char error[512] = "";
    if (rendering_open(&rendering, file.path, NULL, NULL, "recording.gmt", error, sizeof error) == 0) {
        write_all(rendering.report);
        rendering_close(&rendering);
    } else {
        require(error[0] != '\0' && strchr(error, '\n') == NULL);
    }
    fuzz_file_close(&file);
    return 0;
}
