/*
 * The sites as comma-separated values, by RFC 4180: a header, lines end with CR and LF, and what has commas,
 * quotes or line ends in it stands in quotes. What is not UTF-8, or could control a terminal, becomes U+FFFD.
 * A spreadsheet takes what begins like a formula for one: such a text gets an apostrophe in front.
 */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "export/formats.h"

static void write_text(struct output *out, const char *text)
{
    bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (quoted)
        output_text(out, "\"");
    if (*text && strchr("=+-@", *text))
        output_text(out, "'");
    while (*text) {
        uint32_t code;
        size_t length = utf8_next(text, &code);
        if (export_can_stand(code))
            output_bytes(out, text, length);
        else
            output_text(out, "\xef\xbf\xbd");
        if (code == '"')
            output_text(out, "\"");
        text += length;
    }
    if (quoted)
        output_text(out, "\"");
}

static void write_number(struct output *out, uint64_t value)
{
    output_format(out, ",%llu", (unsigned long long)value);
}

#define STACK_TEXT_MAX 65536

/* Outermost first, "; " between frames. */
static void write_stack(const struct report *report, const struct report_site *site, struct output *out)
{
    char text[STACK_TEXT_MAX], name[EXPORT_NAME_MAX];
    size_t count = 0, used = 0;
    const struct named_frame *const *frames = report_stack(report, site->stack, &count);
    text[0] = 0;
    for (size_t i = count; i-- > 0;) {
        const struct named_frame *frame = frames[i];
        size_t room = sizeof(text) - used;
        export_function(frame, name, sizeof(name));
        int wanted = frame->file ? snprintf(text + used, room, "%s%s (%s:%d)", used ? "; " : "", name,
                                            frame->file, frame->line)
                                 : snprintf(text + used, room, "%s%s", used ? "; " : "", name);
        if (wanted < 0 || (size_t)wanted >= room)
            break;
        used += (size_t)wanted;
    }
    write_text(out, text);
}

static void write_site(const struct report *report, uint32_t id, struct output *out)
{
    const struct report_site *site = &report->sites[id];
    const struct totals *totals = &site->figures.totals;
    char title[TITLE_MAX];
    output_format(out, "%u,", (unsigned)id);
    write_text(out, report_site_title(report, id, TITLE_FUNCTION, title, sizeof(title)));
    output_format(out, ",%s,%s,", layer_names[site->layer], space_infos[site->key->space].name);
    if (site->key->device >= 0)
        output_format(out, "%d", site->key->device);
    output_format(out, ",%s,", family_infos[site->key->family].name);
    write_text(out, site->api);
    const uint64_t figures[] = {totals->allocs,
                                totals->frees,
                                totals->allocated_bytes,
                                totals->live_bytes,
                                totals->live_blocks,
                                site->figures.bytes_at_peak,
                                site->figures.blocks_at_peak,
                                site->figures.failed,
                                site->figures.first_time_ns,
                                site->figures.last_time_ns,
                                site->suppressed};
    for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++)
        write_number(out, figures[i]);
    output_text(out, ",");
    write_stack(report, site, out);
    output_text(out, "\r\n");
}

int export_csv(const struct export_request *request, struct output *out, char *error, size_t error_bytes)
{
    (void)error;
    (void)error_bytes;
    output_text(
        out, "site,title,layer,space,device,family,api,allocs,frees,allocated_bytes,live_bytes,live_blocks,"
             "bytes_at_peak,blocks_at_peak,failed,first_time_ns,last_time_ns,suppressed,stack\r\n");
    for (uint32_t i = 0; i < request->report->site_count; i++)
        write_site(request->report, i, out);
    return 0;
}
