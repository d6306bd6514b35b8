/*
 * A recording, as `gpumemtrace report` reads it, through the ledger to both reports. The bytes are a whole
 * file when they begin like one; otherwise they are its records, and get a good header, so that the fuzzer
 * need not find that out. The JSON must be JSON, and neither output may hold what could control a terminal.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "gpumemtrace/trace.h"
#include "target.h"
#include "tools/gpumemtrace/rendering.h"

static struct fuzz_file recording_of(const uint8_t *data, size_t size)
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

static void require_harmless(const char *text, size_t size)
{
    require(strlen(text) == size);
    for (uint32_t code; *text; text += utf8_next(text, &code)) {
        utf8_next(text, &code);
        require(code == '\n' || utf8_is_printable(code));
    }
}

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
        require_harmless(text, size);
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
    struct fuzz_file file = recording_of(data, size);
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
