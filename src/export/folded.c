/*
 * Folded stacks: a line for each site, frames outermost first with ';' between them, a space and a number. A
 * semicolon or a line's end cannot be written in a frame; they become ':' and a space.
 */
#include "base/utf8.h"
#include "export/formats.h"

static void write_frame(struct output *out, const char *name)
{
    while (*name) {
        uint32_t code;
        size_t length = utf8_next(name, &code);
        if (code == ';')
            output_text(out, ":");
        else if (code == UTF8_INVALID || !utf8_is_printable(code))
            output_text(out, code == '\n' || code == '\t' ? " " : "?");
        else
            output_bytes(out, name, length);
        name += length;
    }
}

static void write_stack(const struct report *report, const struct report_site *site, struct output *out)
{
    char text[EXPORT_NAME_MAX], space[EXPORT_SPACE_MAX];
    size_t count = 0;
    const struct named_frame *const *frames = report_stack(report, site->stack, &count);
    write_frame(out, export_space_name(site->key->space, site->key->device, space));
    for (size_t i = count; i-- > 0;) {
        output_text(out, ";");
        write_frame(out, export_function(frames[i], text, sizeof(text)));
        if (frames[i]->kind == FRAME_PYTHON && frames[i]->file) {
            output_text(out, " (");
            write_frame(out, base_name(frames[i]->file));
            output_format(out, ":%d)", frames[i]->line);
        }
    }
    if (count == 0) {
        output_text(out, ";");
        write_frame(out, site->api);
    }
}

int export_folded(const struct export_request *request, struct output *out, char *error, size_t error_bytes)
{
    (void)error;
    (void)error_bytes;
    for (size_t i = 0; i < request->report->site_count; i++) {
        const struct report_site *site = &request->report->sites[i];
        uint64_t value = export_value(site, request->value);
        if (!export_is_meant(request, site) || value == 0)
            continue;
        write_stack(request->report, site, out);
        output_format(out, " %llu\n", (unsigned long long)value);
    }
    return 0;
}
