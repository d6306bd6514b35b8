/* The table of formats, and what they share; see export.h. */
#include "export/export.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "export/formats.h"
#include "report/words.h"

const struct export_format export_formats[] = {
#define AS_ROW(name, binary, write) {name, binary, write},
    EXPORT_FORMATS(AS_ROW)
#undef AS_ROW
};

const size_t export_format_count = sizeof(export_formats) / sizeof(*export_formats);

const char *const export_value_names[EXPORT_VALUE_COUNT] = {
#define AS_NAME(symbol, name, ...) name,
    EXPORT_VALUES(AS_NAME)
#undef AS_NAME
};

uint64_t export_value(const struct report_site *site, enum export_value value)
{
    switch (value) {
    case EXPORT_PEAK:
        return site->figures.bytes_at_peak;
    case EXPORT_LIVE:
        return site->figures.totals.live_bytes;
    case EXPORT_ALLOCATED:
        return site->figures.totals.allocated_bytes;
    default:
        return site->figures.totals.allocs;
    }
}

bool export_is_meant(const struct export_request *request, const struct report_site *site)
{
    return site->owned && site->layer == request->layer;
}

const char *export_space_name(enum space_kind kind, int device, char text[EXPORT_SPACE_MAX])
{
    struct words words = {0};
    words_space(&words, kind, device);
    words_cut(&words, EXPORT_SPACE_MAX);
    return strcpy(text, words.text);
}

const char *export_function(const struct named_frame *frame, char *text, size_t bytes)
{
    if (frame->function)
        snprintf(text, bytes, "%s", frame->function);
    else if (frame->module)
        snprintf(text, bytes, "%s+0x%llx", base_name(frame->module), (unsigned long long)frame->offset);
    else
        snprintf(text, bytes, "0x%llx", (unsigned long long)frame->offset);
    return text;
}

bool export_can_stand(uint32_t code)
{
    return code == '\n' || utf8_is_printable(code);
}

const char *export_text(const char *name, char *text, size_t bytes)
{
    size_t used = 0;
    while (*name) {
        uint32_t code;
        size_t length = utf8_next(name, &code);
        if (used + length >= bytes)
            break;
        if (export_can_stand(code))
            memcpy(text + used, name, length);
        else
            text[used] = '?';
        used += export_can_stand(code) ? length : 1;
        name += length;
    }
    text[used] = 0;
    return text;
}
