/*
 * The gates of a diff as JUnit's XML: a test case each, so that a build server lists them among its tests.
 * Names come from recordings: nothing goes into the file that XML 1.0 does not allow.
 */
#include "base/utf8.h"
#include "diff.h"

static const char *entity(uint32_t code)
{
    switch (code) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    case '\'':
        return "&apos;";
    default:
        return NULL;
    }
}

/* For the inside of an attribute. What cannot be printed, XML cannot hold either, or shows as another. */
static void write_escaped(struct output *out, const char *text)
{
    while (*text) {
        uint32_t code;
        size_t length = utf8_next(text, &code);
        if (code == UTF8_INVALID || code == 0xfffe || code == 0xffff || !utf8_is_printable(code))
            for (size_t i = 0; i < length; i++)
                output_format(out, "\\x%02X", (unsigned)(unsigned char)text[i]);
        else if (entity(code))
            output_text(out, entity(code));
        else
            output_bytes(out, text, length);
        text += length;
    }
}

static void write_case(struct output *out, const struct diff *diff, size_t index)
{
    const struct gate_result *result = &diff->gates.results[index];
    output_text(out, "  <testcase classname=\"gpumemtrace\" name=\"");
    write_escaped(out, diff->gates.gates[index].text);
    if (result->failed) {
        output_text(out, "\">\n    <failure message=\"");
        write_escaped(out, result->why);
        output_text(out, "\"/>\n  </testcase>\n");
    } else {
        output_text(out, "\">\n    <system-out>");
        write_escaped(out, result->why);
        output_text(out, "</system-out>\n  </testcase>\n");
    }
}

void diff_write_junit(const struct diff *diff, struct output *out)
{
    output_format(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<testsuite name=\"gpumemtrace\" tests=\"%zu\" failures=\"%zu\" errors=\"0\">\n",
                  diff->gates.count, diff->failed);
    for (size_t i = 0; i < diff->gates.count; i++)
        write_case(out, diff, i);
    output_text(out, "</testsuite>\n");
}
