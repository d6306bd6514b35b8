/*
 * Buffered output without stdio, malloc or locale. Numbers with a fraction are made from integers: printf's
 * %f follows the traced program's setlocale(), and a comma would break the JSON.
 */
#include "base/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/transfer.h"
#include "base/utf8.h"

static void send_all(struct output *out, const char *bytes, size_t count)
{
    if (count > out->left && !out->error)
        out->error = EFBIG;
    out->left -= count > out->left ? 0 : count;
    if (!out->error)
        out->error = transfer_write(out->fd, bytes, count);
}

static void send_buffer(struct output *out)
{
    send_all(out, out->buffer, out->used);
    out->used = 0;
}

void output_init(struct output *out, int fd)
{
    out->fd = fd;
    out->error = 0;
    out->left = UINT64_MAX;
    out->used = 0;
}

void output_limit(struct output *out, uint64_t bytes)
{
    out->left = bytes;
}

void output_bytes(struct output *out, const char *bytes, size_t count)
{
    if (count > sizeof out->buffer - out->used) {
        send_buffer(out);
        if (count > sizeof out->buffer) {
            send_all(out, bytes, count);
            return;
        }
    }
    memcpy(out->buffer + out->used, bytes, count);
    out->used += count;
}

void output_text(struct output *out, const char *text)
{
    output_bytes(out, text, strlen(text));
}

void output_format(struct output *out, const char *format, ...)
{
    for (bool again = false;; again = true) {
        size_t room = sizeof out->buffer - out->used;
        va_list arguments;
        va_start(arguments, format);
        int wanted = vsnprintf(out->buffer + out->used, room, format, arguments);
        va_end(arguments);
        if (wanted < 0) {
            out->error = out->error ? out->error : EINVAL;
            return;
        }
        if ((size_t)wanted < room || again) { /* longer than the whole buffer: cut */
            out->used += (size_t)wanted < room ? (size_t)wanted : room - 1;
            return;
        }
        send_buffer(out);
    }
}

/* How many bytes from `text` need no escape in JSON. Eight at a time: reports are mostly names. */
static size_t plain_run(const char *text, size_t length)
{
    const uint64_t ones = 0x0101010101010101, high = 0x8080808080808080;
    size_t at = 0;
    for (; at + 8 <= length; at += 8) {
        uint64_t word;
        memcpy(&word, text + at, 8);
        uint64_t quote = word ^ ones * '"', back = word ^ ones * '\\', del = word ^ ones * 0x7f;
        /* The high bit of a byte is set where it is under 0x20, '"', '\\' or 0x7f; or, exactly, over that. */
        uint64_t special = (word - ones * 0x20) | (quote - ones) | (back - ones) | (del - ones) | word;
        if (special & high)
            break;
    }
    for (; at < length; at++) {
        unsigned char c = (unsigned char)text[at];
        if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
            break;
    }
    return at;
}

static void json_escape(struct output *out, uint32_t code, const char *text, size_t length)
{
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (const char *pair = named; code < 0x80 && *pair; pair += 2) {
        if ((unsigned char)pair[0] == code) {
            output_format(out, "\\%c", pair[1]);
            return;
        }
    }
    if (code == '<' || code == '>' || code == '&')
        output_format(out, "\\u%04x", (unsigned)code);
    else if (code == UTF8_INVALID)
        output_text(out, "\xef\xbf\xbd");
    else if (utf8_is_printable(code))
        output_bytes(out, text, length);
    else if (code < 0x10000)
        output_format(out, "\\u%04x", (unsigned)code);
    else /* as JSON has it, in two halves */
        output_format(out, "\\u%04x\\u%04x", 0xd7c0 + (unsigned)(code >> 10),
                      0xdc00 + (unsigned)(code & 0x3ff));
}

/* Of those `length` bytes, how many come before the first that HTML reads. */
static size_t before_markup(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length && text[at] != '<' && text[at] != '>' && text[at] != '&')
        at++;
    return at;
}

static void json_string(struct output *out, const char *text, bool in_html)
{
    if (!text) {
        output_text(out, "null");
        return;
    }
    size_t left = strlen(text);
    output_bytes(out, "\"", 1);
    while (left) {
        size_t plain = plain_run(text, left);
        if (in_html)
            plain = before_markup(text, plain);
        output_bytes(out, text, plain);
        text += plain;
        left -= plain;
        if (left) {
            uint32_t code;
            size_t length = utf8_next(text, &code);
            json_escape(out, code, text, length);
            text += length;
            left -= length;
        }
    }
    output_bytes(out, "\"", 1);
}

void output_json_string(struct output *out, const char *text)
{
    json_string(out, text, false);
}

void output_json_string_in_html(struct output *out, const char *text)
{
    json_string(out, text, true);
}

void output_safe(struct output *out, const char *text)
{
    const char *kept = text; /* from here on nothing is written yet */
    while (*text) {
        uint32_t code;
        size_t length = utf8_next(text, &code);
        if (!utf8_is_printable(code)) {
            output_bytes(out, kept, (size_t)(text - kept));
            for (size_t i = 0; i < length; i++)
                output_format(out, "\\x%02X", (unsigned char)text[i]);
            kept = text + length;
        }
        text += length;
    }
    output_bytes(out, kept, (size_t)(text - kept));
}

int output_flush(struct output *out)
{
    send_buffer(out);
    return out->error;
}
