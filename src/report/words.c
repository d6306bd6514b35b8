/* The wording of figures (words.h). Integer arithmetic only: see base/size.c. */
#include "report/words.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/size.h"
#include "base/utf8.h"

/* Drops a character that the end of the buffer cut in two. */
static void drop_half_character(struct words *words)
{
    size_t start = words->used;
    while (start > 0 && words->used - start < 4 && ((unsigned char)words->text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0 || (unsigned char)words->text[start - 1] < 0xc0)
        return;
    uint32_t code;
    start--;
    if (utf8_next(words->text + start, &code) != words->used - start || code == UTF8_INVALID)
        words->used = start;
    words->text[words->used] = '\0';
}

void words_add(struct words *words, const char *format, ...)
{
    size_t room = sizeof words->text - words->used;
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(words->text + words->used, room, format, arguments);
    va_end(arguments);
    if (wanted < 0) {
        words->text[words->used] = '\0';
    } else if ((size_t)wanted < room) {
        words->used += (size_t)wanted;
    } else {
        words->used = sizeof words->text - 1;
        drop_half_character(words);
    }
}

void words_size(struct words *words, uint64_t bytes)
{
    char text[SIZE_TEXT_MAX];
    words_add(words, "%s", size_text(text, bytes));
}

void words_time(struct words *words, uint64_t ns)
{
    uint64_t ms = (ns + 500000) / 1000000;
    uint64_t s = ms / 1000;
    if (ns < 10 * UINT64_C(1000000)) {
        uint64_t tenths = (ns + 50000) / 100000; /* of a millisecond */
        words_add(words, "%u.%u ms", (unsigned)(tenths / 10), (unsigned)(tenths % 10));
    } else if (ms < 1000) {
        words_add(words, "%u ms", (unsigned)ms);
    } else if (ms < 119950) {
        uint64_t tenths = (ms + 50) / 100;
        words_add(words, "%u.%u s", (unsigned)(tenths / 10), (unsigned)(tenths % 10));
    } else if (s < 2 * 3600) {
        words_add(words, "%u min %u s", (unsigned)(s / 60), (unsigned)(s % 60));
    } else if (s < 48 * 3600) {
        words_add(words, "%u h %u min", (unsigned)(s / 3600), (unsigned)(s / 60 % 60));
    } else {
        words_add(words, "%llu days %u h", (unsigned long long)(s / 86400), (unsigned)(s / 3600 % 24));
    }
}

void words_share(struct words *words, uint64_t part, uint64_t whole)
{
    if (whole == 0) {
        words_add(words, "-");
        return;
    }
    unsigned __int128 tenths = ((unsigned __int128)part * 1000 + whole / 2) / whole;
    if (tenths == 0 && part > 0)
        words_add(words, "<0.1%%");
    else
        words_add(words, "%llu.%u%%", (unsigned long long)(tenths / 10), (unsigned)(tenths % 10));
}

void words_count(struct words *words, uint64_t count, const char *singular)
{
    words_add(words, "%llu %s%s", (unsigned long long)count, singular, count == 1 ? "" : "s");
}

int words_columns(const struct words *words)
{
    int columns = 0;
    for (const char *at = words->text; words->used && *at;) {
        if (*at >= ' ' && *at < 0x7f) { /* most text is ASCII */
            columns++;
            at++;
            continue;
        }
        uint32_t code;
        size_t length = utf8_next(at, &code);
        columns += utf8_is_printable(code) ? utf8_columns(code) : 4 * (int)length;
        at += length;
    }
    return columns;
}

/* Days since 1970-01-01 to a date, by counting in 400-year cycles that begin on 1 March of a year 0. */
static void civil_date(uint64_t days, unsigned *year, unsigned *month, unsigned *day)
{
    uint64_t shifted = days + 719468, cycle = shifted / 146097, of_cycle = shifted % 146097;
    uint64_t y = (of_cycle - of_cycle / 1460 + of_cycle / 36524 - of_cycle / 146096) / 365;
    uint64_t of_year = of_cycle - (365 * y + y / 4 - y / 100);
    uint64_t from_march = (5 * of_year + 2) / 153;
    *day = (unsigned)(of_year - (153 * from_march + 2) / 5 + 1);
    *month = (unsigned)(from_march < 10 ? from_march + 3 : from_march - 9);
    *year = (unsigned)(y + cycle * 400 + (*month <= 2));
}

void words_date(struct words *words, uint64_t realtime_ns, char separator)
{
    uint64_t seconds = realtime_ns / 1000000000, of_day = seconds % 86400;
    unsigned year, month, day;
    civil_date(seconds / 86400, &year, &month, &day);
    words_add(words, "%04u-%02u-%02u%c%02u:%02u:%02u", year, month, day, separator, (unsigned)(of_day / 3600),
              (unsigned)(of_day / 60 % 60), (unsigned)(of_day % 60));
}

void words_column(struct words *words, int column)
{
    int missing = column - words_columns(words);
    words_add(words, "%*s", missing > 1 ? missing : 1, "");
}

void words_cut(struct words *words, size_t bytes)
{
    if (words->used < bytes)
        return;
    words->used = bytes - 1;
    words->text[words->used] = '\0';
    drop_half_character(words);
}

void words_end_line(struct words *words, struct output *out)
{
    if (words->used > 0)
        output_safe(out, words->text);
    output_text(out, "\n");
    words->used = 0;
    words->text[0] = '\0';
}

const char *words_keep(const struct words *words, struct arena *arena)
{
    return arena_copy(arena, words->text, words->used);
}
